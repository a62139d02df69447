//! A preset's file as it was read, to a preset that holds together: names are known, values fit
//! their types, stages exist. What does not hold together is told with its place.

use std::collections::BTreeMap;
use std::ops;

use stageload_core::queue::Expected;
use toml::Spanned;

use super::file::{self, File, ParamType, Scalar};
use super::param::{Kind, Param, Range, any_of};
use super::picture::MAX_MEGAPIXELS;
use super::preset::{InputKind, Inputs, Need, Output, Preset, Rung};
use super::programs::WORKER;
use super::refusal::nearest;
use super::stages::Sign;
use super::template::{Part, RESERVED, Word};

/// What is wrong with a file, and where in it.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) at: Option<ops::Range<usize>>,
    pub(super) key: Option<String>,
    pub(super) why: String,
}

type Checked<T> = Result<T, Flaw>;

fn flaw<T>(at: ops::Range<usize>, key: &str, why: impl Into<String>) -> Checked<T> {
    Err(Flaw { at: Some(at), key: Some(key.to_owned()), why: why.into() })
}

impl Flaw {
    fn of_toml(error: &toml::de::Error) -> Self {
        Self { at: error.span(), key: None, why: error.message().to_owned() }
    }
}

/// Reads a preset's file.
pub(super) fn parse(text: &str) -> Checked<Preset> {
    let file: File = toml::from_str(text).map_err(|error| Flaw::of_toml(&error))?;
    if !is_name(file.name.as_ref()) {
        return flaw(file.name.span(), "name", NAME);
    }
    let preset = Preset {
        params: params(&file.params)?,
        inputs: inputs(file.inputs.as_ref())?,
        stages: file.stages.names.clone(),
        exit_codes: exit_codes(&file.exit_codes)?,
        signs: signs(&file.stages)?,
        name: file.name.into_inner(),
        about: file.about,
        version: file.version.0,
        install: file.install,
        command: Vec::new(),
        env: env(file.env)?,
        requires: Vec::new(),
        busy: file.busy.into_iter().map(|one| one.0.as_str().to_owned()).collect(),
        disk: file.disk.map(|size| size.0),
        outputs: Vec::new(),
        needs: Vec::new(),
        ladder: Vec::new(),
    };
    let outputs = outputs(&preset, file.outputs)?;
    let preset = Preset { outputs, ..preset };
    Ok(Preset {
        command: command(&preset, file.command)?,
        requires: requires(&preset, file.requires)?,
        needs: needs(&preset, file.need)?,
        ladder: ladder(&preset, file.ladder)?,
        ..preset
    })
}

const NAME: &str = "a name is made of small letters, digits, dots and dashes";

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_plain)
}

fn params(found: &[Spanned<file::Param>]) -> Checked<Vec<Param>> {
    let mut params: Vec<Param> = Vec::new();
    for one in found {
        let param = one.as_ref();
        let is_taken = RESERVED.contains(&param.name.as_str())
            || param.name == WORKER
            || params.iter().any(|other| other.name == param.name);
        if is_taken {
            return flaw(
                one.span(),
                "name",
                format!("{:?} is taken; choose another name", param.name),
            );
        }
        if !is_name(&param.name) {
            return flaw(one.span(), "name", NAME);
        }
        let kind = kind(one)?;
        let read = |value: &Spanned<Scalar>| {
            let bad = |why| flaw(value.span(), "default", format!("{:?}: {why}", param.name));
            kind.read(&value.as_ref().0).or_else(bad)
        };
        let default = param.default.as_ref().map(read).transpose()?;
        let is_free = matches!(kind, Kind::Text | Kind::File | Kind::Folder);
        params.push(Param {
            name: param.name.clone(),
            about: param.about.clone(),
            learns: param.learns.unwrap_or(!is_free),
            default,
            kind,
        });
    }
    Ok(params)
}

fn kind(one: &Spanned<file::Param>) -> Checked<Kind> {
    let param = one.as_ref();
    let bounds = [("min", &param.min), ("max", &param.max), ("step", &param.step)];
    let has_bounds = matches!(param.kind, ParamType::Int | ParamType::Float | ParamType::Size);
    if let Some((key, Some(bound))) = bounds.into_iter().find(|(_, bound)| bound.is_some())
        && !has_bounds
    {
        return flaw(bound.span(), key, "only int, float and size have bounds; leave it away");
    }
    if param.choices.is_empty() == (param.kind == ParamType::Choice) {
        return flaw(one.span(), "choices", "a choice, and nothing else, has choices");
    }
    Ok(match param.kind {
        ParamType::Int => Kind::Int(range(param)?),
        ParamType::Float => Kind::Float(range(param)?),
        ParamType::Size => {
            let bytes: Range<SizeText> = range(param)?;
            let plain = |size: Option<SizeText>| size.map(|size| size.0);
            Kind::Size(Range { min: plain(bytes.min), max: plain(bytes.max), step: None })
        }
        ParamType::Choice => Kind::Choice(param.choices.iter().map(|one| one.0.clone()).collect()),
        ParamType::Bool => Kind::Bool,
        ParamType::Text => Kind::Text,
        ParamType::File => Kind::File,
        ParamType::Folder => Kind::Folder,
    })
}

/// A bound in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
struct SizeText(u64);

impl std::str::FromStr for SizeText {
    type Err = stageload_core::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<stageload_core::Bytes>().map(|bytes| Self(bytes.0))
    }
}

fn range<T: std::str::FromStr + PartialOrd + Default>(param: &file::Param) -> Checked<Range<T>> {
    let read = |key: &str, bound: &Option<Spanned<Scalar>>| {
        let Some(bound) = bound else {
            return Ok(None);
        };
        let bad = |_| flaw(bound.span(), key, "the bound is not of the parameter's type");
        bound.as_ref().0.parse().map(Some).or_else(bad)
    };
    let range = Range {
        min: read("min", &param.min)?,
        max: read("max", &param.max)?,
        step: read("step", &param.step)?,
    };
    match (&range, &param.max, &param.step) {
        (Range { min: Some(min), max: Some(max), .. }, Some(at), _) if min > max => {
            flaw(at.span(), "max", "it is below min")
        }
        (Range { step: Some(step), .. }, _, Some(at)) if *step <= T::default() => {
            flaw(at.span(), "step", "it must be above zero")
        }
        _ => Ok(range),
    }
}

fn inputs(found: Option<&Spanned<file::Inputs>>) -> Checked<Inputs> {
    let Some(found) = found else {
        return Ok(Inputs {
            kind: InputKind::Any,
            least: 0,
            most: 0,
            extensions: Vec::new(),
            least_side: 0,
            most_megapixels: MAX_MEGAPIXELS,
        });
    };
    let one = found.as_ref();
    let most =
        one.most.unwrap_or(if one.kind == InputKind::Word { usize::MAX } else { one.least.max(1) });
    if most < one.least {
        return flaw(found.span(), "most", "it is below least");
    }
    let extensions = one.extensions.iter().map(|text| text.trim_start_matches('.').to_lowercase());
    Ok(Inputs {
        kind: one.kind,
        least: one.least,
        most,
        extensions: extensions.collect(),
        least_side: one.least_side.unwrap_or(0),
        most_megapixels: one.most_megapixels.unwrap_or(MAX_MEGAPIXELS).min(MAX_MEGAPIXELS),
    })
}

fn outputs(preset: &Preset, found: Vec<Spanned<file::Output>>) -> Checked<Vec<Output>> {
    let mut outputs = Vec::new();
    for one in found {
        let at = one.span();
        let file::Output { kind, name } = one.into_inner();
        let is_number =
            |slot: &str| preset.param(slot).is_some_and(|param| matches!(param.kind, Kind::Int(_)));
        let is_known = |slot: &str| match slot {
            "stem" => preset.inputs.least > 0,
            "output-stem" => !outputs.is_empty(),
            _ => is_number(slot),
        };
        if let Some(slot) = name.slots().find(|slot| !is_known(slot)) {
            let why = format!(
                "{{{slot}}} cannot stand in a file's name here: {{stem}} is the name of an input that is \
                 always there, {{output-stem}} that of the first output, and numbers may stand there"
            );
            return flaw(at, "name", why);
        }
        if name.texts().any(|text| text.contains('/')) {
            return flaw(at, "name", "it is a name in the output's folder, so it has no slash");
        }
        outputs.push(Output { kind, name });
    }
    Ok(outputs)
}

fn command(preset: &Preset, found: Spanned<Vec<Spanned<Part>>>) -> Checked<Vec<Part>> {
    let is_word = |part: &Spanned<Part>| match part.as_ref() {
        Part::One(_) => true,
        Part::Inputs => preset.inputs.kind == InputKind::Word,
        Part::When { .. } => false,
    };
    if !found.as_ref().first().is_some_and(is_word) {
        return flaw(found.span(), "command", "its first word is the program's, without condition");
    }
    for (at, part) in found.as_ref().iter().enumerate() {
        if let Err(why) = check_part(preset, part.as_ref(), at == 0) {
            return flaw(part.span(), "command", why);
        }
    }
    Ok(found.into_inner().into_iter().map(Spanned::into_inner).collect())
}

fn check_part(preset: &Preset, part: &Part, is_first: bool) -> Result<(), String> {
    match part {
        Part::One(word) if is_first && word.only_slot() == Some(WORKER) => Ok(()),
        Part::One(word) => check_word(preset, word, preset.inputs.least > 0),
        Part::Inputs => Ok(()),
        Part::When { name, is_set, words } => {
            let is_inputs = name == "input" || name == "inputs";
            if !is_inputs && preset.param(name).is_none() {
                return Err(unknown(preset, name));
            }
            let has_input = preset.inputs.least > 0 || (is_inputs && *is_set);
            words.iter().try_for_each(|word| check_word(preset, word, has_input))
        }
    }
}

fn check_word(preset: &Preset, word: &Word, has_input: bool) -> Result<(), String> {
    for slot in word.slots() {
        match slot {
            "inputs" => return Err("{inputs} is a word by itself, outside conditions".to_owned()),
            "input" | "stem" if !has_input => {
                return Err(format!(
                    "there may be no input for {{{slot}}}; put the word under {{ if = \"input\", \
                     words = [...] }}"
                ));
            }
            "output" | "output-folder" | "output-stem" if preset.outputs.is_empty() => {
                return Err(format!(
                    "there is no output for {{{slot}}}; declare it in [[outputs]]"
                ));
            }
            _ if RESERVED.contains(&slot) || preset.param(slot).is_some() => {}
            _ => return Err(unknown(preset, slot)),
        }
    }
    Ok(())
}

fn unknown(preset: &Preset, name: &str) -> String {
    let params = preset.params.iter().map(|param| param.name.as_str());
    let all: Vec<_> = params.chain(RESERVED).collect();
    format!("there is no parameter {name:?}; {}", nearest(name, all.iter().copied()))
}

fn requires(preset: &Preset, found: Vec<Spanned<Word>>) -> Checked<Vec<Word>> {
    for word in &found {
        if let Some(slot) = word.as_ref().slots().find(|slot| preset.param(slot).is_none()) {
            return flaw(word.span(), "requires", unknown(preset, slot));
        }
    }
    Ok(found.into_iter().map(Spanned::into_inner).collect())
}

fn env(found: BTreeMap<Spanned<String>, String>) -> Checked<BTreeMap<String, String>> {
    for (name, value) in &found {
        let text = name.as_ref();
        if text.is_empty() || text.contains(['=', '\0']) {
            return flaw(name.span(), "env", format!("{text:?} cannot be the name of a variable"));
        }
        if value.contains('\0') {
            return flaw(name.span(), "env", format!("the value of {text:?} has a NUL character"));
        }
    }
    Ok(found.into_iter().map(|(name, value)| (name.into_inner(), value)).collect())
}

fn signs(stages: &file::Stages) -> Checked<Vec<Sign>> {
    let mut signs = Vec::new();
    for one in &stages.lines {
        let line = one.as_ref();
        if !stages.names.contains(&line.stage) {
            let why = format!(
                "{:?} is none of the names; they are {}",
                line.stage,
                any_of(&stages.names)
            );
            return flaw(one.span(), "stage", why);
        }
        signs.push(Sign { stage: line.stage.clone(), line: line.line.0.clone() });
    }
    Ok(signs)
}

fn exit_codes(found: &BTreeMap<Spanned<String>, String>) -> Checked<BTreeMap<i32, String>> {
    let mut codes = BTreeMap::new();
    for (code, means) in found {
        match code.as_ref().parse::<u8>() {
            Ok(number) => codes.insert(i32::from(number), means.clone()),
            Err(_) => {
                return flaw(code.span(), code.as_ref(), "an exit code is a number from 0 to 255");
            }
        };
    }
    Ok(codes)
}

fn needs(preset: &Preset, found: Vec<Spanned<file::Need>>) -> Checked<Vec<Need>> {
    let read = |one: Spanned<file::Need>| {
        let at = one.span();
        let file::Need { peak, stage, when } = one.into_inner();
        if let Some(stage) = stage.as_ref().filter(|stage| !preset.stages.contains(stage)) {
            let why = format!("there is no stage {stage:?}; they are {}", any_of(&preset.stages));
            return flaw(at, "stage", why);
        }
        let when = values(preset, &when).or_else(|why| flaw(at, "when", why))?;
        Ok(Need { expected: Expected { peak: peak.0, stage }, when })
    };
    found.into_iter().map(read).collect()
}

fn ladder(preset: &Preset, found: Vec<Spanned<file::Rung>>) -> Checked<Vec<Rung>> {
    let read = |one: Spanned<file::Rung>| {
        let set = values(preset, &one.as_ref().set).or_else(|why| flaw(one.span(), "set", why))?;
        Ok(Rung { about: one.into_inner().about, set })
    };
    found.into_iter().map(read).collect()
}

fn values(
    preset: &Preset,
    found: &BTreeMap<String, Scalar>,
) -> Result<BTreeMap<String, String>, String> {
    let read = |(name, value): (&String, &Scalar)| {
        let param = preset.param(name).ok_or_else(|| unknown(preset, name))?;
        let value = param.kind.read(&value.0).map_err(|why| format!("{name}: {why}"))?;
        Ok((name.clone(), value))
    };
    found.iter().map(read).collect()
}
