//! U²-Net's small form (Qin et al. 2020; 1.1 M parameters): how salient each pixel is.
//!
//! Eleven U-shaped blocks, 119 convolutions in all, named in execution order as `weights/README.md`
//! lists them. Batch normalisation is folded into the weights.

use stageload_torch::{Result, Weights};
use tch::Tensor;

use crate::tensor::bilinear;

/// Saliency in 0..1, `[1, 1, h, w]`, of a picture `[1, 3, h, w]` normalised as `ImageNet`'s are.
pub(crate) fn saliency(weights: &Weights, picture: &Tensor) -> Result<Tensor> {
    let block = |name, levels, x: &Tensor| rsu(weights, name, levels, x);
    let dilated = |name, x: &Tensor| rsu_dilated(weights, name, x);
    let e1 = block("en1", 7, picture)?;
    let e2 = block("en2", 6, &half(&e1))?;
    let e3 = block("en3", 5, &half(&e2))?;
    let e4 = block("en4", 4, &half(&e3))?;
    let e5 = dilated("en5", &half(&e4))?;
    let e6 = dilated("en6", &half(&e5))?;
    let d5 = dilated("de5", &join(&e6, &e5))?;
    let d4 = block("de4", 4, &join(&d5, &e4))?;
    let d3 = block("de3", 5, &join(&d4, &e3))?;
    let d2 = block("de2", 6, &join(&d3, &e2))?;
    let d1 = block("de1", 7, &join(&d2, &e1))?;
    fuse(weights, [&d1, &d2, &d3, &d4, &d5, &e6])
}

fn fuse(weights: &Weights, outputs: [&Tensor; 6]) -> Result<Tensor> {
    let mut sides = Vec::with_capacity(6);
    for (i, x) in outputs.into_iter().enumerate() {
        let side = conv(weights, &format!("side{}", i + 1), 1, x)?;
        sides.push(sides.first().map_or_else(|| side.shallow_clone(), |s| like(&side, s)));
    }
    let all = Tensor::cat(&sides, 1);
    Ok(conv(weights, "fuse", 1, &all)?.sigmoid())
}

/// A residual U-block of `levels` levels.
fn rsu(weights: &Weights, name: &str, levels: usize, x: &Tensor) -> Result<Tensor> {
    let layer = |i: usize, d: i64, x: &Tensor| -> Result<Tensor> {
        Ok(conv(weights, &format!("{name}.conv{i}"), d, x)?.relu())
    };
    let input = layer(0, 1, x)?;
    let mut down = vec![layer(1, 1, &input)?];
    for i in 2..levels {
        let x = half(&down[i - 2]);
        down.push(layer(i, 1, &x)?);
    }
    let deepest = &down[levels - 2];
    let bottom = layer(levels, 2, deepest)?;
    let mut up = layer(levels + 1, 1, &Tensor::cat(&[&bottom, deepest], 1))?;
    for i in (0..levels - 2).rev() {
        up = layer(2 * levels - 1 - i, 1, &join(&up, &down[i]))?;
    }
    Ok(up + input)
}

/// The block for small maps: it widens its view by dilation and never shrinks.
fn rsu_dilated(weights: &Weights, name: &str, x: &Tensor) -> Result<Tensor> {
    let layer = |i: usize, d: i64, x: &Tensor| -> Result<Tensor> {
        Ok(conv(weights, &format!("{name}.conv{i}"), d, x)?.relu())
    };
    let input = layer(0, 1, x)?;
    let a = layer(1, 1, &input)?;
    let b = layer(2, 2, &a)?;
    let c = layer(3, 4, &b)?;
    let d = layer(4, 8, &c)?;
    let c = layer(5, 4, &Tensor::cat(&[&d, &c], 1))?;
    let b = layer(6, 2, &Tensor::cat(&[&c, &b], 1))?;
    Ok(layer(7, 1, &Tensor::cat(&[&b, &a], 1))? + input)
}

fn conv(weights: &Weights, name: &str, dilation: i64, x: &Tensor) -> Result<Tensor> {
    let weight = weights.get(&format!("{name}.weight"))?;
    let bias = weights.get(&format!("{name}.bias"))?;
    let padding = dilation * (weight.size()[2] / 2);
    Ok(x.f_conv2d(weight, Some(bias), 1, padding, dilation, 1)?)
}

fn half(x: &Tensor) -> Tensor {
    x.max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], true)
}

fn like(x: &Tensor, shape: &Tensor) -> Tensor {
    bilinear(x, shape.size()[2], shape.size()[3])
}

fn join(deep: &Tensor, shallow: &Tensor) -> Tensor {
    Tensor::cat(&[&like(deep, shallow), shallow], 1)
}
