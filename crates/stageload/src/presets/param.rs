//! A preset's parameters: their types, and whether a value is one.

use std::env;
use std::path::{self, Path, PathBuf};

use stageload_core::Bytes;

/// Something that can be chosen when a job is made from a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// As in `name=value`.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What values it takes.
    pub kind: Kind,
    /// Its value when none is given.
    pub default: Option<String>,
    /// Whether the memory that a job takes depends on it.
    pub learns: bool,
}

/// What values a parameter takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A whole number.
    Int(Range<i64>),
    /// A number.
    Float(Range<f64>),
    /// One of these.
    Choice(Vec<String>),
    /// `true` or `false`.
    Bool,
    /// Anything without a NUL.
    Text,
    /// A size in bytes, as `8G`; bounds are bytes.
    Size(Range<u64>),
    /// A file that is there.
    File,
    /// A folder that is there.
    Folder,
}

/// Bounds, both included, and the distance from one value to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Range<T> {
    /// The least.
    pub min: Option<T>,
    /// The most.
    pub max: Option<T>,
    /// Values lie so far apart, counted from `min` or from zero.
    pub step: Option<T>,
}

impl Kind {
    /// Its name in a preset's file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Choice(_) => "choice",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Size(_) => "size",
            Self::File => "file",
            Self::Folder => "folder",
        }
    }

    /// The value as it is kept and put on the command line, or what it must be. Paths need not
    /// exist here: see [`Kind::check_there`].
    pub(super) fn read(&self, text: &str) -> Result<String, String> {
        if text.contains('\0') {
            return Err("it must have no NUL character in it".to_owned());
        }
        match self {
            Self::Int(range) => int(*range, text),
            Self::Float(range) => float(*range, text),
            Self::Choice(choices) => choice(choices, text),
            Self::Bool => bool(text),
            Self::Text => Ok(text.to_owned()),
            Self::Size(range) => size(*range, text),
            Self::File | Self::Folder => absolute(text),
        }
    }

    /// Whether the file or folder that it names is there.
    pub(super) fn check_there(&self, value: &str) -> Result<(), String> {
        match self {
            Self::File if !Path::new(value).is_file() => {
                Err("it must be a file that is there; check the path".to_owned())
            }
            Self::Folder if !Path::new(value).is_dir() => {
                Err("it must be a folder that is there; check the path".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The value as a number, where one can be more or less than another.
    pub(super) fn rank(&self, value: &str) -> Option<f64> {
        match self {
            Self::Int(_) | Self::Float(_) | Self::Choice(_) => value.parse().ok(),
            Self::Size(_) => value.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64),
            _ => None,
        }
    }
}

fn int(range: Range<i64>, text: &str) -> Result<String, String> {
    let must = || format!("it must be a whole number{}", spread(range, ToString::to_string));
    let value: i64 = text.trim().parse().map_err(|_| must())?;
    let from = range.min.unwrap_or(0);
    let fits_step = range.step.is_none_or(|step| value.wrapping_sub(from).wrapping_rem(step) == 0);
    if is_inside(range, value) && fits_step { Ok(value.to_string()) } else { Err(must()) }
}

fn float(range: Range<f64>, text: &str) -> Result<String, String> {
    let must = || format!("it must be a number{}", spread(range, ToString::to_string));
    let value: f64 = text.trim().parse().map_err(|_| must())?;
    let steps = range.step.map_or(0.0, |step| (value - range.min.unwrap_or(0.0)) / step);
    // Tenths are not exact; a step is right or wrong by far more than this.
    let fits_step = (steps - steps.round()).abs() < 1e-6;
    let is_good = value.is_finite() && is_inside(range, value) && fits_step;
    if is_good { Ok(value.to_string()) } else { Err(must()) }
}

fn size(range: Range<u64>, text: &str) -> Result<String, String> {
    let value: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if is_inside(range, value.0) {
        return Ok(text.trim().to_owned());
    }
    Err(format!("it must be a size{}", spread(range, |n| Bytes(*n).to_string())))
}

fn is_inside<T: PartialOrd + Copy>(range: Range<T>, value: T) -> bool {
    range.min.is_none_or(|min| value >= min) && range.max.is_none_or(|max| value <= max)
}

fn spread<T: Copy>(range: Range<T>, show: impl Fn(&T) -> String) -> String {
    let bounds = match (&range.min, &range.max) {
        (Some(min), Some(max)) => format!(" from {} to {}", show(min), show(max)),
        (Some(min), None) => format!(" of at least {}", show(min)),
        (None, Some(max)) => format!(" of at most {}", show(max)),
        (None, None) => String::new(),
    };
    let step = range.step.as_ref().map(|step| format!(" in steps of {}", show(step)));
    bounds + &step.unwrap_or_default()
}

fn choice(choices: &[String], text: &str) -> Result<String, String> {
    if choices.iter().any(|one| one == text) {
        return Ok(text.to_owned());
    }
    Err(format!("it must be {}", any_of(choices)))
}

fn bool(text: &str) -> Result<String, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok("true".to_owned()),
        "false" | "no" | "off" | "0" => Ok("false".to_owned()),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// Absolute, so that neither the job's folder nor a leading dash changes what it means.
fn absolute(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it must be a path".to_owned());
    }
    let path = path::absolute(from_home(Path::new(text)))
        .map_err(|error| format!("it must be a path ({error})"))?;
    Ok(path.to_string_lossy().into_owned())
}

/// `~/` is the user's folder: in a preset's file no shell has put it there.
pub(super) fn from_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn any_of<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<_> = most.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", most.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_in_one_spelling() {
        let table = [
            (Kind::Int(Range::default()), " +07", "7"),
            (Kind::Float(Range::default()), "1.50", "1.5"),
            (Kind::Bool, "Yes", "true"),
            (Kind::Bool, "0", "false"),
            (Kind::Text, " $(x)\n", " $(x)\n"),
            (Kind::Size(Range::default()), " 8G", "8G"),
            (Kind::File, "/a/-b", "/a/-b"),
        ];
        for (kind, text, kept) in table {
            assert_eq!(kind.read(text).unwrap(), kept, "{}", kind.name());
        }
    }

    #[test]
    fn a_value_that_is_none_is_told_what_it_must_be() {
        let ints = Range { min: Some(512), max: Some(4096), step: Some(512) };
        let table = [
            (Kind::Int(ints), "600", "a whole number from 512 to 4096 in steps of 512"),
            (Kind::Int(ints), "8192", "a whole number from 512 to 4096 in steps of 512"),
            (Kind::Int(Range { min: Some(1), ..Range::default() }), "1.5", "of at least 1"),
            (Kind::Float(Range { max: Some(1.0), ..Range::default() }), "nan", "of at most 1"),
            (Kind::Choice(vec!["a".into(), "b".into(), "c".into()]), "d", "a, b or c"),
            (Kind::Bool, "maybe", "true or false"),
            (Kind::Size(Range::default()), "8", "did you mean 8G?"),
            (Kind::Text, "a\0b", "no NUL"),
            (Kind::Folder, "", "must be a path"),
        ];
        for (kind, text, must) in table {
            let why = kind.read(text).unwrap_err();
            assert!(why.contains(must), "{} {text:?}: {why}", kind.name());
        }
        assert!(Kind::Folder.check_there("/no/such/folder").unwrap_err().contains("folder"));
    }

    #[test]
    fn steps_of_a_tenth_are_steps() {
        let tenths = Kind::Float(Range { min: Some(0.0), max: Some(1.0), step: Some(0.1) });
        assert_eq!(tenths.read("0.3").unwrap(), "0.3");
        tenths.read("0.35").unwrap_err();
    }
}
