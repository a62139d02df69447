//! A preset: a named pipeline with its parameters, as data. How one is read from a file is in
//! `check.rs`, how a job is made from it in `make.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stageload_core::Bytes;
use stageload_core::queue::Expected;

use super::param::Param;
use super::stages::{Sign, StageWatch};
use super::template::{Part, Word};

/// What can be queued by name.
#[derive(Debug, Clone)]
pub struct Preset {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) version: String,
    pub(super) install: String,
    pub(super) command: Vec<Part>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) requires: Vec<Word>,
    pub(super) busy: Vec<String>,
    pub(super) disk: Option<Bytes>,
    pub(super) inputs: Inputs,
    pub(super) params: Vec<Param>,
    pub(super) outputs: Vec<Output>,
    pub(super) stages: Vec<String>,
    pub(super) signs: Vec<Sign>,
    pub(super) exit_codes: BTreeMap<i32, String>,
    pub(super) needs: Vec<Need>,
    pub(super) ladder: Vec<Rung>,
}

/// What a preset is given to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// What they are.
    pub kind: InputKind,
    /// How many it needs.
    pub least: usize,
    /// How many it takes.
    pub most: usize,
    /// The endings of files that it reads, in small letters; any if empty.
    pub extensions: Vec<String>,
    /// A picture has at least so many pixels along each side.
    pub least_side: u32,
    /// A picture has at most so many millions of pixels; never more than 200 are read.
    pub most_megapixels: u32,
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A picture.
    Image,
    /// A file of UTF-8 text.
    Text,
    /// Any file.
    Any,
    /// No file at all: a word of a command line, passed on as it is.
    Word,
}

/// What an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// A 3D model.
    Mesh,
    /// A picture.
    Image,
    /// Text.
    Text,
}

/// A file that a preset makes.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) kind: OutputKind,
    pub(super) name: Word,
}

/// What a job will hold, where its values are these.
#[derive(Debug, Clone)]
pub(super) struct Need {
    pub(super) expected: Expected,
    pub(super) when: BTreeMap<String, String>,
}

/// A setting that takes less than the one before it.
#[derive(Debug, Clone)]
pub(super) struct Rung {
    pub(super) about: String,
    pub(super) set: BTreeMap<String, String>,
}

impl Preset {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does, in a line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its version: what was learned of one is not believed of another.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How its program is installed, or nothing.
    pub fn install(&self) -> &str {
        &self.install
    }

    /// What it works on.
    pub const fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Its parameters, in the order of its file.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// What each of its outputs is; the first is the main one.
    pub fn outputs(&self) -> impl Iterator<Item = OutputKind> + '_ {
        self.outputs.iter().map(|output| output.kind)
    }

    /// The names of its stages, in order.
    pub fn stages(&self) -> &[String] {
        &self.stages
    }

    /// Reads its stages from its output; none if its program writes them to the events file.
    pub fn stage_watch(&self) -> Option<StageWatch> {
        StageWatch::new(&self.signs)
    }

    /// What its program means by an exit code, where that is known.
    pub fn exit_means(&self, code: i32) -> Option<&str> {
        self.exit_codes.get(&code).map(String::as_str)
    }

    /// What is declared of the peak with these values.
    pub fn declared(&self, values: &BTreeMap<String, String>) -> Option<Expected> {
        let fits =
            |need: &&Need| need.when.iter().all(|(name, value)| values.get(name) == Some(value));
        self.needs.iter().find(fits).map(|need| need.expected.clone())
    }

    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}
