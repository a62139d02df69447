//! What a mesh's front is held against: the picture as the camera stage cut it out. For tests and
//! benchmarks, which draw the mesh and compare.

use std::path::Path;

use image::RgbImage;

use crate::distance::erode;
use crate::picture::Picture;
use crate::plane::Mask;
use crate::{Result, pipeline};

/// The subject's square at some size.
#[derive(Debug)]
pub struct Front {
    /// The picture.
    pub rgb: RgbImage,
    /// Where the subject is.
    pub inside: Vec<bool>,
    /// Where it is and no rim is near: the rim's mixed pixels are replaced on purpose.
    pub core: Vec<bool>,
}

/// Cuts the subject of a picture out as the pipeline does, `side`×`side` pixels large.
///
/// # Errors
/// As [`crate::run`].
pub fn front_of(path: &Path, side: usize) -> Result<Front> {
    let _inference = tch::no_grad_guard();
    let picture = Picture::open(path)?;
    let (rgb, matte, window) = pipeline::cut_out(&picture, path, side)?;
    let inside = matte.above(0.5).data.iter().zip(&window.data).map(|(a, b)| *a && *b).collect();
    let inside = Mask { width: side, height: side, data: inside };
    // Three pixels at 512, as the prototype's figures were taken.
    let core = erode(&inside, (side / 170).max(2) as f32);
    Ok(Front { rgb, inside: inside.data, core: core.data })
}
