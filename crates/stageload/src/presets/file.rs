//! The shape of a preset's file. What its keys mean together is checked in `check.rs`.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use stageload_core::Bytes;
use toml::Spanned;

use super::preset::{InputKind, OutputKind};
use super::template::{Part, Word};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    pub(super) about: String,
    pub(super) version: Scalar,
    #[serde(default)]
    pub(super) install: String,
    pub(super) command: Spanned<Vec<Spanned<Part>>>,
    #[serde(default)]
    pub(super) env: BTreeMap<Spanned<String>, String>,
    #[serde(default)]
    pub(super) requires: Vec<Spanned<Word>>,
    #[serde(default)]
    pub(super) busy: Vec<Pattern>,
    #[serde(default)]
    pub(super) disk: Option<Size>,
    #[serde(default)]
    pub(super) inputs: Option<Spanned<Inputs>>,
    #[serde(default)]
    pub(super) params: Vec<Spanned<Param>>,
    #[serde(default)]
    pub(super) outputs: Vec<Spanned<Output>>,
    #[serde(default)]
    pub(super) stages: Stages,
    #[serde(default)]
    pub(super) exit_codes: BTreeMap<Spanned<String>, String>,
    #[serde(default)]
    pub(super) need: Vec<Spanned<Need>>,
    #[serde(default)]
    pub(super) ladder: Vec<Spanned<Rung>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inputs {
    pub(super) kind: InputKind,
    #[serde(default = "one")]
    pub(super) least: usize,
    pub(super) most: Option<usize>,
    #[serde(default)]
    pub(super) extensions: Vec<String>,
    pub(super) least_side: Option<u32>,
    pub(super) most_megapixels: Option<u32>,
}

const fn one() -> usize {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Param {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: ParamType,
    pub(super) default: Option<Spanned<Scalar>>,
    pub(super) min: Option<Spanned<Scalar>>,
    pub(super) max: Option<Spanned<Scalar>>,
    pub(super) step: Option<Spanned<Scalar>>,
    #[serde(default)]
    pub(super) choices: Vec<Scalar>,
    pub(super) about: String,
    pub(super) learns: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ParamType {
    Int,
    Float,
    Choice,
    Bool,
    Text,
    Size,
    File,
    Folder,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    pub(super) kind: OutputKind,
    pub(super) name: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stages {
    #[serde(default)]
    pub(super) names: Vec<String>,
    #[serde(default)]
    pub(super) lines: Vec<Spanned<Line>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) stage: String,
    pub(super) line: Pattern,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Need {
    pub(super) peak: Size,
    pub(super) stage: Option<String>,
    #[serde(default)]
    pub(super) when: BTreeMap<String, Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rung {
    pub(super) about: String,
    pub(super) set: BTreeMap<String, Scalar>,
}

/// A regular expression.
#[derive(Debug)]
pub(super) struct Pattern(pub(super) Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let why = |error| format!("not a regular expression: {}", last_line(&error));
        Regex::new(&text).map(Self).map_err(|error| de::Error::custom(why(error)))
    }
}

/// The crate draws the place over several lines, and says what is wrong in the last.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// A size such as `31G`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size(pub(super) Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// A value that may be written with or without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar(pub(super) String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true or false")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_bool<E: de::Error>(self, yes: bool) -> Result<Scalar, E> {
        Ok(Scalar(yes.to_string()))
    }
}
