//! The learned shape prior: a small U-Net that reads a 64×64 cut-out and gives the mid surface and
//! the thickness; trained by `training/train.py`. Without it the shape is the plain inflation.

use stageload_torch::{Result, Weights};
use tch::{Kind, Tensor};

use crate::distance::nearest;
use crate::plane::{Mask, Plane};
use crate::tensor::{bilinear, blur, pool};

/// The side the net was trained at.
const SIDE: i64 = 64;
/// Thickness of the plain inflation against the round one; the best constant by eye.
const CLASSICAL_RATIO: f32 = 0.9;
/// Channels of a group in the normalisation.
const GROUPS: i64 = 4;
const BLOCKS_DOWN: usize = 4;

/// How a subject's two sheets lie: front at `mid + ratio·√u`, back at `mid − ratio·√u`.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Mid surface in pixels of its grid, towards the viewer.
    pub(crate) mid: Plane,
    /// Thickness against the round inflation's.
    pub(crate) ratio: Plane,
}

impl Shape {
    /// The plain inflation, for when there is no net.
    pub(crate) fn classical(n: usize) -> Self {
        Self { mid: Plane::filled(n, n, 0.0), ratio: Plane::filled(n, n, CLASSICAL_RATIO) }
    }

    /// What the net says of a cut-out: `rgb` `[1, 3, n, n]` in 0..1 and the matte of the same size.
    pub(crate) fn learned(weights: &Weights, rgb: &Tensor, matte: &Plane) -> Result<Self> {
        let device = rgb.device();
        let subject = matte.above(0.5);
        let (small_rgb, small_subject) = cut_out(rgb, &subject.plane().tensor(device));
        let root = root_potential(&small_subject);
        let (mid, ratio) = mirrored(weights, &small_rgb, &small_subject, &root)?;
        let spread = Spread { inside: Plane::from_tensor(&small_subject).above(0.5) };
        let n = matte.width;
        let mid = spread.to(n, &mid, 0.8, 0.5);
        let ratio = spread.to(n, &ratio, 0.8, 0.4).clamp(-2.0, 1.2).exp();
        let mid = Plane::from_tensor(&mid);
        let mean = mean_inside(&mid, &subject);
        // The net's unit is the picture's width.
        let mid = mid.map(|m| (m - mean) * n as f32);
        Ok(Self { mid, ratio: Plane::from_tensor(&ratio) })
    }
}

/// Mid surface and log thickness ratio, `[1, 1, 64, 64]`, of inputs that [`inputs`] made.
pub(crate) fn net(weights: &Weights, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut skips = Vec::with_capacity(BLOCKS_DOWN);
    let mut x = x.shallow_clone();
    for i in 0..BLOCKS_DOWN {
        let input = if i == 0 { x } else { pool(&x, 2) };
        x = block(weights, &format!("d.{i}"), &input)?;
        skips.push(x.shallow_clone());
    }
    for (i, skip) in skips.iter().rev().skip(1).enumerate() {
        let up = x.upsample_nearest2d([skip.size()[2], skip.size()[3]], None, None);
        x = block(weights, &format!("u.{i}"), &Tensor::cat(&[&up, skip], 1))?;
    }
    let y = x.f_conv2d(weights.get("o.weight")?, Some(weights.get("o.bias")?), 1, 0, 1, 1)?;
    Ok((y.narrow(1, 0, 1), y.narrow(1, 1, 1).clamp(-2.5, 1.5)))
}

fn block(weights: &Weights, name: &str, x: &Tensor) -> Result<Tensor> {
    let layer = |conv: &str, norm: &str, x: &Tensor| -> Result<Tensor> {
        let get = |what: &str| weights.get(&format!("{name}.{what}"));
        let (w, b) = (get(&format!("{conv}.weight"))?, get(&format!("{conv}.bias"))?);
        let y = x.f_conv2d(w, Some(b), 1, 1, 1, 1)?;
        let (w, b) = (get(&format!("{norm}.weight"))?, get(&format!("{norm}.bias"))?);
        Ok(y.f_group_norm(GROUPS, Some(w), Some(b), 1e-5, false)?.silu())
    };
    layer("b", "n2", &layer("a", "n1", x)?)
}

/// The seven channels the net reads: colours standardised inside the subject, the subject, the
/// root potential, and where each pixel is.
pub(crate) fn inputs(rgb: &Tensor, subject: &Tensor, root: &Tensor) -> Tensor {
    let area = subject.sum(Kind::Float).clamp_min(1.0);
    let sum = |x: &Tensor| (x * subject).sum_dim_intlist([2i64, 3].as_slice(), true, Kind::Float);
    let mean = sum(rgb) / &area;
    let centred = rgb - mean;
    let variance = (centred.square() * subject).sum(Kind::Float) / (area * 3.0);
    let colour = centred / variance.sqrt().clamp_min(0.03) * subject * 0.5;
    let n = subject.size()[2];
    let line = Tensor::linspace(-1.0, 1.0, n, (Kind::Float, subject.device()));
    let y = line.view([1, 1, n, 1]) * subject;
    let x = line.view([1, 1, 1, n]) * subject;
    Tensor::cat(&[colour, subject.shallow_clone(), root * 4.0, y, x], 1)
}

/// √u in units of the picture's width at the net's own side, exactly as the training solved it.
pub(crate) fn root_potential(subject: &Tensor) -> Tensor {
    let side = subject.size()[2];
    let mut levels = vec![side];
    while levels[levels.len() - 1] % 2 == 0 && levels[levels.len() - 1] > 12 {
        levels.push(levels[levels.len() - 1] / 2);
    }
    let mut u: Option<Tensor> = None;
    for &n in levels.iter().rev() {
        let inside = pool(subject, side / n).gt(0.5).to_kind(Kind::Float);
        let start = match u {
            Some(u) => bilinear(&u, n, n) * &inside,
            None => inside.zeros_like(),
        };
        u = Some(crate::poisson::sweep(start, &inside, 1.0 / (n * n) as f64, 60, 0.995));
    }
    u.map_or_else(|| subject.zeros_like(), |u| u.clamp_min(0.0).sqrt())
}

fn cut_out(rgb: &Tensor, subject: &Tensor) -> (Tensor, Tensor) {
    let k = subject.size()[2] / SIDE;
    let cover = pool(subject, k);
    let colour = pool(&(rgb * subject), k) / cover.clamp_min(1e-3);
    (colour, cover.gt(0.5).to_kind(Kind::Float))
}

/// The net's answer on the cut-out and on its mirror image, averaged.
fn mirrored(
    w: &Weights,
    rgb: &Tensor,
    subject: &Tensor,
    root: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (mid, ratio) = net(w, &inputs(rgb, subject, root))?;
    let flip = |x: &Tensor| x.flip([3]);
    let (mid2, ratio2) = net(w, &inputs(&flip(rgb), &flip(subject), &flip(root)))?;
    Ok(((mid + flip(&mid2)) / 2.0, (ratio + flip(&ratio2)) / 2.0))
}

/// Carries values inside the subject outwards before they are enlarged, so that no outside value
/// leaks over the outline.
struct Spread {
    inside: Mask,
}

impl Spread {
    /// `sigma` smooths on the small grid, `after` (in small pixels) on the large one.
    fn to(&self, n: usize, values: &Tensor, sigma: f64, after: f64) -> Tensor {
        let outward = Plane::from_tensor(values).gather(&nearest(&self.inside));
        let smooth = blur(&outward.tensor(values.device()), sigma);
        let large = smooth.upsample_bicubic2d([n as i64, n as i64], false, None, None);
        blur(&large, after * n as f64 / SIDE as f64)
    }
}

fn mean_inside(plane: &Plane, mask: &Mask) -> f32 {
    let inside = plane.data.iter().zip(&mask.data).filter(|(_, on)| **on);
    inside.map(|(v, _)| v).sum::<f32>() / mask.count().max(1) as f32
}
