//! The outline to sub-pixel precision: u carried on smoothly to negative values outside.
//!
//! Height goes with the root of the distance to the outline, so noise of the outline is amplified
//! into ridges along the rim; a low-passed matte and a blended slope keep it smooth.

use tch::Device;

use crate::distance::{distance, nearest};
use crate::plane::{Mask, Plane};
use crate::tensor::blur;

/// The low pass of the matte before its 0.5 level is taken for the outline, in pixels at 512.
const SMOOTHING: f64 = 1.3;

/// The matte as the shape sees it.
pub(crate) fn smoothed(matte: &Plane, device: Device) -> Plane {
    let sigma = SMOOTHING * matte.width as f64 / 512.0;
    Plane::from_tensor(&blur(&matte.tensor(device), sigma))
}

/// u with its zero set on the 0.5 level of the smoothed matte, negative outside.
pub(crate) fn signed(u: &Plane, inside: &Mask, matte: &Plane, device: Device) -> Plane {
    let within = distance(&inside.not());
    let depth = signed_distance(inside, &within, matte);
    let slope = rim_slope(u, inside, &within, &depth, device);
    let data = (0..u.data.len()).map(|i| {
        let (d, s) = (depth.data[i], slope.data[i]);
        if inside.data[i] {
            let w = ((d - 1.5) / 3.0).clamp(0.0, 1.0);
            ((1.0 - w) * s * d + w * u.data[i]).max(s * 0.02)
        } else {
            s * d.min(-0.02)
        }
    });
    Plane::new(u.width, u.height, data.collect())
}

/// Distance to the outline, positive inside: sub-pixel near it, pixel-exact farther off.
fn signed_distance(inside: &Mask, within: &Plane, matte: &Plane) -> Plane {
    let without = distance(inside);
    let w = matte.width;
    let data = (0..matte.data.len()).map(|i| {
        let far = if inside.data[i] { within.data[i] - 0.5 } else { 0.5 - without.data[i] };
        let near =
            ((matte.data[i] - 0.5) / (gradient(matte, i % w, i / w) + 2e-3)).clamp(-3.0, 3.0);
        let blend = ((2.6 - far.abs()) / 1.2).clamp(0.0, 1.0);
        blend * near + (1.0 - blend) * far
    });
    Plane::new(matte.width, matte.height, data.collect())
}

fn gradient(p: &Plane, x: usize, y: usize) -> f32 {
    let at = |x: usize, y: usize| p.data[y * p.width + x];
    let (x0, x1) = (x.saturating_sub(1), (x + 1).min(p.width - 1));
    let (y0, y1) = (y.saturating_sub(1), (y + 1).min(p.height - 1));
    let dx = (at(x1, y) - at(x0, y)) / (x1 - x0) as f32;
    let dy = (at(x, y1) - at(x, y0)) / (y1 - y0) as f32;
    dx.hypot(dy)
}

/// How fast u rises from the outline, measured in a band inside it and carried everywhere.
fn rim_slope(u: &Plane, inside: &Mask, within: &Plane, depth: &Plane, device: Device) -> Plane {
    let in_band: Vec<bool> =
        within.data.iter().zip(&inside.data).map(|(&d, &m)| m && d > 1.5 && d < 4.5).collect();
    let slopes = (0..u.data.len())
        .map(|i| if in_band[i] { u.data[i] / depth.data[i].max(0.7) } else { 0.0 });
    let slopes = Plane::new(u.width, u.height, slopes.collect());
    let band = Mask { data: in_band, ..*inside }.plane();
    let soft = |p: &Plane| Plane::from_tensor(&blur(&p.tensor(device), 4.0));
    let (sum, weight) = (soft(&slopes), soft(&band));
    let mean = sum.data.iter().zip(&weight.data).map(|(s, w)| s / w.max(1e-6));
    let mean = Plane::new(u.width, u.height, mean.collect());
    mean.gather(&nearest(&weight.above(1e-4)))
}
