//! Surface detail: the picture's own fine light and dark, as a displacement of the front sheet.

use image::RgbImage;
use tch::{Device, Tensor};

use crate::plane::{Mask, Plane};
use crate::tensor::blur;

/// Displacement at full relief, as a share of the grid's side: more looks like noise.
const AMOUNT: f32 = 0.01;
/// Two bands of detail: inner and outer sigma as shares of the side, and weight.
const BANDS: [(f64, f64, f64); 2] = [(0.0022, 0.007, 0.45), (0.005, 0.02, 1.0)];
/// Detail fades where the subject is thinner than this share of the side.
const FADE: f32 = 0.10;

/// Relative change of the front sheet's height, at most ±0.35; `strength` is 0..1.
pub(crate) fn relief(
    rgb: &RgbImage,
    inside: &Mask,
    height: &Plane,
    strength: f32,
    device: Device,
) -> Plane {
    let side = inside.width;
    let luminance = rgb.pixels().map(|p| {
        let [r, g, b] = p.0.map(f32::from);
        ((0.299 * r + 0.587 * g + 0.114 * b) / 255.0 + 0.06).ln()
    });
    let luminance = Plane::new(side, side, luminance.collect()).tensor(device);
    let detail = Plane::from_tensor(&bands(&luminance, &inside.plane().tensor(device), side));
    let within = || detail.data.iter().zip(&inside.data).filter(|(_, on)| **on);
    let mean = within().map(|(v, _)| v.abs()).sum::<f32>() / inside.count().max(1) as f32;
    let contrast = mean * 2.5 + 0.05;
    let amount = AMOUNT * strength * side as f32;
    let data = (0..detail.data.len()).map(|i| {
        if !inside.data[i] {
            return 0.0;
        }
        let h = height.data[i];
        let fade = (h / (FADE * side as f32)).clamp(0.0, 1.0);
        ((detail.data[i] / contrast).tanh() * amount * fade / h.max(1.0)).clamp(-0.35, 0.35)
    });
    Plane::new(side, side, data.collect())
}

/// Band-passed luminance, blurred inside the subject only.
fn bands(luminance: &Tensor, inside: &Tensor, side: usize) -> Tensor {
    let masked = luminance * inside;
    let soft = |sigma: f64| {
        let sigma = sigma * side as f64;
        blur(&masked, sigma) / blur(inside, sigma).clamp_min(1e-3)
    };
    let band = |(inner, outer, weight)| (soft(inner) - soft(outer)) * weight;
    band(BANDS[0]) + band(BANDS[1])
}
