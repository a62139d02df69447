use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, Rgba, RgbaImage};

use super::{Everywhere, Programs, Refusal, check, folder, preflight, small, write_picture};
use crate::presets::Seen;

const CMYK: &[u8] = include_bytes!("../../../../../tests/fixtures/pictures/cmyk.jpg");

fn look(path: &Path) -> Result<Seen, Refusal> {
    preflight(&small(), &[path.to_owned()], &[], &Everywhere).map(|mut seen| seen.remove(0))
}

fn said(path: &Path) -> String {
    look(path).unwrap().to_string()
}

fn why(path: &Path) -> String {
    let text = look(path).unwrap_err().to_string();
    text.trim_start_matches(&format!("{}: ", path.display())).to_owned()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_kind_of_picture_opens_and_is_told() {
    let (folder, picture) = folder();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(said(&picture), "cup.png: PNG, 40x30 pixels");
    RgbaImage::from_pixel(20, 10, Rgba([1, 2, 3, 0])).save(at("alpha.png")).unwrap();
    assert_eq!(said(&at("alpha.png")), "alpha.png: PNG, 20x10 pixels, with alpha");
    ImageBuffer::from_pixel(5, 6, Rgb([60_000u16, 0, 1])).save(at("deep.png")).unwrap();
    assert_eq!(said(&at("deep.png")), "deep.png: PNG, 5x6 pixels");
    ImageBuffer::from_pixel(5, 6, Luma([60_000u16])).save(at("grey.png")).unwrap();
    assert_eq!(said(&at("grey.png")), "grey.png: PNG, 5x6 pixels");
    write_picture(&at("cup.webp"), ImageFormat::WebP);
    assert_eq!(said(&at("cup.webp")), "cup.webp: WebP, 40x30 pixels");
    let cmyk = write(folder.path(), "cmyk.jpg", CMYK);
    assert_eq!(said(&cmyk), "cmyk.jpg: JPEG, 16x8 pixels");
    assert!(look(&cmyk).unwrap().is_decoded);
}

/// A JPEG with an EXIF header that says this orientation.
fn turned(orientation: u8) -> Vec<u8> {
    let mut jpeg = std::io::Cursor::new(Vec::new());
    DynamicImage::new_rgb8(40, 30).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let exif = [
        b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(),
        &[orientation, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let mut bytes = jpeg.into_inner();
    let length = (exif.len() as u16 + 2).to_be_bytes();
    bytes.splice(2..2, [&[0xFF, 0xE1], &length[..], &exif].concat());
    bytes
}

#[test]
fn a_picture_that_lies_on_its_side_is_told_upright() {
    let (folder, _) = folder();
    let path = write(folder.path(), "side.jpg", &turned(6));
    assert_eq!(said(&path), "side.jpg: JPEG, 30x40 pixels, turned upright");
    let path = write(folder.path(), "head.jpg", &turned(3));
    assert_eq!(said(&path), "head.jpg: JPEG, 40x30 pixels, turned upright");
    let path = write(folder.path(), "up.jpg", &turned(1));
    assert_eq!(said(&path), "up.jpg: JPEG, 40x30 pixels");
}

/// A PNG that says this size, with nothing in it.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    for (name, data) in [(b"IHDR", &header[..]), (b"IDAT", &[])] {
        bytes.extend((data.len() as u32).to_be_bytes());
        let body = [&name[..], data].concat();
        bytes.extend(&body);
        bytes.extend(crc(&body).to_be_bytes());
    }
    bytes
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    })
}

#[test]
fn a_bomb_is_refused_by_its_header_alone() {
    let (folder, _) = folder();
    let path = write(folder.path(), "bomb.png", &png_of(20_000, 20_000));
    assert_eq!(
        why(&path),
        "20000x20000 pixels are over the limit of 200 megapixels; scale it down"
    );
    let path = write(folder.path(), "most.png", &png_of(u32::MAX >> 1, u32::MAX >> 1));
    assert!(look(&path).is_err());
}

#[test]
fn a_preset_has_limits_of_its_own() {
    let (presets, _) = crate::presets::Presets::load(Path::new("/no/such/home"));
    let mesh = presets.get("mesh").unwrap();
    let (folder, picture) = folder();
    let why = |path: &Path| {
        preflight(mesh, &[path.to_owned()], &[], &Everywhere).unwrap_err().to_string()
    };
    let large = write(folder.path(), "large.png", &png_of(10_001, 10_000));
    let text = why(&large);
    assert!(
        text.ends_with("10001x10000 pixels are over the limit of 100 megapixels; scale it down")
    );
    let text = why(&picture);
    assert!(text.ends_with("40x30 pixels are too few; at least 32x32 are needed"), "{text}");
}

#[test]
fn of_a_large_picture_only_the_header_is_read() {
    let (folder, _) = folder();
    let path = write(folder.path(), "large.png", &png_of(10_000, 10_000));
    assert_eq!(said(&path), "large.png: PNG, 10000x10000 pixels, header only");
    let path = write(folder.path(), "small.png", &png_of(100, 100));
    assert!(why(&path).starts_with("cannot decode it ("), "what has no data is not decoded");
}

#[test]
fn a_picture_that_is_damaged_or_cut_off_is_refused() {
    let (folder, picture) = folder();
    let whole = std::fs::read(&picture).unwrap();
    let path = write(folder.path(), "cut.png", &whole[..whole.len() / 2]);
    assert!(why(&path).ends_with("export or download it again"), "{}", why(&path));
    let whole = turned(6);
    let path = write(folder.path(), "cut.jpg", &whole[..whole.len() - 20]);
    assert_eq!(why(&path), "the JPEG is cut off; export or download it again");
    for length in [2, 3, 12, 30] {
        let path = write(folder.path(), "head.jpg", &whole[..length]);
        assert!(look(&path).is_err(), "{length} bytes");
    }
}

#[test]
fn nothing_of_a_damaged_picture_stops_the_program() {
    let (folder, picture) = folder();
    for whole in [std::fs::read(&picture).unwrap(), turned(6), CMYK.to_vec()] {
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            // Either is right; it must come back.
            let _ = look(&write(folder.path(), "odd.png", &bytes));
        }
    }
}

/// A system with every program but the one that reads HEIC.
struct NoSips;

impl Programs for NoSips {
    fn find(&self, name: &OsStr) -> Option<PathBuf> {
        Everywhere.find(name).filter(|_| name != "sips")
    }
}

#[test]
fn a_heic_goes_where_the_system_can_read_it() {
    let (folder, _) = folder();
    let path = write(folder.path(), "a.heic", b"\0\0\0\x24ftypheic\0\0\0\0mif1");
    let preset = check::parse(
        "name='x'\nabout=''\nversion=1\ncommand=['a', '{input}']\n[inputs]\nkind='image'\nextensions=['heic']",
    )
    .unwrap();
    let refused = preflight(&preset, std::slice::from_ref(&path), &[], &NoSips).unwrap_err();
    assert!(refused.to_string().contains("; convert it: sips"), "{refused}");
    let refused = preflight(&preset, &[path], &[], &Everywhere).unwrap_err();
    assert!(refused.to_string().ends_with("cannot decode this HEIC; export it as PNG or JPEG"));
}
