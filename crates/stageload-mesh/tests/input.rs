//! Every kind of picture people have, and every kind of input that is none.
#![expect(clippy::unwrap_used, reason = "a test")]

mod support;

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use support::{files, mesh, read, worker};
use tempfile::TempDir;

const QUICK: [&str; 6] = ["--grid", "512", "--faces", "2000", "--texture", "1024"];

/// A red ball on nothing: the simplest subject with an alpha of its own.
fn ball(side: u32) -> RgbaImage {
    RgbaImage::from_fn(side, side, |x, y| {
        let at = |v: u32| (v as f32 + 0.5) / side as f32 - 0.5;
        let r = at(x).hypot(at(y) + 0.1);
        if r < 0.3 { Rgba([(220.0 - 300.0 * r) as u8, 60, 40, 255]) } else { Rgba([9, 9, 9, 0]) }
    })
}

/// The ball on a grey ground, for formats without alpha.
fn ball_on_grey(side: u32) -> DynamicImage {
    let mut image = ball(side);
    for p in image.pixels_mut().filter(|p| p.0[3] == 0) {
        *p = Rgba([200, 202, 205, 255]);
    }
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(image).into_rgb8())
}

struct Desk {
    folder: TempDir,
    out: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        let out = folder.path().join("out/mesh.glb");
        Self { folder, out }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn picture(&self, name: &str, image: &DynamicImage, format: ImageFormat) -> PathBuf {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        self.file(name, bytes.get_ref())
    }

    fn makes_a_mesh(&self, image: &Path) {
        mesh(image, &self.out, &QUICK);
        assert!(read(&self.out).0.indices.len() > 3000);
    }

    /// The run fails with this code and one line that has all these words; nothing is left behind.
    fn refuses(&self, image: &Path, code: i32, words: &[&str]) {
        let run = worker(image, &self.out, &QUICK);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(code), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said:?}");
        }
        assert!(files(self.out.parent().unwrap()).is_empty());
    }
}

#[test]
fn png_with_alpha_needs_no_net() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    let events = desk.folder.path().join("events");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_stageload-mesh"))
        .arg(&image)
        .arg("--out")
        .arg(&desk.out)
        .args(QUICK)
        .env("STAGELOAD_EVENTS", &events)
        .status()
        .unwrap();
    assert!(run.success());
    let events = std::fs::read_to_string(events).unwrap();
    assert!(!events.contains("u2netp"), "{events}");
    assert!(events.contains("shape_prior"), "{events}");
}

#[test]
fn grey_alpha_palette_and_sixteen_bit_pngs_are_read() {
    let desk = Desk::new();
    let ball: DynamicImage = ball(128).into();
    desk.makes_a_mesh(&desk.picture(
        "grey.png",
        &DynamicImage::ImageLuma8(ball_on_grey(128).to_luma8()),
        ImageFormat::Png,
    ));
    for (name, image) in [
        ("grey-alpha.png", DynamicImage::ImageLumaA8(ball.to_luma_alpha8())),
        ("sixteen.png", DynamicImage::ImageRgba16(ball.to_rgba16())),
        ("grey-sixteen.png", DynamicImage::ImageLumaA16(ball.to_luma_alpha16())),
    ] {
        desk.makes_a_mesh(&desk.picture(name, &image, ImageFormat::Png));
    }
    desk.makes_a_mesh(&desk.picture("palette.gif", &ball, ImageFormat::Gif));
    desk.makes_a_mesh(&desk.file("palette.png", &palette_png()));
}

/// The ball as a PNG of two colours, one of them see-through.
fn palette_png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 128, 128);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(vec![0, 0, 0, 200, 60, 40]);
    encoder.set_trns(vec![0, 255]);
    let mut writer = encoder.write_header().unwrap();
    let pixels: Vec<u8> = ball(128).pixels().map(|p| u8::from(p.0[3] > 0)).collect();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn webp_tiff_bmp_and_jpeg_are_read() {
    let desk = Desk::new();
    let clear: DynamicImage = ball(128).into();
    desk.makes_a_mesh(&desk.picture("b.webp", &clear, ImageFormat::WebP));
    desk.makes_a_mesh(&desk.picture("b.tiff", &clear, ImageFormat::Tiff));
    let opaque = ball_on_grey(128);
    desk.makes_a_mesh(&desk.picture("b.bmp", &opaque, ImageFormat::Bmp));
    desk.makes_a_mesh(&desk.picture("b.jpg", &opaque, ImageFormat::Jpeg));
}

#[test]
fn the_name_of_a_file_does_not_matter_what_is_in_it_does() {
    let desk = Desk::new();
    desk.makes_a_mesh(&desk.picture("really-a-png.jpg", &ball(128).into(), ImageFormat::Png));
}

#[test]
fn a_jpeg_taken_sideways_is_turned_upright() {
    let desk = Desk::new();
    // Lying down in the file, standing up by its orientation mark (6: turn right).
    let standing = DynamicImage::ImageRgb8(image::RgbImage::from_fn(192, 256, |x, y| {
        let (dx, dy) = ((x as f32 - 96.0) / 40.0, (y as f32 - 128.0) / 100.0);
        if dx.hypot(dy) < 1.0 { image::Rgb([190, 40, 30]) } else { image::Rgb([210, 212, 214]) }
    }));
    let mut jpeg = Cursor::new(Vec::new());
    standing.rotate270().write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let marked = with_orientation(jpeg.get_ref(), 6);
    mesh(&desk.file("sideways.jpg", &marked), &desk.out, &QUICK);
    let model = read(&desk.out).0;
    let extent = |axis: usize| {
        let values = || model.positions.iter().map(|p| p[axis]);
        values().fold(f32::MIN, f32::max) - values().fold(f32::MAX, f32::min)
    };
    assert!(extent(1) > 1.8 * extent(0), "{} high, {} wide", extent(1), extent(0));
}

/// The JPEG with an EXIF block that holds nothing but an orientation.
fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let tiff = [
        b'M',
        b'M',
        0,
        42,
        0,
        0,
        0,
        8,
        0,
        1,
        0x01,
        0x12,
        0,
        3,
        0,
        0,
        0,
        1,
        0,
        orientation,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let mut out = jpeg[..2].to_vec();
    out.extend([0xFF, 0xE1, 0, 8 + tiff.len() as u8]);
    out.extend(b"Exif\0\0");
    out.extend(tiff);
    out.extend(&jpeg[2..]);
    out
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    let desk = Desk::new();
    desk.refuses(Path::new("no/such/photo.jpg"), 66, &["no/such/photo.jpg", "check the path"]);
}

#[test]
fn a_folder_is_not_a_picture() {
    let desk = Desk::new();
    desk.refuses(desk.folder.path(), 65, &["folder", "one picture file"]);
}

#[test]
fn a_text_file_named_png_is_not_a_picture() {
    let desk = Desk::new();
    let text = desk.file("notes.png", b"buy milk, eggs and a better camera\n");
    desk.refuses(&text, 65, &["notes.png", "not a picture", "JPEG"]);
    desk.refuses(&desk.file("empty.png", b""), 65, &["empty"]);
}

#[test]
fn a_cut_off_download_is_refused_and_not_filled_with_grey() {
    let desk = Desk::new();
    let whole = desk.picture("whole.jpg", &ball_on_grey(256), ImageFormat::Jpeg);
    let bytes = std::fs::read(whole).unwrap();
    let cut = desk.file("cut.jpg", &bytes[..bytes.len() / 2]);
    desk.refuses(&cut, 65, &["cut off", "download it again"]);
    let whole = desk.picture("whole.png", &ball(256).into(), ImageFormat::Png);
    let bytes = std::fs::read(whole).unwrap();
    let cut = desk.file("cut.png", &bytes[..bytes.len() / 2]);
    desk.refuses(&cut, 65, &["cannot decode", "again"]);
}

#[test]
fn a_thumbnail_inside_a_cut_off_jpeg_does_not_pass_for_its_end() {
    let desk = Desk::new();
    let whole = desk.picture("whole.jpg", &ball_on_grey(256), ImageFormat::Jpeg);
    let bytes = std::fs::read(whole).unwrap();
    let mut camera = bytes[..2].to_vec();
    camera.extend([0xFF, 0xE1, 0, 12]);
    camera.extend(b"Exif\0\0");
    camera.extend([0xFF, 0xD8, 0xFF, 0xD9]);
    camera.extend(&bytes[2..bytes.len() / 2]);
    desk.refuses(&desk.file("cut.jpg", &camera), 65, &["cut off"]);
}

#[test]
fn a_pipe_or_a_device_is_not_a_picture() {
    let desk = Desk::new();
    desk.refuses(Path::new("/dev/zero"), 65, &["device or a pipe"]);
}

/// A picture whose alpha is what `inside` says of each pixel.
fn cut_out(w: u32, h: u32, inside: impl Fn(f32, f32) -> bool) -> DynamicImage {
    DynamicImage::ImageRgba8(RgbaImage::from_fn(w, h, |x, y| {
        let on = inside(x as f32 + 0.5, y as f32 + 0.5);
        Rgba([230, 120, 30, if on { 255 } else { 0 }])
    }))
}

#[test]
fn odd_shapes_give_a_solid_with_colours_or_a_refusal_and_never_an_empty_file() {
    let desk = Desk::new();
    let ring =
        |x: f32, y: f32, side: f32| ((x - side / 2.0).hypot(y - side / 2.0) - side * 0.4).abs();
    let shapes = [
        ("ring.png", cut_out(64, 64, |x, y| ring(x, y, 64.0) < 1.5)),
        ("wide ring.png", cut_out(256, 256, |x, y| ring(x, y, 256.0) < 12.0)),
        ("line.png", cut_out(1600, 64, |_, y| (y - 32.0).abs() < 1.5)),
        ("bar.png", cut_out(900, 64, |x, y| (y - 32.0).abs() < 20.0 && (x - 450.0).abs() < 400.0)),
        ("tall.png", cut_out(64, 900, |x, y| (x - 32.0).abs() < 20.0 && (y - 450.0).abs() < 400.0)),
        (
            "two.png",
            cut_out(300, 200, |x, y| {
                (x - 80.0).abs().min((x - 220.0).abs()).hypot(y - 100.0) < 50.0
            }),
        ),
        (
            "board.png",
            cut_out(128, 128, |x, y| ((x / 16.0) as u32 + (y / 16.0) as u32).is_multiple_of(2)),
        ),
        ("half.png", cut_out(128, 128, |x, _| x < 64.0)),
        ("corner.png", cut_out(128, 128, |x, y| x + y < 128.0)),
        ("holes.png", cut_out(200, 200, |x, y| ((x % 40.0) - 20.0).hypot((y % 40.0) - 20.0) > 9.0)),
        (
            "comb.png",
            cut_out(256, 128, |x, y| {
                y > 90.0 && y < 120.0 || y > 10.0 && y <= 90.0 && x % 16.0 < 5.0
            }),
        ),
    ];
    for (name, shape) in shapes {
        let image = desk.picture(name, &shape, ImageFormat::Png);
        let run = worker(&image, &desk.out, &QUICK);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        match run.status.code() {
            Some(0) => {
                let model = read(&desk.out).0;
                let (points, indices) = model.welded();
                let topology = stageload_mesh::Topology::of(points, &indices);
                assert!(!indices.is_empty() && topology.is_watertight(), "{name}: {topology:?}");
                let brightest = model.atlas.pixels().map(|p| p.0[0]).max();
                assert!(brightest > Some(180), "{name} came out dark");
                std::fs::remove_file(&desk.out).unwrap();
                std::fs::remove_file(desk.out.with_extension("preview.png")).unwrap();
            }
            Some(65) => assert!(said.contains("crop") || said.contains("background"), "{said}"),
            other => panic!("{name}: {other:?} {said}"),
        }
    }
}

#[test]
fn a_single_pixel_is_too_small() {
    let desk = Desk::new();
    let dot = desk.picture("dot.png", &ball(1).into(), ImageFormat::Png);
    desk.refuses(&dot, 65, &["1x1", "at least 32x32"]);
}

#[test]
fn a_huge_picture_is_refused_by_its_header_and_the_limit_is_named() {
    let desk = Desk::new();
    desk.refuses(
        &desk.file("huge.png", &huge_png_header()),
        65,
        &["20000x20000", "100 megapixels"],
    );
}

/// The first bytes of a 20000×20000 PNG: enough to know better than to decode the rest.
fn huge_png_header() -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, 20_000, 20_000);
    let mut writer = encoder.write_header().unwrap();
    writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c, 0, 0]).unwrap();
    drop(writer);
    bytes
}

#[test]
fn an_all_transparent_picture_has_no_subject() {
    let desk = Desk::new();
    let clear = RgbaImage::from_pixel(128, 128, Rgba([80, 90, 100, 0]));
    let image = desk.picture("clear.png", &clear.into(), ImageFormat::Png);
    desk.refuses(&image, 65, &["all transparent"]);
}

#[test]
fn a_picture_of_nothing_has_no_subject() {
    let desk = Desk::new();
    let plain = image::RgbImage::from_pixel(200, 160, image::Rgb([120, 130, 140]));
    let image = desk.picture("plain.png", &plain.into(), ImageFormat::Png);
    desk.refuses(&image, 65, &["no subject"]);
}

#[test]
fn a_subject_of_a_few_pixels_is_told_to_crop() {
    let desk = Desk::new();
    let mut speck = RgbaImage::from_pixel(400, 400, Rgba([0, 0, 0, 0]));
    for (x, y) in (0..30).flat_map(|x| (0..30).map(move |y| (x, y))) {
        speck.put_pixel(100 + x, 100 + y, Rgba([200, 50, 50, 255]));
    }
    let image = desk.picture("speck.png", &speck.into(), ImageFormat::Png);
    desk.refuses(&image, 65, &["too little", "crop closer"]);
}

#[test]
fn a_missing_output_folder_is_said_before_any_work() {
    let mut desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    let kept = desk.out.parent().unwrap().to_owned();
    desk.out = desk.folder.path().join("nowhere/mesh.glb");
    let run = worker(&image, &desk.out, &QUICK);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(73), "{said}");
    assert!(said.contains("nowhere/mesh.glb") && said.contains("--out"), "{said}");
    assert!(files(&kept).is_empty());
}

#[test]
fn a_folder_in_the_outputs_place_is_refused() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    std::fs::create_dir(&desk.out).unwrap();
    let run = worker(&image, &desk.out, &QUICK);
    assert_eq!(run.status.code(), Some(73));
}

#[test]
fn a_pipe_in_the_outputs_place_and_a_folder_in_the_previews_are_refused_at_once() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    assert!(std::process::Command::new("mkfifo").arg(&desk.out).status().unwrap().success());
    let run = worker(&image, &desk.out, &QUICK);
    assert_eq!(run.status.code(), Some(73));
    let out = desk.folder.path().join("other.glb");
    std::fs::create_dir(out.with_extension("preview.png")).unwrap();
    let run = worker(&image, &out, &QUICK);
    assert_eq!(run.status.code(), Some(73));
    assert!(String::from_utf8_lossy(&run.stderr).contains("other.preview.png"));
}

#[test]
fn a_link_in_the_outputs_place_stays_a_link() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    let target = desk.folder.path().join("target.glb");
    std::fs::write(&target, b"old").unwrap();
    std::os::unix::fs::symlink(&target, &desk.out).unwrap();
    mesh(&image, &desk.out, &QUICK);
    assert!(desk.out.is_symlink());
    assert!(read(&target).0.indices.len() > 3000);
}

#[test]
fn a_subject_cut_on_three_sides_is_no_deeper_than_wide() {
    let desk = Desk::new();
    let bust = cut_out(200, 200, |x, y| y > 60.0 + (x - 100.0).abs() * 0.3);
    mesh(&desk.picture("bust.png", &bust, ImageFormat::Png), &desk.out, &QUICK);
    let model = read(&desk.out).0;
    let extent = |axis: usize| {
        let values = || model.positions.iter().map(|p| p[axis]);
        values().fold(f32::MIN, f32::max) - values().fold(f32::MAX, f32::min)
    };
    assert!(extent(2) < 1.3 * extent(1), "{} deep, {} high", extent(2), extent(1));
}

#[test]
fn an_old_mesh_survives_a_run_that_fails() {
    let desk = Desk::new();
    std::fs::write(&desk.out, b"the old mesh").unwrap();
    let run = worker(&desk.file("bad.png", b"not a picture"), &desk.out, &QUICK);
    assert_eq!(run.status.code(), Some(65));
    assert_eq!(std::fs::read(&desk.out).unwrap(), b"the old mesh");
}

#[test]
fn only_a_glb_can_be_asked_for() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    let run = worker(&image, Path::new("mesh.obj"), &[]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("must end in .glb"));
}

#[test]
fn wrong_flags_are_named() {
    let desk = Desk::new();
    let image = desk.picture("b.png", &ball(128).into(), ImageFormat::Png);
    for (flag, value) in [
        ("--grid", "700"),
        ("--faces", "12"),
        ("--relief", "1.5"),
        ("--relief", "-0.1"),
        ("--texture", "3000"),
        ("--load", "lazy"),
        ("--device", "tpu"),
        ("--shape", "cube"),
    ] {
        let run = worker(&image, &desk.out, &[flag, value]);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(said.contains(flag), "{said}");
    }
}
