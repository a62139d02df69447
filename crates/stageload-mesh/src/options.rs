//! What can be asked of the pipeline, and what each wish is when nobody asks.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use serde::Serialize;

/// One picture to a textured mesh. A quick relief model: the far side is a guess.
#[derive(Debug, Clone, Parser)]
#[command(name = "stageload-mesh", version, about)]
pub struct Options {
    /// The picture: PNG, JPEG, WebP, TIFF, BMP, GIF (and HEIC on macOS).
    pub image: PathBuf,
    /// The mesh to write, one GLB file; the preview goes beside it as NAME.preview.png.
    #[arg(short, long, value_name = "FILE.glb", value_parser = OsStringValueParser::new().try_map(glb_path))]
    pub out: PathBuf,
    /// Samples along the side of the subject's square.
    #[arg(long, value_enum, default_value_t = Grid::Fine)]
    pub grid: Grid,
    /// About how many triangles [default: 100000 at grid 512, 250000 at 1024].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..=5_000_000))]
    pub faces: Option<u32>,
    /// Largest width of the texture; no more than the picture has to give is used [default: 2048
    /// at grid 512, 4096 at 1024].
    #[arg(long, value_enum)]
    pub texture: Option<Texture>,
    /// The far side's colours: the front's mirrored, or carried in from the outline.
    #[arg(long, value_enum, default_value_t = Back::Mirror)]
    pub back: Back,
    /// Strength of the surface detail taken from light and dark, 0 to 1.
    #[arg(long, default_value_t = 1.0, value_parser = unit_interval, allow_negative_numbers = true)]
    pub relief: f32,
    /// Seed of every random choice: same seed, same bytes.
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// Keep only the current stage's models in memory, or all of them all the time.
    #[arg(long, value_enum, default_value_t = Load::Staged)]
    pub load: Load,
    /// Where tensors live; auto takes Metal where there is one.
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,
    /// The learned shape prior, or the plain inflation it improves on.
    #[arg(long, value_enum, default_value_t = ShapeChoice::Learned)]
    pub shape: ShapeChoice,
}

fn glb_path(text: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("glb") => Ok(path),
        _ => Err("the mesh is a GLB file, so its name must end in .glb".into()),
    }
}

fn unit_interval(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(v) if (0.0..=1.0).contains(&v) => Ok(v),
        _ => Err("must be a number from 0 to 1".into()),
    }
}

/// Samples along the side of the subject's square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Grid {
    /// 512: about three seconds and 0.5 GB.
    #[value(name = "512")]
    Quick,
    /// 1024: about eight seconds and 1 GB.
    #[value(name = "1024")]
    Fine,
}

impl Grid {
    /// Samples along one side.
    pub const fn side(self) -> usize {
        match self {
            Self::Quick => 512,
            Self::Fine => 1024,
        }
    }
}

/// Width of the texture atlas in texels; it is half as high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Texture {
    /// 1024×512.
    #[value(name = "1024")]
    Small,
    /// 2048×1024.
    #[value(name = "2048")]
    Medium,
    /// 4096×2048.
    #[value(name = "4096")]
    Large,
}

impl Texture {
    const fn width(self) -> usize {
        match self {
            Self::Small => 1024,
            Self::Medium => 2048,
            Self::Large => 4096,
        }
    }
}

/// Colours of the far side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Back {
    /// The front's picture, mirrored: right for profiles and for things; a portrait gets a second face.
    Mirror,
    /// Carried in from the outline: no second face, but soft.
    Rim,
}

/// When models are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Only the current stage's.
    Staged,
    /// All, from start to end.
    Eager,
}

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// Metal where there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// Metal, or an error.
    Mps,
}

/// How the two sheets are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeChoice {
    /// By the learned shape prior.
    Learned,
    /// By inflation alone.
    Classical,
}

impl Options {
    /// About how many triangles the mesh shall have.
    pub fn face_target(&self) -> usize {
        let default = match self.grid {
            Grid::Quick => 100_000,
            Grid::Fine => 250_000,
        };
        self.faces.map_or(default, |n| n as usize)
    }

    /// Side of one texture chart, for a subject whose square is `pixels` wide in the picture.
    pub(crate) fn chart_side(&self, pixels: f64) -> usize {
        let default = match self.grid {
            Grid::Quick => Texture::Medium,
            Grid::Fine => Texture::Large,
        };
        let wish = self.texture.unwrap_or(default).width() / 2;
        let worth = (pixels.max(1.0) as usize).next_power_of_two().max(512);
        wish.min(worth)
    }
}
