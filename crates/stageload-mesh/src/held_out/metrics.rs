//! How far two sheets are from the true ones.

use rayon::prelude::*;

use super::view::Sight;
use crate::distance::erode;
use crate::plane::{Mask, Plane};

/// Front and back depth in picture widths.
pub(super) struct Sheets {
    pub(super) front: Plane,
    pub(super) back: Plane,
}

/// Means over one view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Errors {
    /// Depth error of the front sheet, in picture widths.
    pub(super) front: f32,
    /// Angle between the front's normals, in degrees.
    pub(super) normal: f32,
    /// Sum of both mean nearest distances; the longest visible side is 2.
    pub(super) chamfer: f32,
}

impl Errors {
    pub(super) fn plus(self, other: &Self, share: f32) -> Self {
        Self {
            front: self.front + other.front * share,
            normal: self.normal + other.normal * share,
            chamfer: self.chamfer + other.chamfer * share,
        }
    }
}

/// Points sampled from each sheet.
const POINTS: usize = 2500;
/// The subject fills 0.92 of the picture, and counts as 2 long.
const SCALE: f32 = 2.0 / 0.92;

/// Errors of sheets; their common shift along the view is free, since no picture tells it.
pub(super) fn errors(sheets: &Sheets, truth: &Sight) -> Errors {
    let subject = truth.matte.above(0.5);
    let inner = erode(&subject, 1.5);
    let shift = median(inside(&inner).map(|i| {
        let true_mid = truth.front.data[i] + truth.back.data[i];
        (true_mid - sheets.front.data[i] - sheets.back.data[i]) / 2.0
    }));
    let front = sheets.front.map(|z| z + shift);
    let back = sheets.back.map(|z| z + shift);
    let depth = mean(inside(&inner).map(|i| (front.data[i] - truth.front.data[i]).abs()));
    let normal = mean(inside(&erode(&subject, 4.0)).map(|i| {
        let (a, b) = (normal(&front, i), normal(&truth.front, i));
        (0..3).map(|c| a[c] * b[c]).sum::<f32>().clamp(-1.0, 1.0).acos().to_degrees()
    }));
    let ours = [points(&front, &subject), points(&back, &subject)].concat();
    let theirs = [points(&truth.front, &subject), points(&truth.back, &subject)].concat();
    let chamfer = (nearest(&ours, &theirs) + nearest(&theirs, &ours)) * SCALE;
    Errors { front: depth, normal, chamfer }
}

fn inside(mask: &Mask) -> impl Iterator<Item = usize> + '_ {
    (0..mask.data.len()).filter(|&i| mask.data[i])
}

fn mean(values: impl Iterator<Item = f32>) -> f32 {
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
    sum / f32::max(n, 1.0)
}

fn median(values: impl Iterator<Item = f32>) -> f32 {
    let mut values: Vec<f32> = values.collect();
    values.sort_unstable_by(f32::total_cmp);
    values[values.len() / 2]
}

fn gradient(z: &Plane, i: usize) -> (f32, f32) {
    let n = z.width;
    let dx = (z.data[(i + 1).min(z.data.len() - 1)] - z.data[i.saturating_sub(1)]) / 2.0;
    let dy = (z.data[(i + n).min(z.data.len() - 1)] - z.data[i.saturating_sub(n)]) / 2.0;
    (dx * n as f32, dy * n as f32)
}

fn normal(z: &Plane, i: usize) -> [f32; 3] {
    let (dx, dy) = gradient(z, i);
    let length = (dx * dx + dy * dy + 1.0).sqrt();
    [-dx / length, dy / length, 1.0 / length]
}

/// Points spread evenly over a sheet's area, walls included up to a slope of 20.
fn points(z: &Plane, subject: &Mask) -> Vec<[f32; 3]> {
    let n = z.width;
    let area = |i: usize| {
        let (dx, dy) = gradient(z, i);
        (1.0 + (dx * dx + dy * dy).min(400.0)).sqrt()
    };
    let total: f32 = inside(subject).map(area).sum();
    let (mut sum, mut out) = (0.0, Vec::with_capacity(POINTS));
    for i in inside(subject) {
        sum += area(i);
        while out.len() < POINTS && sum >= (out.len() as f32 + 0.5) * total / POINTS as f32 {
            let at = |i: usize| (i as f32 + 0.5) / n as f32;
            out.push([at(i % n), at(i / n), z.data[i]]);
        }
    }
    out
}

/// Mean distance from each point to the nearest of the others.
fn nearest(from: &[[f32; 3]], to: &[[f32; 3]]) -> f32 {
    let square = |a: &[f32; 3], b: &[f32; 3]| (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f32>();
    let sum: f32 = from
        .par_iter()
        .map(|p| to.iter().map(|q| square(p, q)).fold(f32::MAX, f32::min).sqrt())
        .sum();
    sum / from.len() as f32
}
