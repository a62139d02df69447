//! Colours: two square charts, front and back, one beside the other in one atlas.
//!
//! Both sheets are height fields, so looking along z is a one-to-one map already and no unwrapper
//! is needed. Near the rim a texel covers much surface; there each is blurred by how much, or the
//! picture's last pixels would be drawn out into streaks.

use image::RgbImage;
use tch::{Device, Kind, Tensor};

use crate::distance::{distance, erode, nearest};
use crate::matte::rgb_tensor;
use crate::options::Back;
use crate::plane::Plane;
use crate::surface::{CUT, Field};
use crate::tensor::{bilinear, blur, pool};

/// Levels of the pyramid that the rim's blur picks from.
const LEVELS: i64 = 5;
/// Rim pixels of the picture that mix subject and background, per pixel of picture.
const MIXED: f64 = 1.5;

/// What the atlas is made of.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// The subject's square at the charts' size.
    pub(crate) rgb: RgbImage,
    /// Its matte at the same size.
    pub(crate) matte: Plane,
    /// Texels to a pixel of the picture.
    pub(crate) enlargement: f64,
    pub(crate) field: &'a Field,
    pub(crate) back: Back,
    pub(crate) device: Device,
}

impl Source<'_> {
    /// The atlas, twice as wide as high: the front chart, and the back chart mirrored so that it
    /// reads as seen from behind.
    pub(crate) fn atlas(&self) -> RgbImage {
        let rgb = rgb_tensor(&self.rgb, self.device);
        let trust = self.trust();
        let filled = push_pull(&rgb, &trust);
        let facing = self.facing();
        let front = foreshorten(&filled, &facing);
        let back = match self.back {
            Back::Mirror => front.shallow_clone(),
            Back::Rim => foreshorten(&self.carried_in(&rgb, &trust), &facing),
        };
        quantised(&Tensor::cat(&[front, back.flip([3])], 3))
    }

    fn side(&self) -> i64 {
        i64::from(self.rgb.width())
    }

    /// How far each texel is subject and nothing else, in 0..1.
    fn trust(&self) -> Tensor {
        let subject = self.matte.above(0.6);
        let mut radius = (self.enlargement * MIXED).round().max(2.0);
        let mut core = erode(&subject, radius as f32);
        // Something must be left to take colours from, however thin the subject is.
        while core.count() == 0 && radius > 0.5 {
            radius /= 2.0;
            core = erode(&subject, radius as f32);
        }
        let core = if core.count() == 0 { self.matte.above(0.5) } else { core };
        let core = core.plane().tensor(self.device);
        ((blur(&core, radius / 2.0) * core) * 1.2).clamp(0.0, 1.0)
    }

    /// Cosine between the sheets' normals and the view, at the charts' size. The front's relief is left
    /// out: it is the picture's own detail, and blurring by it would take that detail away again.
    fn facing(&self) -> Tensor {
        // Beyond a cut edge u is far below zero; blurred in, that would look like a cliff.
        let u = self.across_the_cut().tensor(self.device);
        let root = blur(&u, 1.0).clamp_min(1e-3).sqrt();
        let height = self.field.back.tensor(self.device) * root;
        let (dx, dy) = (slope(&height, 3), slope(&height, 2));
        let cosine = (dx.square() + dy.square() + 1.0).rsqrt();
        bilinear(&cosine, self.side(), self.side())
    }

    /// u with the values beside a cut carried on over it.
    fn across_the_cut(&self) -> Plane {
        let u = &self.field.u;
        let inside = u.map(|v| if v > CUT { 1.0 } else { 0.0 }).above(0.5);
        if inside.all() { u.clone() } else { u.gather(&nearest(&inside)) }
    }

    /// A far side without the front's picture: colours next to the outline, carried inwards, with a
    /// trace of the front's fine grain so that it does not look like plastic.
    fn carried_in(&self, rgb: &Tensor, trust: &Tensor) -> Tensor {
        let n = self.side() as f64;
        let depth = distance(&self.matte.above(0.5).not());
        let near = depth.map(|d| ((n as f32 * 0.045 - d) / (n as f32 * 0.02)).clamp(0.0, 1.0));
        let filled = push_pull(rgb, &(trust * near.tensor(self.device)));
        let deep = depth.map(|d| ((d - n as f32 * 0.03) / (n as f32 * 0.04)).clamp(0.0, 1.0));
        let deep = deep.tensor(self.device);
        let soft = filled.lerp_tensor(&blur(&filled, n * 0.012), &deep);
        let grain = rgb - blur(rgb, n * 0.006);
        let fine = grain.abs().lt(0.04).to_kind(Kind::Float);
        soft + grain * fine * deep * 0.25
    }
}

/// Central difference along a dimension.
fn slope(x: &Tensor, dim: i64) -> Tensor {
    let n = x.size()[dim as usize];
    let pad = if dim == 3 { [1, 1, 0, 0] } else { [0, 0, 1, 1] };
    let padded = x.replication_pad2d(pad);
    (padded.narrow(dim, 2, n) - padded.narrow(dim, 0, n)) * 0.5
}

/// Fills texels of no weight from coarser and coarser means of those that have some.
fn push_pull(rgb: &Tensor, weight: &Tensor) -> Tensor {
    let mut levels = vec![(rgb * weight, weight.shallow_clone())];
    while let Some((colour, weight)) = levels.last()
        && weight.size()[2] > 1
    {
        let (colour, weight) = (pool(colour, 2), pool(weight, 2));
        let full = (&weight * 4.0).clamp_max(1.0);
        levels.push((colour / weight.clamp_min(1e-6) * &full, full));
    }
    let mut filled: Option<Tensor> = None;
    for (colour, weight) in levels.iter().rev() {
        let n = weight.size()[2];
        filled = Some(match filled {
            None => colour / weight.clamp_min(1e-6),
            Some(coarse) => colour + (weight * -1.0 + 1.0) * bilinear(&coarse, n, n),
        });
    }
    filled.unwrap_or_else(|| rgb.shallow_clone())
}

/// Blurs each texel by how much surface it covers: between the pyramid levels log2(1/cosine) falls.
fn foreshorten(rgb: &Tensor, cosine: &Tensor) -> Tensor {
    let n = rgb.size()[2];
    let level = (cosine.clamp_min(0.02).log2() * -1.0 - 0.6).clamp(0.0, LEVELS as f64 - 1e-3);
    let mut out = rgb.zeros_like();
    let mut coarse = rgb.shallow_clone();
    for i in 0..=LEVELS {
        let share = ((&level - i as f64).abs() * -1.0 + 1.0).clamp_min(0.0);
        let full = if i == 0 {
            coarse.shallow_clone()
        } else {
            coarse.upsample_bicubic2d([n, n], false, None, None)
        };
        out += full * share;
        if i < LEVELS {
            coarse = pool(&coarse, 2);
        }
    }
    out
}

/// To bytes, with half a step of noise from the seeded generator: smooth fills would show bands.
fn quantised(atlas: &Tensor) -> RgbImage {
    let noise = Tensor::rand(atlas.size(), (Kind::Float, Device::Cpu)).to_device(atlas.device());
    let bytes = (atlas.clamp(0.0, 1.0) * 255.0 + noise).floor().clamp(0.0, 255.0);
    let bytes = bytes.to_kind(Kind::Uint8).permute([0, 2, 3, 1]).contiguous();
    let (h, w) = (bytes.size()[1] as u32, bytes.size()[2] as u32);
    let flat = bytes.to_device(Device::Cpu).view(-1);
    let mut data = vec![0u8; flat.numel()];
    let len = data.len();
    flat.copy_data(&mut data, len);
    RgbImage::from_raw(w, h, data).expect("three bytes a texel")
}
