//! What is subject and what is not: the picture's own alpha, or U²-Net sharpened along the
//! picture's edges by a guided filter (He et al. 2013; the coefficients on a smaller picture,
//! He and Sun 2015).

use std::path::Path;

use stageload_torch::Weights;
use tch::{Device, Kind, Tensor};

use crate::components::Regions;
use crate::distance::dilate;
use crate::picture::{Picture, Region, resize_rgb};
use crate::plane::{Mask, Plane};
use crate::tensor::{bilinear, box_mean};
use crate::{Error, Result};

/// The side U²-Net was trained at.
const NET_SIDE: u32 = 320;
/// Below this the net has seen nothing that stands out: on plain and noise pictures its highest
/// answer stays under 0.2, on the five test photos over 0.95.
const LEAST_SALIENCY: f64 = 0.4;
/// Softness of the guided filter, on colours in 0..1.
const GUIDE_EPS: f64 = 1e-4;
/// The guide's longest side; its coefficients are smooth, so more changes nothing to see.
const GUIDE_SIDE: u32 = 1024;
/// Pieces smaller than this share of the largest are dropped.
const LEAST_PIECE: f64 = 0.05;
/// Holes smaller than this share of the subject are filled.
const PIN_HOLE: f64 = 0.0008;

/// How much of each pixel is subject, in 0..1.
pub(crate) fn from_alpha(alpha: &Plane) -> Plane {
    cleaned(alpha.clone())
}

/// How much of each pixel is subject, in 0..1, as U²-Net sees it.
pub(crate) fn from_net(
    weights: &Weights,
    picture: &Picture,
    path: &Path,
    device: Device,
) -> Result<Plane> {
    let saliency = saliency(weights, picture, device)?;
    let (low, high) = (saliency.min().double_value(&[]), saliency.max().double_value(&[]));
    if high < LEAST_SALIENCY {
        let why = "no subject stands out from the background; crop closer, or give a PNG with the \
                   background cut out";
        return Err(Error::no_subject(path, why));
    }
    let saliency = (saliency - low) / (high - low);
    let size = [picture.height() as i64, picture.width() as i64];
    let coarse = saliency.upsample_bicubic2d(size, false, None, None).clamp(0.0, 1.0);
    Ok(cleaned(sharpened(picture, &coarse, device)))
}

fn saliency(weights: &Weights, picture: &Picture, device: Device) -> Result<Tensor> {
    let whole = Region::whole(picture.width(), picture.height());
    let small = resize_rgb(&picture.rgb, whole, NET_SIDE, NET_SIDE);
    let x = rgb_tensor(&small, device);
    let x = &x / x.max().clamp_min(1.0 / 255.0);
    let per_channel = |v: [f32; 3]| Tensor::from_slice(&v).view([1, 3, 1, 1]).to_device(device);
    let mean = per_channel([0.485, 0.456, 0.406]);
    let deviation = per_channel([0.229, 0.224, 0.225]);
    Ok(crate::u2netp::saliency(weights, &((x - mean) / deviation))?)
}

/// A picture as `[1, 3, h, w]` in 0..1.
pub(crate) fn rgb_tensor(rgb: &image::RgbImage, device: Device) -> Tensor {
    let (w, h) = (i64::from(rgb.width()), i64::from(rgb.height()));
    let bytes = Tensor::from_slice(rgb.as_raw()).view([1, h, w, 3]).to_device(device);
    bytes.permute([0, 3, 1, 2]).to_kind(Kind::Float) / 255.0
}

/// The guided filter's answer in a band along the net's own edge, the net's elsewhere.
fn sharpened(picture: &Picture, coarse: &Tensor, device: Device) -> Plane {
    let side = picture.width().max(picture.height());
    let reach = (side as f32 / NET_SIDE as f32 * 2.0).round().max(2.0);
    let guided = Plane::from_tensor(&guided(picture, coarse, reach, device));
    let coarse = Plane::from_tensor(coarse);
    let unsure: Vec<bool> = coarse.data.iter().map(|a| (0.1..0.9).contains(a)).collect();
    let unsure = Mask { width: coarse.width, height: coarse.height, data: unsure };
    let band = dilate(&unsure, reach);
    let chosen = coarse.data.iter().zip(&guided.data).zip(&band.data);
    let data = chosen.map(|((&net, &sharp), &in_band)| if in_band { sharp } else { net });
    Plane::new(coarse.width, coarse.height, data.collect())
}

fn guided(picture: &Picture, coarse: &Tensor, reach: f32, device: Device) -> Tensor {
    let (w, h) = (picture.rgb.width(), picture.rgb.height());
    let scale = (f64::from(GUIDE_SIDE) / f64::from(w.max(h))).min(1.0);
    let size = |n: u32| (f64::from(n) * scale).round().max(1.0) as u32;
    let (gw, gh) = (size(w), size(h));
    let whole = Region::whole(w as usize, h as usize);
    let guide = rgb_tensor(&resize_rgb(&picture.rgb, whole, gw, gh), device);
    let r = (f64::from(reach) * scale).round().max(2.0) as i64;
    let target = bilinear(coarse, i64::from(gh), i64::from(gw));
    let (a, b) = guide_coefficients(&guide, &target, r);
    let (a, b) = (box_mean(&a, r), box_mean(&b, r));
    let full = |x: &Tensor| bilinear(x, i64::from(h), i64::from(w));
    let picture = rgb_tensor(&picture.rgb, device);
    ((full(&a) * picture).sum_dim_intlist(1, true, Kind::Float) + full(&b)).clamp(0.0, 1.0)
}

/// Per pixel the line a·colour + b that fits the target best in the window around it.
fn guide_coefficients(guide: &Tensor, target: &Tensor, r: i64) -> (Tensor, Tensor) {
    let mean_i = box_mean(guide, r);
    let mean_p = box_mean(target, r);
    let cov = box_mean(&(guide * target), r) - &mean_i * &mean_p;
    let a = solve_covariance(guide, &mean_i, &cov, r);
    let b = mean_p - (&a * mean_i).sum_dim_intlist(1, true, Kind::Float);
    (a, b)
}

/// Solves (Σ + ε)·a = cov per pixel by the adjugate of the symmetric 3×3 matrix.
fn solve_covariance(guide: &Tensor, mean: &Tensor, cov: &Tensor, r: i64) -> Tensor {
    let channel = |x: &Tensor, i: i64| x.narrow(1, i, 1);
    let entry = |i: i64, j: i64| {
        let product = channel(guide, i) * channel(guide, j);
        let v = box_mean(&product, r) - channel(mean, i) * channel(mean, j);
        if i == j { v + GUIDE_EPS } else { v }
    };
    let (rr, rg, rb) = (entry(0, 0), entry(0, 1), entry(0, 2));
    let (gg, gb, bb) = (entry(1, 1), entry(1, 2), entry(2, 2));
    let c00 = &gg * &bb - &gb * &gb;
    let c01 = &gb * &rb - &rg * &bb;
    let c02 = &rg * &gb - &gg * &rb;
    let c11 = &rr * &bb - &rb * &rb;
    let c12 = &rg * &rb - &rr * &gb;
    let c22 = &rr * &gg - &rg * &rg;
    let det = &rr * &c00 + &rg * &c01 + &rb * &c02;
    let (x, y, z) = (channel(cov, 0), channel(cov, 1), channel(cov, 2));
    let a0 = &c00 * &x + &c01 * &y + &c02 * &z;
    let a1 = &c01 * &x + &c11 * &y + &c12 * &z;
    let a2 = &c02 * &x + &c12 * &y + &c22 * &z;
    Tensor::cat(&[a0, a1, a2], 1) / det
}

/// Without specks and pin holes.
fn cleaned(mut matte: Plane) -> Plane {
    let subject = matte.above(0.5);
    let pieces = Regions::of(&subject);
    let least = LEAST_PIECE * pieces.largest() as f64;
    let kept = pieces.filter(|size| size as f64 >= least);
    for (i, value) in matte.data.iter_mut().enumerate() {
        if subject.data[i] && !kept[i] {
            *value = 0.0;
        }
    }
    let subject = Mask { data: kept, ..subject };
    let most = PIN_HOLE * subject.count() as f64;
    let holes = Regions::of(&subject.not()).filter(|size| (size as f64) < most);
    for (value, hole) in matte.data.iter_mut().zip(holes) {
        if hole {
            *value = 1.0;
        }
    }
    matte
}
