//! The camera: orthographic, a square around the subject, pixel-aligned with the picture.

use std::path::Path;

use image::RgbImage;

use crate::picture::{Picture, Region, resize_plane, resize_rgb};
use crate::plane::{Mask, Plane};
use crate::{Error, Result};

/// Free border around the subject, as a share of the square's side.
const MARGIN: f64 = 0.04;
/// A subject below or above these shares of the picture is most likely a failed matte.
const LEAST_COVERAGE: f64 = 0.01;
const MOST_COVERAGE: f64 = 0.98;

/// The subject's square, cut out and sampled.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Left, top and side of the square in pixels of the picture; it may reach over its edges.
    square: (f64, f64, f64),
}

impl Frame {
    /// The square around the subject.
    pub(crate) fn around(matte: &Plane, path: &Path) -> Result<Self> {
        let subject = matte.above(0.5);
        let share = subject.count() as f64 / subject.data.len() as f64;
        if share < LEAST_COVERAGE {
            let why = format!(
                "the subject covers {:.1} % of the picture, which is too little; crop closer to it",
                share * 100.0
            );
            return Err(Error::no_subject(path, why));
        }
        if share > MOST_COVERAGE {
            let why = "no background is left around the subject; give a picture with some, or a \
                       PNG with the background cut out";
            return Err(Error::no_subject(path, why));
        }
        let (x0, x1) = extent(subject.width, |x| column_has(&subject, x));
        let (y0, y1) = extent(subject.height, |y| row_has(&subject, y));
        let side = (x1 - x0).max(y1 - y0) / (1.0 - 2.0 * MARGIN);
        let square = (f64::midpoint(x0, x1) - side / 2.0, f64::midpoint(y0, y1) - side / 2.0, side);
        Ok(Self { square })
    }

    /// Side of the square in pixels of the picture.
    pub(crate) fn side(&self) -> f64 {
        self.square.2
    }

    /// The square's colours at `n`×`n`; outside the picture its last row or column is carried on.
    pub(crate) fn rgb(&self, picture: &Picture, n: usize) -> RgbImage {
        let (padded, region) = self.padded(picture.width(), picture.height());
        let wide = padded.rgb(&picture.rgb);
        resize_rgb(&wide, region, n as u32, n as u32)
    }

    /// The square's share of a plane at `n`×`n`, carried on like the colours.
    pub(crate) fn plane(&self, plane: &Plane, n: usize) -> Plane {
        let (padded, region) = self.padded(plane.width, plane.height);
        resize_plane(&padded.plane(plane), region, n as u32, n as u32)
    }

    /// True where a grid point of the `n`×`n` square lies inside a picture of this size.
    pub(crate) fn window(&self, width: usize, height: usize, n: usize) -> Mask {
        let (left, top, side) = self.square;
        let inside = |from: f64, end: usize| -> Vec<bool> {
            let at = |i: usize| from + (i as f64 + 0.5) / n as f64 * side;
            (0..n).map(|i| (0.5..=end as f64 - 0.5).contains(&at(i))).collect()
        };
        let (xs, ys) = (inside(left, width), inside(top, height));
        let data = ys.iter().flat_map(|&y| xs.iter().map(move |&x| x && y)).collect();
        Mask { width: n, height: n, data }
    }

    fn padded(&self, width: usize, height: usize) -> (Padding, Region) {
        let (left, top, side) = self.square;
        let over = |v: f64| v.max(0.0).ceil() as usize;
        let padding = Padding {
            left: over(-left),
            top: over(-top),
            width: width + over(-left) + over(left + side - width as f64),
            height: height + over(-top) + over(top + side - height as f64),
        };
        let region = Region {
            left: left + padding.left as f64,
            top: top + padding.top as f64,
            width: side,
            height: side,
        };
        (padding, region)
    }
}

/// A picture's place in a larger one.
struct Padding {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Padding {
    fn rgb(&self, rgb: &RgbImage) -> RgbImage {
        let (w, h) = (rgb.width() as usize, rgb.height() as usize);
        RgbImage::from_fn(self.width as u32, self.height as u32, |x, y| {
            let (x, y) = self.source(x as usize, y as usize, w, h);
            *rgb.get_pixel(x as u32, y as u32)
        })
    }

    fn plane(&self, plane: &Plane) -> Plane {
        let mut data = Vec::with_capacity(self.width * self.height);
        for y in 0..self.height {
            for x in 0..self.width {
                let (x, y) = self.source(x, y, plane.width, plane.height);
                data.push(plane.data[y * plane.width + x]);
            }
        }
        Plane::new(self.width, self.height, data)
    }

    fn source(&self, x: usize, y: usize, w: usize, h: usize) -> (usize, usize) {
        (x.saturating_sub(self.left).min(w - 1), y.saturating_sub(self.top).min(h - 1))
    }
}

fn extent(n: usize, has: impl Fn(usize) -> bool) -> (f64, f64) {
    let first = (0..n).find(|&i| has(i)).unwrap_or(0);
    let last = (0..n).rev().find(|&i| has(i)).unwrap_or(n - 1);
    (first as f64, (last + 1) as f64)
}

fn column_has(mask: &Mask, x: usize) -> bool {
    (0..mask.height).any(|y| mask.data[y * mask.width + x])
}

fn row_has(mask: &Mask, y: usize) -> bool {
    mask.data[y * mask.width..(y + 1) * mask.width].iter().any(|&v| v)
}
