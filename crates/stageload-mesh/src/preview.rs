//! Drawing a model by ourselves: orthographic views with a depth buffer, for the preview and for
//! comparing the front with the picture.

use image::{Rgb, RgbImage};
use rayon::prelude::*;

use crate::model::{Model, unit};

/// Where the viewer stands, in degrees: around the upright axis, and above the horizon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Around; 0 is the picture's own view, 180 the far side.
    pub azimuth: f32,
    /// Above.
    pub elevation: f32,
}

/// How surfaces get their colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shading {
    /// The texture as it is.
    Texture,
    /// The texture under a lamp.
    Lit,
    /// Grey clay under a lamp: shows the shape.
    Clay,
}

/// One drawn view.
#[derive(Debug)]
pub struct Drawing {
    /// Colours; the background where nothing is.
    pub rgb: RgbImage,
    /// True where the model covers the pixel's centre.
    pub covered: Vec<bool>,
}

const BACKGROUND: [f32; 3] = [0.955, 0.955, 0.945];
const CLAY: [f32; 3] = [0.78, 0.78, 0.80];
/// Where the light comes from; a unit vector.
const LAMP: [f32; 3] = [0.3478, 0.4969, 0.7950];
/// The preview's views, left to right.
const VIEWS: [(f32, f32); 5] = [(0.0, 0.0), (35.0, 10.0), (70.0, 5.0), (180.0, 0.0), (-35.0, 25.0)];
const VIEW_SIDE: usize = 360;
/// Each preview pixel is the mean of this many squared.
const SAMPLES: usize = 2;

/// The preview: five views, textured above and as clay below.
pub fn sheet(model: &Model) -> RgbImage {
    let (centred, extent) = centred(model);
    let columns: Vec<[RgbImage; 2]> = VIEWS
        .into_par_iter()
        .map(|(azimuth, elevation)| {
            let view = View { azimuth, elevation };
            let seen = Seen::new(&centred, view, VIEW_SIDE * SAMPLES, extent);
            [Shading::Lit, Shading::Clay].map(|shading| halved(&seen.painted(shading)))
        })
        .collect();
    let side = VIEW_SIDE as u32;
    RgbImage::from_fn(side * VIEWS.len() as u32, side * 2, |x, y| {
        *columns[(x / side) as usize][(y / side) as usize].get_pixel(x % side, y % side)
    })
}

/// The model around its own middle, and how wide a view holds it however it is turned.
fn centred(model: &Model) -> (Model, f32) {
    let fold = |f: fn(f32, f32) -> f32, start: f32| {
        model.positions.iter().fold([start; 3], |a, p| [0, 1, 2].map(|c| f(a[c], p[c])))
    };
    let (low, high) = (fold(f32::min, f32::MAX), fold(f32::max, f32::MIN));
    let middle = [0, 1, 2].map(|c| f32::midpoint(low[c], high[c]));
    let mut centred = model.clone();
    for p in &mut centred.positions {
        *p = [0, 1, 2].map(|c| p[c] - middle[c]);
    }
    let radius = |p: &[f32; 3]| p.iter().map(|c| c * c).sum::<f32>();
    let farthest = centred.positions.iter().map(radius).fold(0.0, f32::max).sqrt();
    (centred, 2.04 * farthest)
}

/// Draws a model `side`×`side` pixels large; `extent` world units fill the side.
pub fn draw(model: &Model, view: View, side: usize, extent: f32, shading: Shading) -> Drawing {
    let seen = Seen::new(model, view, side, extent);
    let covered = seen.nearest.iter().map(|&(_, t)| t != NOTHING).collect();
    Drawing { rgb: seen.painted(shading), covered }
}

/// No triangle.
const NOTHING: u32 = u32::MAX;

/// Which triangle each pixel sees.
struct Seen<'a> {
    model: &'a Model,
    turn: [[f32; 3]; 3],
    side: usize,
    /// The model's points in pixels, and their depth.
    placed: Vec<[f32; 3]>,
    /// Depth and triangle.
    nearest: Vec<(f32, u32)>,
}

impl<'a> Seen<'a> {
    fn new(model: &'a Model, view: View, side: usize, extent: f32) -> Self {
        let turn = rotation(view);
        let place = |p: &[f32; 3]| {
            let q = apply(&turn, *p);
            let pixel = |v: f32| (v / extent + 0.5) * side as f32 - 0.5;
            [pixel(q[0]), side as f32 - 1.0 - pixel(q[1]), q[2]]
        };
        let placed: Vec<[f32; 3]> = model.positions.iter().map(place).collect();
        let mut nearest = vec![(f32::MIN, NOTHING); side * side];
        for (t, triangle) in model.indices.chunks_exact(3).enumerate() {
            let corners = [0, 1, 2].map(|i| placed[triangle[i] as usize]);
            fill(&corners, side, |pixel, depth| {
                if depth > nearest[pixel].0 {
                    nearest[pixel] = (depth, t as u32);
                }
            });
        }
        Self { model, turn, side, placed, nearest }
    }

    fn painted(&self, shading: Shading) -> RgbImage {
        RgbImage::from_fn(self.side as u32, self.side as u32, |x, y| {
            let t = self.nearest[y as usize * self.side + x as usize].1;
            let colour =
                if t == NOTHING { BACKGROUND } else { self.colour(shading, t, x as f32, y as f32) };
            Rgb(colour.map(|c| (c.clamp(0.0, 1.0) * 255.0).round() as u8))
        })
    }

    fn colour(&self, shading: Shading, triangle: u32, x: f32, y: f32) -> [f32; 3] {
        let at = triangle as usize * 3;
        let t = [0, 1, 2].map(|i| self.model.indices[at + i] as usize);
        let w = barycentric(&t.map(|v| self.placed[v]), x, y).unwrap_or([1.0, 0.0, 0.0]);
        let texel = || {
            let uv = [0, 1].map(|c| (0..3).map(|i| w[i] * self.model.uvs[t[i]][c]).sum());
            sample(&self.model.atlas, uv)
        };
        match shading {
            Shading::Texture => texel(),
            Shading::Lit => texel().map(|c| c * (0.35 + 0.75 * self.light(t, w))),
            Shading::Clay => CLAY.map(|c| c * (0.35 + 0.65 * self.light(t, w))),
        }
    }

    fn light(&self, t: [usize; 3], w: [f32; 3]) -> f32 {
        let normal = [0, 1, 2].map(|c| (0..3).map(|i| w[i] * self.model.normals[t[i]][c]).sum());
        let normal = unit(apply(&self.turn, normal)).unwrap_or([0.0, 0.0, 1.0]);
        let lamp = LAMP.iter().zip(normal).map(|(l, n)| l * n).sum::<f32>();
        lamp.max(0.0)
    }
}

/// Calls `visit` with each pixel whose centre the triangle covers, and its depth there.
fn fill(c: &[[f32; 3]; 3], side: usize, mut visit: impl FnMut(usize, f32)) {
    let range = |axis: usize| {
        let low = c.iter().map(|p| p[axis]).fold(f32::MAX, f32::min).ceil().max(0.0);
        let high = c.iter().map(|p| p[axis]).fold(f32::MIN, f32::max).floor();
        (low as usize, high.min(side as f32 - 1.0))
    };
    let ((x0, x1), (y0, y1)) = (range(0), range(1));
    if x1 < 0.0 || y1 < 0.0 {
        return;
    }
    for y in y0..=y1 as usize {
        for x in x0..=x1 as usize {
            let Some(w) = barycentric(c, x as f32, y as f32) else { continue };
            visit(y * side + x, w[0] * c[0][2] + w[1] * c[1][2] + w[2] * c[2][2]);
        }
    }
}

/// Weights of the corners at a point; none outside the triangle.
fn barycentric(c: &[[f32; 3]; 3], x: f32, y: f32) -> Option<[f32; 3]> {
    let [a, b, d] = *c;
    let area = (b[0] - a[0]) * (d[1] - a[1]) - (d[0] - a[0]) * (b[1] - a[1]);
    if area == 0.0 {
        return None;
    }
    let wb = ((x - a[0]) * (d[1] - a[1]) - (d[0] - a[0]) * (y - a[1])) / area;
    let wd = ((b[0] - a[0]) * (y - a[1]) - (x - a[0]) * (b[1] - a[1])) / area;
    let w = [1.0 - wb - wd, wb, wd];
    w.iter().all(|&v| v >= -1e-6).then_some(w)
}

/// Bilinear sample at a place in 0..1 from the top left.
fn sample(atlas: &RgbImage, uv: [f32; 2]) -> [f32; 3] {
    let place = |v: f32, n: u32| {
        let p = (v * n as f32 - 0.5).clamp(0.0, n as f32 - 1.0);
        (p as u32, (p as u32 + 1).min(n - 1), p.fract())
    };
    let (x0, x1, fx) = place(uv[0], atlas.width());
    let (y0, y1, fy) = place(uv[1], atlas.height());
    [0, 1, 2].map(|c| {
        let at = |x, y| f32::from(atlas.get_pixel(x, y).0[c]) / 255.0;
        let top = at(x0, y0) * (1.0 - fx) + at(x1, y0) * fx;
        let bottom = at(x0, y1) * (1.0 - fx) + at(x1, y1) * fx;
        top * (1.0 - fy) + bottom * fy
    })
}

fn rotation(view: View) -> [[f32; 3]; 3] {
    let (sa, ca) = view.azimuth.to_radians().sin_cos();
    let (se, ce) = view.elevation.to_radians().sin_cos();
    [[ca, 0.0, sa], [se * sa, ce, -se * ca], [-ce * sa, se, ce * ca]]
}

fn apply(m: &[[f32; 3]; 3], p: [f32; 3]) -> [f32; 3] {
    m.map(|row| row[0] * p[0] + row[1] * p[1] + row[2] * p[2])
}

fn halved(rgb: &RgbImage) -> RgbImage {
    RgbImage::from_fn(rgb.width() / 2, rgb.height() / 2, |x, y| {
        let sum = |c: usize| -> u16 {
            let at = |dx, dy| u16::from(rgb.get_pixel(2 * x + dx, 2 * y + dy).0[c]);
            at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)
        };
        Rgb([0, 1, 2].map(|c| (sum(c) / 4) as u8))
    })
}
