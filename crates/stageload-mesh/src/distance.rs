//! Exact Euclidean distances on a pixel grid (Felzenszwalb and Huttenlocher's lower envelope of
//! parabolas), and the nearest pixel itself.

use rayon::prelude::*;

use crate::plane::{Mask, Plane};

/// For each pixel the index of the nearest true pixel; all zeros when none is true.
pub(crate) fn nearest(mask: &Mask) -> Vec<u32> {
    let (w, h) = (mask.width, mask.height);
    // Rows first: the nearest true column of each pixel's own row, or none.
    let columns: Vec<u32> = mask.data.par_chunks(w).flat_map_iter(nearest_in_row).collect();
    let mut by_column = vec![0u32; w * h];
    by_column.par_chunks_mut(h).enumerate().for_each(|(x, out)| column(&columns, w, x, out));
    let mut index = vec![0u32; w * h];
    index.par_chunks_mut(w).enumerate().for_each(|(y, row)| {
        for (x, out) in row.iter_mut().enumerate() {
            *out = by_column[x * h + y];
        }
    });
    index
}

/// Distance of each pixel's centre to that of the nearest true pixel; 0 on those.
pub(crate) fn distance(mask: &Mask) -> Plane {
    let w = mask.width;
    let index = nearest(mask);
    let data = index.par_iter().enumerate().map(|(i, &j)| {
        let dx = (i % w) as f32 - (j as usize % w) as f32;
        let dy = (i / w) as f32 - (j as usize / w) as f32;
        dx.hypot(dy)
    });
    Plane::new(w, mask.height, data.collect())
}

/// True where no false pixel is within `radius`.
pub(crate) fn erode(mask: &Mask, radius: f32) -> Mask {
    if mask.all() { mask.clone() } else { distance(&mask.not()).above(radius) }
}

/// True where a true pixel is within `radius`.
pub(crate) fn dilate(mask: &Mask, radius: f32) -> Mask {
    if mask.count() == 0 {
        return mask.clone();
    }
    let far = distance(mask);
    Mask { data: far.data.iter().map(|&d| d <= radius).collect(), ..*mask }
}

const NONE: u32 = u32::MAX;

fn nearest_in_row(row: &[bool]) -> Vec<u32> {
    let mut out = vec![NONE; row.len()];
    let mut last = NONE;
    for x in 0..row.len() {
        if row[x] {
            last = x as u32;
        }
        out[x] = last;
    }
    let mut next = NONE;
    for x in (0..row.len()).rev() {
        if row[x] {
            next = x as u32;
        }
        if next != NONE && (out[x] == NONE || next - (x as u32) < x as u32 - out[x]) {
            out[x] = next;
        }
    }
    out
}

/// One column: rows compete by (vertical distance)² + (their own horizontal distance)².
fn column(columns: &[u32], w: usize, x: usize, out: &mut [u32]) {
    let side = |y: usize| {
        let c = columns[y * w + x];
        (c != NONE).then(|| (c as f32 - x as f32).powi(2))
    };
    let mut hull: Vec<(usize, f32, f32)> = Vec::with_capacity(out.len()); // row, cost, from
    for y in 0..out.len() {
        let Some(cost) = side(y) else { continue };
        let mut from = f32::NEG_INFINITY;
        while let Some(&(py, pcost, pfrom)) = hull.last() {
            let (a, b) = (cost + (y * y) as f32, pcost + (py * py) as f32);
            from = (a - b) / (2.0 * (y - py) as f32);
            if from > pfrom {
                break;
            }
            hull.pop();
            from = f32::NEG_INFINITY;
        }
        hull.push((y, cost, from));
    }
    let mut k = 0;
    for (y, out) in out.iter_mut().enumerate() {
        while k + 1 < hull.len() && hull[k + 1].2 < y as f32 {
            k += 1;
        }
        if let Some(&(row, ..)) = hull.get(k) {
            *out = (row * w) as u32 + columns[row * w + x];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brute(mask: &Mask, x: usize, y: usize) -> f32 {
        let mut best = f32::MAX;
        for (i, _) in mask.data.iter().enumerate().filter(|(_, on)| **on) {
            let (dx, dy) = (i % mask.width, i / mask.width);
            best = best.min((x as f32 - dx as f32).hypot(y as f32 - dy as f32));
        }
        best
    }

    #[test]
    fn distances_equal_those_found_by_looking_at_every_pixel() {
        for seed in 1u32..20 {
            let (w, h) = (23, 17);
            let data = (0..w * h)
                .map(|i: u32| (i * seed).wrapping_mul(2_654_435_761) >> 24 < seed)
                .collect();
            let mask = Mask { width: w as usize, height: h as usize, data };
            if mask.count() == 0 {
                continue;
            }
            let fast = distance(&mask);
            for y in 0..mask.height {
                for x in 0..mask.width {
                    let slow = brute(&mask, x, y);
                    assert!((fast.data[y * mask.width + x] - slow).abs() < 1e-4, "{seed} {x} {y}");
                }
            }
        }
    }

    #[test]
    fn eroding_undoes_dilating_a_dot() {
        let mut dot = Mask { width: 31, height: 31, data: vec![false; 961] };
        dot.data[15 * 31 + 15] = true;
        let disc = dilate(&dot, 6.0);
        assert_eq!(disc.count(), 113);
        assert!(erode(&disc, 5.0).data[15 * 31 + 15]);
    }
}
