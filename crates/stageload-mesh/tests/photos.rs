//! Real photos: is each mesh a solid, does its front look like the picture, is its file valid?
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test")]

mod support;

use std::path::Path;
use std::process::Command;

use stageload_mesh::preview::{Shading, View, draw};
use stageload_mesh::{Model, Topology};
use support::{mesh, photos, read};

const FRONT: View = View { azimuth: 0.0, elevation: 0.0 };

/// What a mesh's front is held against: the subject's square of the picture, and its matte.
struct Truth {
    rgb: image::RgbImage,
    inside: Vec<bool>,
    core: Vec<bool>,
}

impl Truth {
    fn of(photo: &Path, side: usize) -> Self {
        let front = stageload_mesh::front_of(photo, side).unwrap();
        Self { rgb: front.rgb, inside: front.inside, core: front.core }
    }
}

fn overlap(truth: &Truth, covered: &[bool]) -> f64 {
    let both = |f: fn(bool, bool) -> bool| {
        truth.inside.iter().zip(covered).filter(|(a, b)| f(**a, **b)).count() as f64
    };
    both(|a, b| a && b) / both(|a, b| a || b)
}

/// Peak signal to noise ratio in dB over the subject's core.
fn psnr(truth: &Truth, drawn: &image::RgbImage) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for ((a, b), _) in
        truth.rgb.pixels().zip(drawn.pixels()).zip(&truth.core).filter(|(_, core)| **core)
    {
        for c in 0..3 {
            sum += (f64::from(a.0[c]) - f64::from(b.0[c])).powi(2);
            n += 1.0;
        }
    }
    10.0 * (255.0f64.powi(2) / (sum / n)).log10()
}

fn topology(model: &Model) -> Topology {
    let (points, indices) = model.welded();
    Topology::of(points, &indices)
}

/// Meshes a photo and holds it to every figure the README promises.
fn check(name: &str, grid: &str, components: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (photo, out) = (photos().join(name), folder.path().join("mesh.glb"));
    mesh(&photo, &out, &["--grid", grid, "--device", "cpu"]);
    let (model, _) = read(&out);
    let t = topology(&model);
    assert!(t.is_watertight(), "{name}: {t:?}");
    assert_eq!(t.components, components, "{name}");
    let side = grid.parse().unwrap();
    let truth = Truth::of(&photo, side);
    let drawing = draw(&model, FRONT, side, 1.0, Shading::Texture);
    let (iou, db) = (overlap(&truth, &drawing.covered), psnr(&truth, &drawing.rgb));
    let size = std::fs::metadata(&out).unwrap().len();
    println!(
        "| {name} | {grid} | {} | yes | 0 | {} | {} | {iou:.4} | {db:.1} | {:.1} |",
        model.indices.len() / 3,
        t.components,
        1 - t.euler / 2,
        size as f64 / 1e6
    );
    assert!(iou >= 0.985, "{name}: silhouette overlap {iou:.4}");
    assert!(db >= 30.0, "{name}: front view {db:.1} dB");
    assert!(files_are_valid(&out), "{name}: the glTF validator found errors");
    let preview = image::open(out.with_extension("preview.png")).unwrap();
    assert_eq!((preview.width(), preview.height()), (1800, 720));
}

/// Khronos' own validator, which `make test` installs.
fn files_are_valid(glb: &Path) -> bool {
    let Some(module) = std::env::var_os("STAGELOAD_GLTF_VALIDATOR") else {
        panic!(
            "set STAGELOAD_GLTF_VALIDATOR to the npm folder of gltf-validator, as `make test` does"
        )
    };
    let script = "const v=require(process.argv[1]+'/node_modules/gltf-validator');\
        v.validateBytes(new Uint8Array(require('fs').readFileSync(process.argv[2])))\
        .then(r=>{const i=r.issues;if(i.numErrors+i.numWarnings+i.numInfos+i.numHints){\
        console.error(JSON.stringify(i,null,1));process.exit(1)}})";
    let run = Command::new("node").args(["-e", script]).arg(module).arg(glb).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&run.stderr));
    run.status.success()
}

#[test]
fn the_coffee_cup_is_one_solid_that_looks_like_its_photo() {
    check("coffee.png", "512", 1);
}

#[test]
fn the_dahlia_is_one_solid_that_looks_like_its_photo() {
    check("flower.jpg", "512", 1);
}

#[test]
fn the_astronaut_cut_by_the_photos_edges_is_one_solid_that_looks_like_her_photo() {
    check("astronaut.png", "512", 1);
}

#[test]
fn the_cat_that_fills_its_photo_is_a_solid_that_looks_like_it() {
    check("chelsea.png", "512", 1);
}

#[test]
fn the_pagoda_is_one_solid_that_looks_like_its_photo() {
    check("china.jpg", "512", 1);
}

#[test]
fn the_fine_grid_keeps_every_promise_too() {
    check("flower.jpg", "1024", 1);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_other_ones() {
    let folder = tempfile::tempdir().unwrap();
    let photo = photos().join("coffee.png");
    let bytes = |name: &str, flags: &[&str]| {
        let out = folder.path().join(name);
        mesh(&photo, &out, &[&["--grid", "512", "--faces", "20000"], flags].concat());
        std::fs::read(out).unwrap()
    };
    let first = bytes("a.glb", &["--seed", "3"]);
    assert!(first == bytes("b.glb", &["--seed", "3"]), "the same seed gave other bytes");
    assert!(first != bytes("c.glb", &["--seed", "4"]), "the seed changed nothing");
}

#[test]
fn staged_and_eager_loading_give_the_same_file_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let photo = photos().join("flower.jpg");
    let bytes = |load: &str| {
        let out = folder.path().join(format!("{load}.glb"));
        mesh(&photo, &out, &["--grid", "512", "--faces", "20000", "--load", load]);
        std::fs::read(out).unwrap()
    };
    assert!(bytes("staged") == bytes("eager"));
}

#[test]
fn the_file_says_where_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let (photo, out) = (photos().join("coffee.png"), folder.path().join("mesh.glb"));
    mesh(&photo, &out, &["--grid", "512", "--faces", "5000", "--seed", "9"]);
    let (model, extras) = read(&out);
    assert!((4_000..=5_100).contains(&(model.indices.len() / 3)));
    assert_eq!(extras["seed"], 9);
    let program = extras["program"].as_str().unwrap();
    assert!(program.starts_with("stageload-mesh "), "{program}");
    assert!(extras["preset"].as_str().unwrap().contains("\"grid\":512"));
    assert_eq!(extras["inputSha256"].as_str().unwrap().len(), 64);
    assert!(extras["note"].as_str().unwrap().contains("guess"));
}

#[test]
fn the_far_side_can_be_filled_from_the_outline_instead_of_the_mirrored_front() {
    let folder = tempfile::tempdir().unwrap();
    let photo = photos().join("astronaut.png");
    let behind = View { azimuth: 180.0, elevation: 0.0 };
    let back = |choice: &str| {
        let out = folder.path().join(format!("{choice}.glb"));
        mesh(&photo, &out, &["--grid", "512", "--faces", "20000", "--back", choice]);
        draw(&read(&out).0, behind, 256, 1.0, Shading::Texture)
    };
    let (mirror, rim) = (back("mirror"), back("rim"));
    let differs = mirror
        .rgb
        .pixels()
        .zip(rim.rgb.pixels())
        .filter(|(a, b)| (0..3).any(|c| a.0[c].abs_diff(b.0[c]) > 40));
    assert!(differs.count() > 2_000, "both far sides look the same");
}

#[test]
fn without_relief_the_front_is_smoother() {
    let folder = tempfile::tempdir().unwrap();
    let photo = photos().join("flower.jpg");
    let area = |relief: &str| {
        let out = folder.path().join(format!("{relief}.glb"));
        mesh(&photo, &out, &["--grid", "512", "--relief", relief]);
        let model = read(&out).0;
        let sum = model.indices.chunks_exact(3).map(|t| {
            let [a, b, c] = [0, 1, 2].map(|i| model.positions[t[i] as usize]);
            let (u, v) = ([0, 1, 2].map(|k| b[k] - a[k]), [0, 1, 2].map(|k| c[k] - a[k]));
            let n = [0, 1, 2]
                .map(|k| u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3]);
            f64::from(n.iter().map(|x| x * x).sum::<f32>().sqrt()) / 2.0
        });
        sum.sum::<f64>()
    };
    let (rough, smooth) = (area("1"), area("0"));
    assert!(rough > smooth * 1.005, "area {rough} with relief, {smooth} without");
}
