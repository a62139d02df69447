//! Why a job is not queued: what, where, and what to do now.

use std::io;
use std::path::PathBuf;

use stageload_core::Bytes;

/// A job that would fail is refused before it waits for its turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No preset has this name.
    #[error("there is no preset {name:?}; {nearest}")]
    UnknownPreset {
        /// The name.
        name: String,
        /// What may have been meant, or all there are, in words.
        nearest: String,
    },
    /// The preset has no such parameter.
    #[error("{preset} has no parameter {name:?}; {nearest}")]
    UnknownParam {
        /// The preset.
        preset: String,
        /// The name.
        name: String,
        /// What may have been meant, or all there are, in words.
        nearest: String,
    },
    /// A value is out of range, not a choice, or of another type.
    #[error("{preset}: {name}={value:?} cannot be: {why}")]
    BadValue {
        /// The preset.
        preset: String,
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// What it must be.
        why: String,
    },
    /// A parameter without a default was given no value.
    #[error("{preset} needs a value for {name} ({about}); set {name}=...")]
    NeedsValue {
        /// The preset.
        preset: String,
        /// The parameter.
        name: String,
        /// What it is for.
        about: String,
    },
    /// Too few inputs, or too many.
    #[error("{preset} takes {takes}, and {given} {are} given; {advice}", are = if *given == 1 { "is" } else { "are" })]
    InputCount {
        /// The preset.
        preset: String,
        /// How many it takes, in words.
        takes: String,
        /// How many there are.
        given: usize,
        /// What to do.
        advice: &'static str,
    },
    /// An input is not there, or may not be read.
    #[error("cannot read {path}: {source}; check the path and its permissions", path = path.display())]
    NoInput {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An input is something else than the preset reads.
    #[error("{path} is {is}, and {preset} reads {reads}; {advice}", path = path.display())]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What it is.
        is: String,
        /// The preset.
        preset: String,
        /// What that reads.
        reads: String,
        /// What to do.
        advice: String,
    },
    /// An input is of the right kind and cannot be used.
    #[error("{path}: {why}", path = path.display())]
    BadInput {
        /// Where.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// An output was named for a preset that has none.
    #[error("{preset} makes no file that it could be told the name of; leave the output away")]
    NoOutput {
        /// The preset.
        preset: String,
    },
    /// The output's name has another ending than what will be in it.
    #[error("{path} cannot be the name of what {preset} makes: it must end in .{ending}", path = path.display())]
    OutputEnding {
        /// The name.
        path: PathBuf,
        /// The preset.
        preset: String,
        /// The ending.
        ending: String,
    },
    /// Nothing can be written where the output shall go.
    #[error("cannot write to the folder {folder}: {source}; create it, or choose another place", folder = folder.display())]
    Unwritable {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something is already where the output shall go.
    #[error("{path} exists already; choose another name, or say that it may be overwritten", path = path.display())]
    OutputExists {
        /// Where.
        path: PathBuf,
    },
    /// The program is not there.
    #[error("{preset}: there is no program {program:?}; is it installed? {install}")]
    NoProgram {
        /// The preset.
        preset: String,
        /// What was looked for.
        program: String,
        /// How it is installed.
        install: String,
    },
    /// A file that the program works with is not there.
    #[error("{preset}: {path} is not there; is it installed? {install}", path = path.display())]
    Missing {
        /// The preset.
        preset: String,
        /// Where.
        path: PathBuf,
        /// How it is installed.
        install: String,
    },
    /// The disk is too full for the output.
    #[error("{free} are free in {folder}, and {preset} needs {need}; make room, or choose another place", folder = folder.display())]
    NoSpace {
        /// Where.
        folder: PathBuf,
        /// How much is free.
        free: Bytes,
        /// The preset.
        preset: String,
        /// How much it needs.
        need: Bytes,
    },
}

/// The nearest of the names in words, else all of them.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = names.clone().map(|name| (distance(wanted, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 1 + wanted.chars().count() / 4 => {
            format!("did you mean {name}?")
        }
        Some(_) => format!("there are: {}", names.collect::<Vec<_>>().join(", ")),
        None => "there are none".to_owned(),
    }
}

/// How many letters must be changed, put in or left out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not_offered() {
        let names = || ["grid", "texture", "seed"].into_iter();
        assert_eq!(nearest("gird", names()), "did you mean grid?");
        assert_eq!(nearest("textures", names()), "did you mean texture?");
        assert_eq!(nearest("colour", names()), "there are: grid, texture, seed");
        assert_eq!(nearest("x", std::iter::empty()), "there are none");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
