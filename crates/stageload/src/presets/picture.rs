//! Whether a picture opens, and what it is. The whole picture is decoded where that takes little
//! memory: this may run while a job next to it has most of the machine.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use super::preset::Inputs;

/// More than any camera's single shot. Beyond it a small file can ask for all memory there is.
pub(super) const MAX_MEGAPIXELS: u32 = 200;
/// Up to here a picture is decoded whole, beyond only its header is read.
const DECODED_PIXELS: u64 = 50_000_000;
/// The same for what is decoded: 16 bits and alpha make 8 bytes of a pixel.
const DECODED_BYTES: u64 = 400 << 20;
/// All that a decoder may take.
const MAX_MEMORY: u64 = 600 << 20;
/// The decoder has the whole file in memory; no JPEG of so many pixels is larger.
const MAX_JPEG: u64 = 256 << 20;
/// What tells a format is within this.
const HEAD: u64 = 64;

/// What a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    /// In pixels, as it is seen: upright.
    pub(super) size: (u32, u32),
    pub(super) has_alpha: bool,
    pub(super) is_turned: bool,
    pub(super) is_decoded: bool,
}

/// A format by the beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Known(ImageFormat),
    Heic,
}

impl Format {
    /// None if it is no picture that is known.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        if is_heic(&head) {
            return Ok(Some(Self::Heic));
        }
        let known = image::guess_format(&head).ok().filter(ImageFormat::reading_enabled);
        Ok(known.map(Self::Known))
    }

    /// As people write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Heic => "HEIC",
            Self::Known(ImageFormat::Png) => "PNG",
            Self::Known(ImageFormat::Jpeg) => "JPEG",
            Self::Known(ImageFormat::WebP) => "WebP",
            Self::Known(ImageFormat::Tiff) => "TIFF",
            Self::Known(ImageFormat::Bmp) => "BMP",
            Self::Known(ImageFormat::Gif) => "GIF",
            Self::Known(_) => "picture",
        }
    }

    /// Whether files with this ending are of this format.
    pub(super) fn has_ending(self, ending: &str) -> bool {
        match self {
            Self::Heic => ["heic", "heif"].contains(&ending),
            Self::Known(format) => format.extensions_str().contains(&ending),
        }
    }
}

fn is_heic(head: &[u8]) -> bool {
    let brands: [&[u8]; 5] = [b"heic", b"heix", b"hevc", b"mif1", b"msf1"];
    head.get(4..8) == Some(b"ftyp") && head.get(8..12).is_some_and(|b| brands.contains(&b))
}

/// Opens it; what is wrong and what to do if that fails.
pub(super) fn inspect(path: &Path, format: Format, takes: &Inputs) -> Result<Picture, String> {
    match format {
        Format::Heic => inspect_heic(path, takes),
        Format::Known(format) => inspect_known(path, format, takes),
    }
}

fn inspect_known(path: &Path, format: ImageFormat, takes: &Inputs) -> Result<Picture, String> {
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let length = file.metadata().map_err(|error| unreadable(&error))?.len();
    if format == ImageFormat::Jpeg && length > MAX_JPEG {
        return Err("no JPEG of this size is a single picture; export it again".to_owned());
    }
    let mut reader = ImageReader::with_format(BufReader::new(file), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| damaged(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, takes)?;
    let orientation = decoder.orientation().map_err(|error| damaged(&error))?;
    let has_alpha = decoder.color_type().has_alpha();
    let is_small = u64::from(width) * u64::from(height) <= DECODED_PIXELS
        && decoder.total_bytes() <= DECODED_BYTES;
    if format == ImageFormat::Jpeg {
        check_end(path)?;
    }
    if is_small {
        DynamicImage::from_decoder(decoder).map_err(|error| damaged(&error))?;
    }
    Ok(Picture {
        size: if swaps_sides(orientation) { (height, width) } else { (width, height) },
        has_alpha,
        is_turned: orientation != Orientation::NoTransforms,
        is_decoded: is_small,
    })
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot read it ({error}); check the path and its permissions")
}

fn damaged(error: &ImageError) -> String {
    let what = match error {
        ImageError::Unsupported(_) => "export it as an 8 or 16 bit PNG or as a JPEG",
        ImageError::Limits(_) => "it takes too much memory to decode; scale it down",
        _ => "export or download it again",
    };
    format!("cannot decode it ({error}); {what}")
}

/// Before anything is decoded.
fn check_size(width: u32, height: u32, takes: &Inputs) -> Result<(), String> {
    let (limit, least) = (takes.most_megapixels, takes.least_side);
    if u64::from(width) * u64::from(height) > u64::from(limit) * 1_000_000 {
        let why = format!("{width}x{height} pixels are over the limit of {limit} megapixels");
        return Err(why + "; scale it down");
    }
    if width.min(height) < least {
        let why =
            format!("{width}x{height} pixels are too few; at least {least}x{least} are needed");
        return Err(why);
    }
    Ok(())
}

const fn swaps_sides(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// The decoder fills what is missing with grey, so a download that was cut off would pass.
fn check_end(path: &Path) -> Result<(), String> {
    let open = || Ok(BufReader::new(File::open(path)?));
    match open().and_then(has_jpeg_end) {
        Ok(true) => Ok(()),
        Ok(false) => Err("the JPEG is cut off; export or download it again".to_owned()),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Whether the end marker follows the picture's data. Headers are stepped over by their length: the
/// thumbnail in them has an end marker of its own.
fn has_jpeg_end(mut file: impl BufRead) -> io::Result<bool> {
    let mut pair = [0; 2];
    file.read_exact(&mut pair)?;
    loop {
        if file.read_exact(&mut pair).is_err() || pair[0] != 0xFF {
            return Ok(false);
        }
        match pair[1] {
            0xDA => return ends(file),
            0x01 | 0xD0..=0xD8 => continue,
            _ => {}
        }
        let mut length = [0; 2];
        if file.read_exact(&mut length).is_err() {
            return Ok(false);
        }
        let body = u64::from(u16::from_be_bytes(length)).saturating_sub(2);
        io::copy(&mut file.by_ref().take(body), &mut io::sink())?;
    }
}

fn ends(mut file: impl BufRead) -> io::Result<bool> {
    let mut before = 0;
    loop {
        let part = file.fill_buf()?;
        let Some(last) = part.last().copied() else {
            return Ok(false);
        };
        let is_split = before == 0xFF && part[0] == 0xD9;
        if is_split || part.windows(2).any(|pair| pair == [0xFF, 0xD9]) {
            return Ok(true);
        }
        before = last;
        let length = part.len();
        file.consume(length);
    }
}

/// Through macOS's own `sips`: the free decoders are LGPL and newer than Debian's.
fn inspect_heic(path: &Path, takes: &Inputs) -> Result<Picture, String> {
    let bad = || "the system cannot decode this HEIC; export it as PNG or JPEG".to_owned();
    let folder = tempfile::tempdir().map_err(|error| unreadable(&error))?;
    let png = folder.path().join("picture.png");
    let made = Command::new("sips")
        .args(["-s", "format", "png"])
        .arg(path)
        .arg("--out")
        .arg(&png)
        .output()
        .map_err(|_| bad())?;
    if !made.status.success() || fs::metadata(&png).is_err() {
        return Err(bad());
    }
    inspect_known(&png, ImageFormat::Png, takes)
}
