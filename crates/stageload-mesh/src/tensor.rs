//! Tensor operations that more than one stage uses; all take and give `[batch, channels, h, w]`.

use tch::Tensor;

/// Bilinear resize to `h`×`w`.
pub(crate) fn bilinear(x: &Tensor, h: i64, w: i64) -> Tensor {
    x.upsample_bilinear2d([h, w], false, None, None)
}

/// Mean over `k`×`k` blocks.
pub(crate) fn pool(x: &Tensor, k: i64) -> Tensor {
    if k == 1 { x.shallow_clone() } else { x.avg_pool2d([k, k], [k, k], [0, 0], false, true, None) }
}

/// Mean over a (2r+1)² window; pixels outside the picture do not count.
pub(crate) fn box_mean(x: &Tensor, r: i64) -> Tensor {
    let k = 2 * r + 1;
    let rows = x.avg_pool2d([1, k], [1, 1], [0, r], false, false, None);
    rows.avg_pool2d([k, 1], [1, 1], [r, 0], false, false, None)
}

/// Gaussian blur; the picture's last row and column are carried on outside it. A wide blur is made
/// on a smaller picture: beyond four pixels of sigma, shrinking first cannot be seen.
pub(crate) fn blur(x: &Tensor, sigma: f64) -> Tensor {
    let size = x.size();
    let (h, w) = (size[2], size[3]);
    if sigma > 6.0 && h % 2 == 0 && w % 2 == 0 {
        // Averaging 2×2 and going back bilinearly blur by about half a pixel of the small one.
        let small = blur(&pool(x, 2), ((sigma / 2.0).powi(2) - 0.25).sqrt());
        return bilinear(&small, h, w);
    }
    let r = (4.0 * sigma + 0.5) as i64;
    let taps: Vec<f32> =
        (-r..=r).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp() as f32).collect();
    let taps = Tensor::from_slice(&taps).to_device(x.device());
    let taps = &taps / taps.sum(tch::Kind::Float);
    let k = 2 * r + 1;
    let planes = x.view([size[0] * size[1], 1, h, w]);
    let rows = planes.replication_pad2d([r, r, 0, 0]).conv2d::<Tensor>(
        &taps.view([1, 1, 1, k]),
        None,
        1,
        0,
        1,
        1,
    );
    let both = rows.replication_pad2d([0, 0, r, r]).conv2d::<Tensor>(
        &taps.view([1, 1, k, 1]),
        None,
        1,
        0,
        1,
        1,
    );
    both.view([size[0], size[1], h, w])
}
