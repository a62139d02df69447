//! Reading a picture file: any format people have, upright, at most 2048 pixels a side.

use std::io::{BufReader, Cursor};
use std::path::Path;
use std::process::Command;

use fast_image_resize as fir;
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{F32, U8x3};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits, RgbImage};
use sha2::{Digest, Sha256};

use crate::plane::Plane;
use crate::{Error, Result};

/// More pixels than nearly any camera's single shot; decoded they take 0.3 to 0.8 GB.
const MAX_PIXELS: u64 = 100_000_000;
/// No file of so many pixels is larger.
const MAX_FILE: u64 = 2 << 30;
/// Below this there is nothing to see a subject in.
const MIN_SIDE: u32 = 32;
/// Beyond this a side is shrunk: the finest grid samples 1024 points.
const WORKING_SIDE: u32 = 2048;
/// Share of pixels that must be see-through before a picture's own alpha is believed.
const ALPHA_SHARE: f64 = 0.005;

const FORMATS: &str = "PNG, JPEG, WebP, TIFF, BMP, GIF (and HEIC on macOS)";

/// A picture ready for work.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    pub(crate) rgb: RgbImage,
    /// The picture's own alpha in 0..1, when it has one worth the name.
    pub(crate) alpha: Option<Plane>,
    /// SHA-256 of the file, in hex.
    pub(crate) sha256: String,
}

impl Picture {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = read(path)?;
        let sha256 = hex(&Sha256::digest(&bytes));
        let bytes = if is_heic(&bytes) { heic_to_png(path)? } else { bytes };
        let image = decode(path, &bytes)?;
        drop(bytes);
        let (rgb, alpha) = shrink(split(image), path)?;
        Ok(Self { rgb, alpha, sha256 })
    }

    pub(crate) fn width(&self) -> usize {
        self.rgb.width() as usize
    }

    pub(crate) fn height(&self) -> usize {
        self.rgb.height() as usize
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |source| Error::Unreadable { path: path.into(), source };
    // Asked before it is opened: opening a pipe would wait for its writer.
    let kind = std::fs::metadata(path).map_err(unreadable)?;
    if kind.is_dir() {
        return Err(Error::bad(path, "this is a folder; name one picture file"));
    }
    if !kind.is_file() {
        return Err(Error::bad(path, "this is a device or a pipe; name a picture file"));
    }
    if kind.len() > MAX_FILE {
        return Err(Error::bad(
            path,
            "the file is over 2 GB; no picture needs that, export it again",
        ));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    if bytes.is_empty() {
        return Err(Error::bad(path, "the file is empty; export the picture again"));
    }
    Ok(bytes)
}

fn decode(path: &Path, bytes: &[u8]) -> Result<DynamicImage> {
    let mut decoder = reader(path, bytes)?.into_decoder().map_err(|e| damaged(path, &e))?;
    let (w, h) = decoder.dimensions();
    check_size(path, w, h)?;
    check_whole(path, bytes)?;
    decoder.set_limits(Limits::no_limits()).map_err(|e| damaged(path, &e))?;
    let orientation = decoder.orientation().map_err(|e| damaged(path, &e))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|e| damaged(path, &e))?;
    image.apply_orientation(orientation);
    Ok(image)
}

fn reader<'a>(path: &Path, bytes: &'a [u8]) -> Result<ImageReader<BufReader<Cursor<&'a [u8]>>>> {
    let reader = ImageReader::new(BufReader::new(Cursor::new(bytes)));
    let mut reader = reader.with_guessed_format().map_err(|e| damaged(path, &e.into()))?;
    if reader.format().is_none() {
        return Err(Error::bad(path, format!("not a picture; this program reads {FORMATS}")));
    }
    reader.no_limits();
    Ok(reader)
}

fn damaged(path: &Path, error: &image::ImageError) -> Error {
    let what = match error {
        image::ImageError::Unsupported(_) => "export it as an 8 or 16 bit PNG or as a JPEG",
        _ => "export or download it again",
    };
    Error::bad(path, format!("cannot decode it ({error}); {what}"))
}

fn check_size(path: &Path, w: u32, h: u32) -> Result<()> {
    if u64::from(w) * u64::from(h) > MAX_PIXELS {
        let megapixels = MAX_PIXELS / 1_000_000;
        let why = format!(
            "{w}x{h} pixels are over the limit of {megapixels} megapixels; scale it down \
             (2048 pixels a side are all that is used)"
        );
        return Err(Error::bad(path, why));
    }
    if w.min(h) < MIN_SIDE {
        let why = format!("{w}x{h} pixels are too few; at least {MIN_SIDE}x{MIN_SIDE} are needed");
        return Err(Error::bad(path, why));
    }
    Ok(())
}

/// The JPEG decoder fills what is missing with grey; a cut-off download must not become a mesh.
fn check_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(&[0xFF, 0xD8]) && !jpeg_has_an_end(bytes) {
        return Err(Error::bad(path, "the JPEG is cut off; export or download it again"));
    }
    Ok(())
}

/// Whether the end marker follows the picture's data. Headers are stepped over by their length: the
/// thumbnail in them has an end marker of its own.
fn jpeg_has_an_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xFF, marker]) = bytes.get(at..at + 2) {
        match marker {
            0xDA => return bytes[at..].windows(2).any(|pair| pair == [0xFF, 0xD9]),
            // Padding, and markers without a length.
            0xFF => at += 1,
            0x01 | 0xD0..=0xD8 => at += 2,
            _ => match bytes.get(at + 2..at + 4) {
                Some(&[high, low]) => at += 2 + usize::from(u16::from_be_bytes([high, low])),
                _ => return false,
            },
        }
    }
    false
}

fn is_heic(bytes: &[u8]) -> bool {
    let brands: [&[u8]; 5] = [b"heic", b"heix", b"hevc", b"mif1", b"msf1"];
    bytes.get(4..8) == Some(b"ftyp") && bytes.get(8..12).is_some_and(|b| brands.contains(&b))
}

/// HEIC goes through macOS's own `sips`: the free decoders are LGPL and newer than Debian's.
fn heic_to_png(path: &Path) -> Result<Vec<u8>> {
    let fail = |why: &str| Error::bad(path, format!("HEIC {why}; save it as PNG or JPEG first"));
    let folder = tempfile::tempdir().map_err(|_| fail("needs a temporary folder"))?;
    let png = folder.path().join("picture.png");
    let made = Command::new("sips")
        .args(["-s", "format", "png"])
        .arg(path)
        .arg("--out")
        .arg(&png)
        .output()
        .map_err(|_| fail("is read through macOS's sips, which is not here"))?;
    if !made.status.success() {
        return Err(fail("could not be decoded by the system"));
    }
    std::fs::read(&png).map_err(|_| fail("could not be decoded by the system"))
}

fn split(image: DynamicImage) -> (RgbImage, Option<Plane>) {
    if !image.color().has_alpha() {
        return (image.into_rgb8(), None);
    }
    let rgba = image.into_rgba8();
    let clear = rgba.pixels().filter(|p| p.0[3] < 250).count();
    let believed = clear as f64 > ALPHA_SHARE * f64::from(rgba.width() * rgba.height());
    let alpha = believed.then(|| {
        let data = rgba.pixels().map(|p| f32::from(p.0[3]) / 255.0).collect();
        Plane::new(rgba.width() as usize, rgba.height() as usize, data)
    });
    (DynamicImage::ImageRgba8(rgba).into_rgb8(), alpha)
}

fn shrink(
    (rgb, alpha): (RgbImage, Option<Plane>),
    path: &Path,
) -> Result<(RgbImage, Option<Plane>)> {
    let side = rgb.width().max(rgb.height());
    if side <= WORKING_SIDE {
        return Ok((rgb, alpha));
    }
    let scale = |n: u32| (u64::from(n) * u64::from(WORKING_SIDE) / u64::from(side)).max(1) as u32;
    let (w, h) = (scale(rgb.width()), scale(rgb.height()));
    if w.min(h) < MIN_SIDE {
        return Err(Error::bad(path, "it is too narrow a strip; crop it around the subject"));
    }
    let whole = Region::whole(rgb.width() as usize, rgb.height() as usize);
    let alpha = alpha.map(|a| resize_plane(&a, whole, w, h));
    Ok((resize_rgb(&rgb, whole, w, h), alpha))
}

/// A rectangle in pixels of a picture, inside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Region {
    pub(crate) fn whole(width: usize, height: usize) -> Self {
        Self { left: 0.0, top: 0.0, width: width as f64, height: height as f64 }
    }

    fn options(self, w: u32) -> fir::ResizeOptions {
        // Lanczos when shrinking keeps detail; when growing it would ring, so Catmull-Rom.
        let shrinks = self.width > f64::from(w);
        let filter = if shrinks { fir::FilterType::Lanczos3 } else { fir::FilterType::CatmullRom };
        fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(filter)).crop(
            self.left,
            self.top,
            self.width,
            self.height,
        )
    }
}

// Typed calls: the untyped `resize` would compile the kernels of every pixel type into this crate,
// minutes of it.

/// A region of a picture at another size.
pub(crate) fn resize_rgb(rgb: &RgbImage, region: Region, w: u32, h: u32) -> RgbImage {
    let source = TypedImageRef::<U8x3>::from_buffer(rgb.width(), rgb.height(), rgb.as_raw())
        .expect("an RGB image has three bytes a pixel");
    let mut out = TypedImage::<U8x3>::new(w, h);
    fir::Resizer::new()
        .resize_typed(&source, &mut out, &region.options(w))
        .expect("the region lies inside the picture");
    let bytes = out.pixels().iter().flat_map(|p| p.0).collect();
    RgbImage::from_raw(w, h, bytes).expect("three bytes a pixel again")
}

/// A region of a plane in 0..1 at another size.
pub(crate) fn resize_plane(plane: &Plane, region: Region, w: u32, h: u32) -> Plane {
    let pixels: Vec<F32> = plane.data.iter().map(|&v| F32::new(v)).collect();
    let source = TypedImageRef::new(plane.width as u32, plane.height as u32, &pixels)
        .expect("a plane has as many values as it says");
    let mut out = TypedImage::<F32>::new(w, h);
    fir::Resizer::new()
        .resize_typed(&source, &mut out, &region.options(w))
        .expect("the region lies inside the plane");
    let data = out.pixels().iter().map(|p| p.0.clamp(0.0, 1.0)).collect();
    Plane::new(w as usize, h as usize, data)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut s, b| {
        write!(s, "{b:02x}").expect("a string takes every write");
        s
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heic_is_known_by_its_brand() {
        assert!(is_heic(b"\0\0\0\x24ftypheic\0\0\0\0mif1"));
        assert!(!is_heic(b"\0\0\0\x24ftypisom\0\0\0\0mp42"));
        assert!(!is_heic(b"ftyp"));
    }

    #[test]
    fn a_jpeg_ends_after_its_picture_and_not_in_its_headers() {
        let whole = [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0xFF, 0xD9, 0xFF, 0xDA, 0, 2, 7, 0xFF, 0xD9];
        assert!(jpeg_has_an_end(&whole));
        assert!(!jpeg_has_an_end(&whole[..13]));
        assert!(!jpeg_has_an_end(&whole[..5]));
    }
}
