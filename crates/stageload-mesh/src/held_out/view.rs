//! Seeing a shape as a camera would: colours under a lamp, the matte, and the true depths.

use image::{Rgb, RgbImage};
use rayon::prelude::*;

use super::sdf::Point;
use super::shapes::Shape;
use crate::plane::Plane;

/// What there is to know of one view.
pub(super) struct Sight {
    pub(super) rgb: RgbImage,
    pub(super) matte: Plane,
    /// Depth of the first and the last surface on each ray, towards the viewer, in picture widths.
    pub(super) front: Plane,
    pub(super) back: Plane,
}

/// First and last depth on a ray, and the colour of the first.
type Hit = (f32, f32, [f32; 3]);

const LAMP: Point = [0.45, 0.6, 0.66];
/// The subject's longest visible side, as a share of the picture.
const FILL: f32 = 0.92;

pub(super) fn look(shape: &Shape, n: usize) -> Sight {
    let turned = Turned::new(shape);
    let (centre, width) = extent(&turned, n);
    let at = |i: usize, c: f32| ((i as f32 + 0.5) / n as f32 - 0.5) * width + c;
    let hits: Vec<Option<Hit>> = (0..n * n)
        .into_par_iter()
        .map(|i| turned.ray(at(i % n, centre.0), -at(i / n, -centre.1)))
        .collect();
    let plane = |f: fn(&Hit) -> f32| {
        Plane::new(n, n, hits.iter().map(|h| h.as_ref().map_or(0.0, f)).collect())
    };
    let rgb = RgbImage::from_fn(n as u32, n as u32, |x, y| {
        let hit = hits[y as usize * n + x as usize];
        Rgb(hit.map_or([0; 3], |h| h.2.map(|c| (c.clamp(0.0, 1.0) * 255.0) as u8)))
    });
    let matte = plane(|_| 1.0);
    Sight {
        rgb,
        matte,
        front: plane(|h| h.0).map(|z| z / width),
        back: plane(|h| h.1).map(|z| z / width),
    }
}

struct Turned<'a> {
    shape: &'a Shape,
    rows: [Point; 3],
}

impl<'a> Turned<'a> {
    fn new(shape: &'a Shape) -> Self {
        let (sa, ca) = shape.turn.0.to_radians().sin_cos();
        let (se, ce) = shape.turn.1.to_radians().sin_cos();
        Self { shape, rows: [[ca, 0.0, sa], [se * sa, ce, -se * ca], [-ce * sa, se, ce * ca]] }
    }

    fn model(&self, p: Point) -> Point {
        [0, 1, 2].map(|c| (0..3).map(|r| self.rows[r][c] * p[r]).sum())
    }

    fn distance(&self, p: Point) -> f32 {
        (self.shape.sdf)(self.model(p))
    }

    /// First and last depth along a ray, and the colour of the first.
    fn ray(&self, x: f32, y: f32) -> Option<Hit> {
        let front = self.march(x, y, 2.0, -1.0)?;
        let back = self.march(x, y, -2.0, 1.0)?;
        Some((front, back, self.colour([x, y, front])))
    }

    fn march(&self, x: f32, y: f32, from: f32, towards: f32) -> Option<f32> {
        let mut z = from;
        for _ in 0..160 {
            let d = self.distance([x, y, z]);
            if d < 5e-4 {
                return Some(z);
            }
            // Joints and ribs bend the field a little, so full steps could jump over a thin part.
            z += towards * d * 0.8;
            if z.abs() > 2.0 {
                return None;
            }
        }
        None
    }

    fn colour(&self, p: Point) -> [f32; 3] {
        let e = 1e-3;
        let step = |axis: usize| {
            let mut q = p;
            q[axis] += e;
            self.distance(q) - self.distance(p)
        };
        let n = [step(0), step(1), step(2)];
        let length = n.iter().map(|c| c * c).sum::<f32>().sqrt().max(1e-9);
        let light = (0..3).map(|c| n[c] * LAMP[c]).sum::<f32>() / length;
        let m = self.model(p);
        let pattern = ((m[0] * 9.0).sin() + (m[1] * 7.0 + m[2] * 5.0).sin()) * 0.5;
        let mix = (pattern * 2.0 + 0.5).clamp(0.0, 1.0) * 0.35;
        let [a, b] = self.shape.colours;
        [0, 1, 2].map(|c| (a[c] * (1.0 - mix) + b[c] * mix) * (0.3 + 0.8 * light.max(0.0)))
    }
}

/// Centre and width of the square that the shape fills as [`FILL`] says.
fn extent(turned: &Turned<'_>, n: usize) -> ((f32, f32), f32) {
    let m = n / 2;
    let at = |i: usize| (i as f32 / (m - 1) as f32 - 0.5) * 3.0;
    let hits: Vec<(f32, f32)> = (0..m * m)
        .into_par_iter()
        .filter(|i| turned.march(at(i % m), at(i / m), 2.0, -1.0).is_some())
        .map(|i| (at(i % m), at(i / m)))
        .collect();
    let range = |f: fn(&(f32, f32)) -> f32| {
        let values = hits.iter().map(f);
        values.fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(v), h.max(v)))
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let side = (x1 - x0).max(y1 - y0);
    ((f32::midpoint(x0, x1), f32::midpoint(y0, y1)), side / FILL)
}
