//! The words of a command line, with slots in them. A word stays one word whatever is put into its
//! slots: there is no shell, and nothing here splits, quotes or expands a value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::param::{Kind, Param};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

/// The slots that are no parameters. A parameter may not have such a name.
pub(super) const RESERVED: [&str; 6] =
    ["input", "inputs", "output", "output-folder", "stem", "output-stem"];

/// One word: text and slots in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(String),
}

/// What a template's word becomes: one word, all inputs, or several words under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    One(Word),
    Inputs,
    When { name: String, is_set: bool, words: Vec<Word> },
}

/// What is put into the slots.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub(super) params: &'a [Param],
    pub(super) values: &'a BTreeMap<String, String>,
    pub(super) inputs: &'a [PathBuf],
    pub(super) output: Option<&'a Path>,
}

impl Word {
    /// Slots are `{name}`; a brace itself is written twice.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("a word cannot have a NUL character".to_owned());
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{");
            let open = || {
                format!("the brace in {text:?} is not closed: write {{name}}, or the brace twice")
            };
            let end = end.ok_or_else(open)?;
            pieces.extend((!plain.is_empty()).then(|| Piece::Text(std::mem::take(&mut plain))));
            pieces.push(Piece::Slot(rest[..end].to_owned()));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        pieces.extend((!plain.is_empty()).then_some(Piece::Text(plain)));
        Ok(Self(pieces))
    }

    /// The names in its slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Slot(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text outside its slots.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Slot(_) => None,
        })
    }

    /// The name, if it is one slot and nothing else.
    pub(super) fn only_slot(&self) -> Option<&str> {
        match &self.0[..] {
            [Piece::Slot(name)] => Some(name),
            _ => None,
        }
    }

    /// An empty slot leaves nothing.
    pub(super) fn fill(&self, filling: &Filling<'_>) -> OsString {
        let mut word = OsString::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => word.push(text),
                Piece::Slot(name) => word.push(filling.slot(name)),
            }
        }
        word
    }
}

impl Filling<'_> {
    fn slot(&self, name: &str) -> OsString {
        let stem = |path: Option<&Path>| {
            path.and_then(Path::file_stem).map(ToOwned::to_owned).unwrap_or_default()
        };
        let first = self.inputs.first().map(PathBuf::as_path);
        match name {
            "input" => first.map(Into::into).unwrap_or_default(),
            "output" => self.output.map(Into::into).unwrap_or_default(),
            "output-folder" => {
                self.output.and_then(Path::parent).map(Into::into).unwrap_or_default()
            }
            "stem" => stem(first),
            "output-stem" => stem(self.output),
            _ => self.values.get(name).map(Into::into).unwrap_or_default(),
        }
    }

    /// Whether words under this name's condition are there: a switch must be on, anything else must
    /// not be empty.
    fn is_set(&self, name: &str) -> bool {
        let is_switch = |param: &Param| param.name == name && param.kind == Kind::Bool;
        let value = self.values.get(name).map(String::as_str).unwrap_or_default();
        match name {
            "input" | "inputs" => !self.inputs.is_empty(),
            _ if self.params.iter().any(is_switch) => value == "true",
            _ => !value.is_empty(),
        }
    }
}

/// The command line.
pub(super) fn fill(parts: &[Part], filling: &Filling<'_>) -> Vec<OsString> {
    let mut words = Vec::new();
    for part in parts {
        match part {
            Part::One(word) => words.push(word.fill(filling)),
            Part::Inputs => words.extend(filling.inputs.iter().map(Into::into)),
            Part::When { name, is_set, words: some } if filling.is_set(name) == *is_set => {
                words.extend(some.iter().map(|word| word.fill(filling)));
            }
            Part::When { .. } => {}
        }
    }
    words
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PartVisitor)
    }
}

struct PartVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition<W> {
    #[serde(rename = "if")]
    holds: Option<String>,
    unless: Option<String>,
    words: Vec<W>,
}

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word in quotes, or { if = \"name\", words = [...] }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Part, E> {
        if text == "{inputs}" {
            return Ok(Part::Inputs);
        }
        Word::parse(text).map(Part::One).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Part, A::Error> {
        let found = Condition::<Word>::deserialize(MapAccessDeserializer::new(map))?;
        match (found.holds, found.unless) {
            (Some(name), None) => Ok(Part::When { name, is_set: true, words: found.words }),
            (None, Some(name)) => Ok(Part::When { name, is_set: false, words: found.words }),
            _ => Err(de::Error::custom("words under a condition have either `if` or `unless`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_and_double_braces_are_braces() {
        let word = Word::parse("--a={b}/{{c}}{d}").unwrap();
        assert_eq!(word.slots().collect::<Vec<_>>(), ["b", "d"]);
        let values = BTreeMap::from([("b".to_owned(), "{d}".to_owned()), ("d".into(), "x".into())]);
        let filling = Filling { params: &[], values: &values, inputs: &[], output: None };
        assert_eq!(word.fill(&filling), "--a={d}/{c}x", "a value's own braces are left alone");
        for open in ["{a", "a}", "{", "{{}"] {
            assert!(Word::parse(open).unwrap_err().contains("not closed"), "{open}");
        }
    }
}
