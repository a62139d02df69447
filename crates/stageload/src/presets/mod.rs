//! Presets: what can be queued by name, as data. A preset is a TOML file: a command line with
//! slots, parameters with their types and ranges, what goes in and comes out, its stages and how
//! they are told, what its exit codes mean, what it needs, and what may be tried after a kill.
//! `presets/README.md` of this crate is the manual for those who write one.
//!
//! There is no shell: a value never becomes more than its one word, whatever is in it. A file of
//! the user's replaces the built-in preset of the same name; one that is wrong is a [`Problem`] and
//! stops nothing.
//!
//! `file.rs` is the shape of a file, `check.rs` makes a [`Preset`] of one, `template.rs` has the
//! words, `param.rs` the values, `make.rs` the job, `ladder.rs` the way down, `stages.rs` what is
//! read from output, `preflight.rs` and `picture.rs` what is looked at before a job starts.

mod check;
mod file;
mod ladder;
mod make;
mod param;
mod picture;
mod preflight;
mod preset;
mod programs;
mod refusal;
mod stages;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use make::{Made, Order};
pub use param::{Kind, Param, Range};
pub use preflight::Seen;
pub use preset::{InputKind, Inputs, OutputKind, Preset};
pub use programs::{InPath, Programs};
pub use refusal::Refusal;
pub use stages::StageWatch;

const BUILT_IN: [&str; 4] = [
    include_str!("built_in/command.toml"),
    include_str!("built_in/mesh.toml"),
    include_str!("built_in/pixal3d.toml"),
    include_str!("built_in/qwen-image.toml"),
];

/// No preset is longer; a log that got into the folder shall not be read to its end.
const LONGEST: u64 = 1 << 20;

/// Every preset there is, by name.
#[derive(Debug, Clone, Default)]
pub struct Presets(BTreeMap<String, Preset>);

/// A file that is no preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which.
    pub file: PathBuf,
    /// The line, from 1 on, where one is to blame.
    pub line: Option<usize>,
    /// The key, where one is to blame.
    pub key: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", {key}")?;
        }
        let why = self.why.trim_end_matches('.');
        write!(f, ": {why}; this preset is left out until the file is mended")
    }
}

impl Presets {
    /// The built-in presets, and those of the user in `presets/` of this folder.
    pub fn load(home: &Path) -> (Self, Vec<Problem>) {
        let mut presets = Self::default();
        let mut problems = Vec::new();
        for text in BUILT_IN {
            match check::parse(text) {
                Ok(preset) => {
                    presets.0.insert(preset.name().to_owned(), preset);
                }
                Err(flaw) => problems.push(problem(Path::new("built in"), text, flaw)),
            }
        }
        let folder = home.join("presets");
        let mut seen = BTreeMap::new();
        match toml_files(&folder) {
            Ok(files) => {
                let add = |file: PathBuf| presets.add_file(&file, &mut seen).err();
                problems.extend(files.into_iter().filter_map(add));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problems.push(unreadable(&folder, &error)),
        }
        (presets, problems)
    }

    /// The preset of this name.
    pub fn get(&self, name: &str) -> Result<&Preset, Refusal> {
        let names = self.0.keys().map(String::as_str);
        self.0.get(name).ok_or_else(|| Refusal::UnknownPreset {
            name: name.to_owned(),
            nearest: refusal::nearest(name, names),
        })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Preset> {
        self.0.values()
    }

    /// Of the user's files for one name the first counts.
    fn add_file(
        &mut self,
        file: &Path,
        seen: &mut BTreeMap<String, PathBuf>,
    ) -> Result<(), Problem> {
        let text = read(file).map_err(|error| unreadable(file, &error))?;
        let preset = check::parse(&text).map_err(|flaw| problem(file, &text, flaw))?;
        let name = preset.name().to_owned();
        if let Some(first) = seen.get(&name) {
            let why = format!("{} has a preset {name:?} too", first.display());
            let key = Some("name".to_owned());
            return Err(Problem { file: file.to_owned(), line: None, key, why });
        }
        seen.insert(name.clone(), file.to_owned());
        self.0.insert(name, preset);
        Ok(())
    }
}

fn read(file: &Path) -> io::Result<String> {
    let found = fs::metadata(file)?;
    if !found.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if found.len() > LONGEST {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    fs::read_to_string(file)
}

/// By name, so that of two files for one preset always the same one counts.
fn toml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<_> = paths.collect::<io::Result<_>>()?;
    let is_hidden = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    paths.retain(|path| path.extension().is_some_and(|one| one == "toml") && !is_hidden(path));
    paths.sort();
    Ok(paths)
}

fn unreadable(file: &Path, error: &io::Error) -> Problem {
    Problem {
        file: file.to_owned(),
        line: None,
        key: None,
        why: format!("cannot read it: {error}"),
    }
}

fn problem(file: &Path, text: &str, flaw: check::Flaw) -> Problem {
    let start = flaw.at.map(|at| at.start.min(text.len()));
    let before = start.and_then(|start| text.get(..start));
    let line = before.map(|before| before.matches('\n').count() + 1);
    let key = flaw.key.or_else(|| line.and_then(|line| key_of(text.lines().nth(line - 1)?)));
    Problem {
        file: file.to_owned(),
        line,
        key,
        why: flaw.why.lines().collect::<Vec<_>>().join(" "),
    }
}

/// The key that a line gives a value to, or the table that it begins.
fn key_of(line: &str) -> Option<String> {
    let key = line.split_once('=').map_or(line, |(key, _)| key).trim();
    let is_key = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.[]\"".contains(c))
    };
    is_key(key).then(|| key.to_owned())
}
