//! * `words`: a value stays in its word
//! * `refusals`: every refusal's sentence
//! * `files`: built-in presets, examples, and files that are wrong
//! * `pictures`: what opens, what does not, and what is said of it

mod files;
mod pictures;
mod refusals;
mod words;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageFormat, RgbImage};

use super::{Made, Order, Preset, Programs, Refusal, Seen, check};
use crate::wire::PresetUse;

/// Every program is there.
struct Everywhere;

impl Programs for Everywhere {
    fn find(&self, name: &OsStr) -> Option<PathBuf> {
        (!name.is_empty()).then(|| Path::new("/bin").join(name))
    }
}

/// No program is there.
struct Nowhere;

impl Programs for Nowhere {
    fn find(&self, _name: &OsStr) -> Option<PathBuf> {
        None
    }
}

/// Makes pictures of pictures; made small so that every test can have one.
const SMALL: &str = r#"
    name = "small"
    about = "a test's"
    version = 2
    install = "Ask the tests."
    command = ["prog", "{input}", "--to={output}", { if = "loud", words = ["--loud"] }, "--size={size}"]
    [inputs]
    kind = "image"
    extensions = ["png", "jpg", "webp"]
    [[params]]
    name = "size"
    type = "choice"
    choices = [1024, 768, 512]
    default = 1024
    about = "side"
    [[params]]
    name = "seed"
    type = "int"
    min = 0
    max = 99
    default = 7
    learns = false
    about = "chance"
    [[params]]
    name = "loud"
    type = "bool"
    default = false
    about = "says more"
    [[outputs]]
    kind = "image"
    name = "{stem}-{seed}.png"
    [[outputs]]
    kind = "text"
    name = "{output-stem}.txt"
    [[need]]
    peak = "2G"
    when = { size = 1024 }
    [[need]]
    peak = "1G"
    [[ladder]]
    about = "smaller"
    set = { size = 768 }
    [[ladder]]
    about = "small"
    set = { size = 512 }
"#;

fn small() -> Preset {
    check::parse(SMALL).unwrap()
}

/// A folder with a picture in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("cup.png");
    write_picture(&picture, ImageFormat::Png);
    (folder, picture)
}

fn write_picture(path: &Path, format: ImageFormat) {
    DynamicImage::ImageRgb8(RgbImage::new(40, 30)).save_with_format(path, format).unwrap();
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn make(
    preset: &Preset,
    inputs: &[PathBuf],
    pairs: &[(&str, &str)],
    output: &Path,
) -> Result<Made, Refusal> {
    let set = set(pairs);
    let order = Order { inputs, set: &set, output: Some(output), ..Order::default() };
    preset.make_order(&order, &Everywhere)
}

fn preflight(
    preset: &Preset,
    inputs: &[PathBuf],
    outputs: &[PathBuf],
    programs: &dyn Programs,
) -> Result<Vec<Seen>, Refusal> {
    let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
    let name = preset.name().to_owned();
    let used = PresetUse { name, inputs, outputs, ..PresetUse::default() };
    preset.preflight(&["/bin/prog".into()], &used, programs)
}
