//! The gate for the learned shape prior: twenty shapes that no training ever saw.
//!
//! They are drawn by hand here, in Rust, and share neither code nor families of parameters with the
//! training's generator. Each is seen from one side; front and back depth are known exactly. What
//! the figures say: how close the two visible sheets come. What they do not: anything about hollow
//! or hidden parts, of which a picture's outline tells nothing.

mod metrics;
mod sdf;
mod shapes;
mod view;

use stageload_torch::Weights;
use tch::Device;

use crate::matte::rgb_tensor;
use crate::outline;
use crate::plane::{Mask, Plane};
use crate::poisson::Potential;
use crate::prior::Shape;
use metrics::{Errors, Sheets};
use view::Sight;

const SIDE: usize = 256;
const PRIOR: &[u8] = include_bytes!("../../weights/shape_prior.safetensors");

/// The two sheets that the pipeline would build, without the relief, in picture widths.
fn rebuilt(sight: &Sight, shape: impl Fn(&Sight) -> Shape) -> Sheets {
    let matte = outline::smoothed(&sight.matte, Device::Cpu);
    let open = Mask { width: SIDE, height: SIDE, data: vec![true; SIDE * SIDE] };
    let (u, inside) = Potential::new(&matte, &open, Device::Cpu).finish();
    let u = outline::signed(&u, &inside, &matte, Device::Cpu);
    let Shape { mid, ratio } = shape(sight);
    let sheet = |sign: f32| {
        let data = (0..u.data.len()).map(|i| {
            (mid.data[i] + sign * ratio.data[i] * u.data[i].max(0.0).sqrt()) / SIDE as f32
        });
        Plane::new(SIDE, SIDE, data.collect())
    };
    Sheets { front: sheet(1.0), back: sheet(-1.0) }
}

fn flat() -> Sheets {
    Sheets { front: Plane::filled(SIDE, SIDE, 0.1), back: Plane::filled(SIDE, SIDE, -0.1) }
}

struct Row {
    name: &'static str,
    flat: Errors,
    classical: Errors,
    learned: Errors,
}

fn evaluate() -> Vec<Row> {
    let weights = Weights::from_safetensors(PRIOR, Device::Cpu).unwrap();
    let learned =
        |s: &Sight| Shape::learned(&weights, &rgb_tensor(&s.rgb, Device::Cpu), &s.matte).unwrap();
    shapes::all()
        .iter()
        .map(|shape| {
            let sight = view::look(shape, SIDE);
            let errors = |sheets| metrics::errors(&sheets, &sight);
            Row {
                name: shape.name,
                flat: errors(flat()),
                classical: errors(rebuilt(&sight, |_| Shape::classical(SIDE))),
                learned: errors(rebuilt(&sight, learned)),
            }
        })
        .collect()
}

fn mean(rows: &[Row], pick: impl Fn(&Row) -> Errors) -> Errors {
    let n = rows.len() as f32;
    rows.iter().map(pick).fold(Errors::default(), |sum, e| sum.plus(&e, 1.0 / n))
}

/// The table that `bench/run.sh` copies into RESULTS.md.
fn print(rows: &[Row], [flat, classical, learned]: [Errors; 3]) {
    println!(
        "| shape | chamfer flat | classical | learned | normal ° flat | classical | learned |"
    );
    println!("|---|---|---|---|---|---|---|");
    let line = |name: &str, [f, c, l]: [Errors; 3]| {
        println!(
            "| {name} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} | {:.1} |",
            f.chamfer, c.chamfer, l.chamfer, f.normal, c.normal, l.normal
        );
    };
    for r in rows {
        line(r.name, [r.flat, r.classical, r.learned]);
    }
    line("**mean**", [flat, classical, learned]);
    println!(
        "| front depth error (widths) | {:.4} | {:.4} | {:.4} | | | |",
        flat.front, classical.front, learned.front
    );
}

#[test]
fn the_learned_prior_beats_the_plain_inflation_on_shapes_it_never_saw() {
    let _inference = tch::no_grad_guard();
    let rows = evaluate();
    let flat = mean(&rows, |r| r.flat);
    let classical = mean(&rows, |r| r.classical);
    let learned = mean(&rows, |r| r.learned);
    print(&rows, [flat, classical, learned]);
    assert_eq!(rows.len(), 20);
    assert!(learned.chamfer < classical.chamfer, "{learned:?} against {classical:?}");
    assert!(learned.front < classical.front, "{learned:?} against {classical:?}");
    assert!(classical.chamfer < flat.chamfer, "{classical:?} against {flat:?}");
}
