//! The twenty shapes, about two units large, y up, seen along z after a turn.

use super::sdf::{Sdf, ball, block, drum, egg, ring, rod, union, without};

pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) sdf: Sdf,
    /// Turn around the upright axis and tilt, in degrees.
    pub(super) turn: (f32, f32),
    pub(super) colours: [[f32; 3]; 2],
}

fn shape(name: &'static str, turn: (f32, f32), colours: [[f32; 3]; 2], sdf: Sdf) -> Shape {
    Shape { name, sdf, turn, colours }
}

const RED: [f32; 3] = [0.75, 0.2, 0.15];
const GREEN: [f32; 3] = [0.25, 0.5, 0.2];
const BLUE: [f32; 3] = [0.2, 0.35, 0.7];
const BROWN: [f32; 3] = [0.5, 0.33, 0.2];
const CREAM: [f32; 3] = [0.85, 0.8, 0.68];
const GREY: [f32; 3] = [0.5, 0.52, 0.55];
const YELLOW: [f32; 3] = [0.85, 0.7, 0.2];

pub(super) fn all() -> Vec<Shape> {
    let mut shapes = vessels();
    shapes.extend(creatures());
    shapes.extend(tools());
    shapes.extend(places());
    shapes
}

fn vessels() -> Vec<Shape> {
    let cup = without(drum([0.0; 3], 0.42, 0.5, 0.5), drum([0.0, 0.12, 0.0], 0.36, 0.44, 0.5));
    let mug = union(vec![cup, ring([0.55, 0.0, 0.0], 2, 0.26, 0.07)], 0.03);
    let teapot = union(
        vec![
            egg([0.0; 3], [0.6, 0.48, 0.6]),
            rod([0.45, -0.05, 0.0], [1.0, 0.4, 0.0], 0.13, 0.07),
            ring([-0.62, 0.05, 0.0], 2, 0.26, 0.06),
            ball([0.0, 0.55, 0.0], 0.1),
        ],
        0.06,
    );
    let lamp = union(
        vec![
            drum([0.0, 0.5, 0.0], 0.6, 0.35, 0.32),
            rod([0.0, -0.8, 0.0], [0.0, 0.5, 0.0], 0.05, 0.05),
            drum([0.0, -0.85, 0.0], 0.4, 0.3, 0.06),
        ],
        0.03,
    );
    let pumpkin: Sdf = Box::new(|p| {
        let ribs = 0.05 * (p[2].atan2(p[0]) * 9.0).cos().abs();
        (egg([0.0; 3], [0.75, 0.55, 0.75])(p) - ribs + 0.02) * 0.8
    });
    let stalk = rod([0.0, 0.45, 0.0], [0.1, 0.78, 0.0], 0.09, 0.06);
    vec![
        shape("mug", (25.0, 20.0), [CREAM, BLUE], mug),
        shape("teapot", (-20.0, 15.0), [RED, CREAM], teapot),
        shape("lamp", (0.0, 12.0), [YELLOW, GREY], lamp),
        shape("pumpkin", (15.0, 25.0), [YELLOW, RED], union(vec![pumpkin, stalk], 0.03)),
    ]
}

fn creatures() -> Vec<Shape> {
    let snowman = union(
        vec![
            ball([0.0, -0.5, 0.0], 0.48),
            ball([0.0, 0.15, 0.0], 0.36),
            ball([0.0, 0.66, 0.0], 0.26),
            rod([0.0, 0.66, 0.2], [0.0, 0.62, 0.55], 0.06, 0.01),
        ],
        0.04,
    );
    let fish = union(
        vec![
            egg([0.1, 0.0, 0.0], [0.65, 0.32, 0.18]),
            egg([-0.75, 0.0, 0.0], [0.18, 0.34, 0.05]),
            egg([0.1, 0.34, 0.0], [0.25, 0.16, 0.04]),
        ],
        0.08,
    );
    let bird = union(
        vec![
            egg([0.0, -0.05, 0.0], [0.5, 0.34, 0.32]),
            ball([0.48, 0.35, 0.0], 0.22),
            rod([0.64, 0.35, 0.0], [0.9, 0.3, 0.0], 0.07, 0.01),
            egg([-0.65, -0.05, 0.0], [0.35, 0.08, 0.16]),
            rod([0.05, -0.3, 0.1], [0.05, -0.75, 0.1], 0.03, 0.03),
            rod([0.05, -0.3, -0.1], [0.05, -0.75, -0.1], 0.03, 0.03),
        ],
        0.08,
    );
    let mut shapes = vec![
        shape("snowman", (-25.0, 5.0), [CREAM, GREY], snowman),
        shape("fish", (20.0, 5.0), [BLUE, YELLOW], fish),
        shape("bird", (30.0, 10.0), [BROWN, CREAM], bird),
    ];
    shapes.extend(more_creatures());
    shapes
}

fn more_creatures() -> Vec<Shape> {
    let dog = union(
        vec![
            egg([-0.15, -0.25, 0.0], [0.36, 0.5, 0.3]),
            ball([0.15, 0.45, 0.0], 0.28),
            rod([0.3, 0.4, 0.0], [0.6, 0.33, 0.0], 0.15, 0.1),
            egg([0.02, 0.6, 0.26], [0.1, 0.22, 0.06]),
            egg([0.02, 0.6, -0.26], [0.1, 0.22, 0.06]),
            rod([0.15, 0.0, 0.15], [0.22, -0.75, 0.15], 0.1, 0.08),
            rod([0.15, 0.0, -0.15], [0.22, -0.75, -0.15], 0.1, 0.08),
            rod([-0.45, -0.6, 0.0], [-0.85, -0.5, 0.1], 0.08, 0.04),
        ],
        0.06,
    );
    let head = union(
        vec![
            egg([0.0, 0.1, 0.0], [0.5, 0.65, 0.58]),
            egg([0.0, -0.3, 0.15], [0.32, 0.35, 0.35]),
            rod([0.0, 0.18, 0.52], [0.0, -0.05, 0.68], 0.06, 0.1),
            egg([0.5, 0.0, 0.0], [0.07, 0.16, 0.12]),
            egg([-0.5, 0.0, 0.0], [0.07, 0.16, 0.12]),
            drum([0.0, -0.8, -0.1], 0.28, 0.24, 0.25),
        ],
        0.08,
    );
    let robot = union(
        vec![
            block([0.0, -0.1, 0.0], [0.35, 0.4, 0.22], 0.05),
            block([0.0, 0.55, 0.0], [0.24, 0.2, 0.2], 0.04),
            rod([0.5, 0.2, 0.0], [0.55, -0.45, 0.1], 0.09, 0.09),
            rod([-0.5, 0.2, 0.0], [-0.7, 0.5, 0.15], 0.09, 0.09),
            block([0.18, -0.75, 0.05], [0.12, 0.28, 0.14], 0.04),
            block([-0.18, -0.75, 0.05], [0.12, 0.28, 0.14], 0.04),
        ],
        0.03,
    );
    vec![
        shape("sitting dog", (20.0, 8.0), [BROWN, CREAM], dog),
        shape("head", (-35.0, 5.0), [CREAM, BROWN], head),
        shape("robot", (25.0, 10.0), [GREY, RED], robot),
    ]
}

fn tools() -> Vec<Shape> {
    let hammer = union(
        vec![
            rod([0.0, -0.9, 0.0], [0.0, 0.5, 0.0], 0.08, 0.06),
            block([0.05, 0.55, 0.0], [0.42, 0.14, 0.14], 0.04),
        ],
        0.02,
    );
    let guitar = union(
        vec![
            egg([0.0, -0.55, 0.0], [0.45, 0.38, 0.14]),
            egg([0.0, -0.1, 0.0], [0.33, 0.28, 0.14]),
            block([0.0, 0.5, 0.05], [0.06, 0.5, 0.04], 0.02),
            block([0.0, 1.0, 0.03], [0.1, 0.14, 0.04], 0.02),
        ],
        0.08,
    );
    let boot = union(
        vec![
            drum([-0.25, 0.25, 0.0], 0.26, 0.3, 0.55),
            rod([-0.25, -0.35, 0.0], [0.45, -0.42, 0.0], 0.26, 0.2),
            block([0.05, -0.66, 0.0], [0.62, 0.07, 0.26], 0.05),
        ],
        0.1,
    );
    let banana = union(
        (0..8)
            .map(|i| {
                let at = |i: i32| {
                    let a = (i as f32 - 4.0) * 0.28;
                    [a.sin() * 0.9, 0.6 - a.cos() * 0.9, 0.0]
                };
                let r = |i: i32| 0.17 - 0.008 * (i as f32 - 4.0).powi(2);
                rod(at(i), at(i + 1), r(i).max(0.04), r(i + 1).max(0.04))
            })
            .collect(),
        0.04,
    );
    vec![
        shape("hammer", (25.0, 10.0), [BROWN, GREY], hammer),
        shape("guitar", (-30.0, 10.0), [BROWN, YELLOW], guitar),
        shape("boot", (20.0, 12.0), [BROWN, GREY], boot),
        shape("banana", (10.0, 30.0), [YELLOW, GREEN], banana),
    ]
}

fn places() -> Vec<Shape> {
    let airplane = union(
        vec![
            rod([-0.8, 0.0, 0.0], [0.8, 0.0, 0.0], 0.1, 0.16),
            block([0.1, 0.0, 0.0], [0.2, 0.03, 0.95], 0.02),
            block([-0.75, 0.0, 0.0], [0.1, 0.02, 0.35], 0.02),
            block([-0.75, 0.2, 0.0], [0.12, 0.2, 0.02], 0.02),
        ],
        0.05,
    );
    let sail: Sdf = Box::new(|p| {
        let slope = (p[0] + 0.6 * p[1] - 0.55) * 0.85;
        slope.max(-p[0] - 0.05).max(-p[1] - 0.2).max((p[2] - 0.1 * p[0]).abs() - 0.03)
    });
    let hull = egg([0.0, -0.5, 0.0], [0.8, 0.25, 0.28]);
    let mast = rod([-0.05, -0.5, 0.0], [-0.05, 0.95, 0.0], 0.03, 0.02);
    let roof: Sdf = Box::new(|p| {
        let slope = (p[0].abs() * 0.7 + p[1] * 0.71 - 0.62) * 0.98;
        slope.max(0.2 - p[1]).max(p[2].abs() - 0.62)
    });
    let walls = block([0.0, -0.2, 0.0], [0.5, 0.45, 0.55], 0.01);
    let chimney = block([0.25, 0.7, 0.2], [0.08, 0.2, 0.08], 0.01);
    let mut shapes = vec![
        shape("airplane", (35.0, 30.0), [CREAM, BLUE], airplane),
        shape("sailboat", (-25.0, 8.0), [CREAM, RED], union(vec![sail, hull, mast], 0.02)),
        shape("house", (35.0, 18.0), [CREAM, RED], union(vec![roof, walls, chimney], 0.01)),
    ];
    shapes.extend(plants());
    shapes
}

fn plants() -> Vec<Shape> {
    let fir = union(
        vec![
            drum([0.0, -0.25, 0.0], 0.6, 0.15, 0.3),
            drum([0.0, 0.15, 0.0], 0.48, 0.1, 0.28),
            drum([0.0, 0.55, 0.0], 0.34, 0.02, 0.3),
            rod([0.0, -0.9, 0.0], [0.0, -0.5, 0.0], 0.1, 0.09),
        ],
        0.04,
    );
    let cactus = union(
        vec![
            rod([0.0, -0.9, 0.0], [0.0, 0.7, 0.0], 0.2, 0.17),
            rod([0.0, -0.1, 0.0], [0.48, 0.0, 0.1], 0.11, 0.11),
            rod([0.48, 0.0, 0.1], [0.5, 0.5, 0.1], 0.11, 0.1),
            rod([0.0, -0.4, 0.0], [-0.45, -0.3, -0.1], 0.1, 0.1),
            rod([-0.45, -0.3, -0.1], [-0.46, 0.2, -0.1], 0.1, 0.09),
        ],
        0.05,
    );
    let mushroom = union(
        vec![
            without(
                egg([0.0, 0.25, 0.0], [0.75, 0.45, 0.75]),
                block([0.0, -0.4, 0.0], [1.0, 0.5, 1.0], 0.0),
            ),
            drum([0.0, -0.35, 0.0], 0.24, 0.18, 0.5),
        ],
        0.04,
    );
    vec![
        shape("fir tree", (10.0, 8.0), [GREEN, BROWN], fir),
        shape("cactus", (15.0, 6.0), [GREEN, YELLOW], cactus),
        shape("mushroom", (0.0, 18.0), [RED, CREAM], mushroom),
    ]
}
