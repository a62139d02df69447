//! A job's command line from a preset: every value checked, every file looked for, nothing started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};

use stageload_core::queue::{Expected, Lower};

use super::param::Param;
use super::preflight::check_writable;
use super::preset::{InputKind, Preset};
use super::programs::{InPath, Programs, WORKER};
use super::refusal::{Refusal, nearest};
use super::template::{Filling, Part, Word, fill};
use crate::wire::PresetUse;

/// What somebody wants of a preset.
#[derive(Debug, Clone, Copy, Default)]
pub struct Order<'a> {
    /// The input files, or the words of a `command`.
    pub inputs: &'a [PathBuf],
    /// Parameters and their values; of two for one parameter the later counts.
    pub set: &'a [(String, String)],
    /// The main output, or the folder for it. Else it is named after the input, in the current
    /// folder.
    pub output: Option<&'a Path>,
    /// Whether outputs may replace what is there.
    pub overwrite: bool,
    /// Whether the next lower setting may be tried after a kill without asking.
    pub may_lower: bool,
}

/// A job, as far as its preset tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The program, absolute, and its arguments.
    pub command: Vec<OsString>,
    /// What its environment has besides.
    pub env: BTreeMap<String, String>,
    /// Every parameter that has a value.
    pub values: BTreeMap<String, String>,
    /// The inputs, absolute.
    pub inputs: Vec<PathBuf>,
    /// What it will make, absolute; the main output first.
    pub outputs: Vec<PathBuf>,
    /// Equal for jobs that should take the same memory.
    pub key: String,
    /// The declared peak.
    pub declared: Option<Expected>,
    /// Regular expressions of command lines that keep it waiting.
    pub busy: Vec<String>,
    /// What may be tried after a kill.
    pub lower: Lower,
}

impl Made {
    /// As it is kept with the job.
    pub fn preset_use(&self, preset: &Preset) -> PresetUse {
        PresetUse {
            name: preset.name.clone(),
            values: self.values.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        }
    }
}

impl Preset {
    /// A job that replaces no file and asks before it is tried lower, with programs from `$PATH`.
    pub fn make(
        &self,
        inputs: &[PathBuf],
        set: &[(String, String)],
        output: Option<&Path>,
    ) -> Result<Made, Refusal> {
        self.make_order(&Order { inputs, set, output, ..Order::default() }, &InPath)
    }

    /// The same with every choice.
    pub fn make_order(&self, order: &Order<'_>, programs: &dyn Programs) -> Result<Made, Refusal> {
        let values = self.values(order.set)?;
        let inputs = self.inputs_of(order.inputs, programs)?;
        let outputs = self.outputs_of(order, &values, &inputs)?;
        let output = outputs.first().map(PathBuf::as_path);
        let filling = Filling { params: &self.params, values: &values, inputs: &inputs, output };
        let command = self.command_with(&filling, programs)?;
        self.check_requires(&filling)?;
        Ok(Made {
            command,
            env: self.env.clone(),
            key: self.key(&values, &inputs),
            declared: self.declared(&values),
            busy: self.busy.clone(),
            lower: self.lower(&values, order.may_lower),
            values,
            inputs,
            outputs,
        })
    }

    fn values(&self, set: &[(String, String)]) -> Result<BTreeMap<String, String>, Refusal> {
        let names = self.params.iter().map(|param| param.name.as_str());
        if let Some((name, _)) = set.iter().find(|(name, _)| self.param(name).is_none()) {
            let nearest = nearest(name, names);
            return Err(Refusal::UnknownParam {
                preset: self.name.clone(),
                name: name.clone(),
                nearest,
            });
        }
        let mut values = BTreeMap::new();
        for param in &self.params {
            let given = set.iter().rfind(|(name, _)| *name == param.name).map(|(_, value)| value);
            let Some(text) = given.or(param.default.as_ref()) else {
                self.check_optional(&param.name, &param.about)?;
                continue;
            };
            let read = param.kind.read(text);
            let value = read.and_then(|value| param.kind.check_there(&value).map(|()| value));
            let value = value.map_err(|why| self.bad_value(&param.name, text, why))?;
            values.insert(param.name.clone(), value);
        }
        Ok(values)
    }

    /// A parameter without a value is one that no word needs unless it has one.
    fn check_optional(&self, name: &str, about: &str) -> Result<(), Refusal> {
        let has = |word: &Word| word.slots().any(|slot| slot == name);
        let needs = |part: &Part| match part {
            Part::One(word) => has(word),
            Part::When { name: condition, words, .. } => condition != name && words.iter().any(has),
            Part::Inputs => false,
        };
        if !self.command.iter().any(needs) {
            return Ok(());
        }
        let (preset, name, about) = (self.name.clone(), name.to_owned(), about.to_owned());
        Err(Refusal::NeedsValue { preset, name, about })
    }

    fn inputs_of(
        &self,
        given: &[PathBuf],
        programs: &dyn Programs,
    ) -> Result<Vec<PathBuf>, Refusal> {
        self.check_count(given.len())?;
        if self.inputs.kind == InputKind::Word {
            return Ok(given.to_vec());
        }
        let absent = |path: &Path, source| Refusal::NoInput { path: path.to_owned(), source };
        let one = |path: &PathBuf| {
            let whole = path::absolute(path).map_err(|source| absent(path, source))?;
            self.check_input(&whole, programs)?;
            Ok(whole)
        };
        given.iter().map(one).collect()
    }

    fn check_count(&self, given: usize) -> Result<(), Refusal> {
        let (least, most) = (self.inputs.least, self.inputs.most);
        if (least..=most).contains(&given) {
            return Ok(());
        }
        let inputs = |n: usize| if n == 1 { "one input".to_owned() } else { format!("{n} inputs") };
        let takes = match (least, most) {
            (0, 0) => "no input".to_owned(),
            (0, most) => format!("at most {}", inputs(most)),
            (least, usize::MAX) => format!("at least {}", inputs(least)),
            (least, most) if least == most => inputs(least),
            (least, most) => format!("{least} to {}", inputs(most)),
        };
        let advice = match (given > most, most) {
            (true, 0) => "leave it away",
            (true, _) => "queue a job for each",
            (false, _) => "name what to work on",
        };
        Err(Refusal::InputCount { preset: self.name.clone(), takes, given, advice })
    }

    fn outputs_of(
        &self,
        order: &Order<'_>,
        values: &BTreeMap<String, String>,
        inputs: &[PathBuf],
    ) -> Result<Vec<PathBuf>, Refusal> {
        let Some((first, others)) = self.outputs.split_first() else {
            let preset = self.name.clone();
            return order.output.map_or(Ok(vec![]), |_| Err(Refusal::NoOutput { preset }));
        };
        let filling = Filling { params: &self.params, values, inputs, output: None };
        let main = self.main_output(order.output, &first.name.fill(&filling))?;
        let filling = Filling { output: Some(&main), ..filling };
        let others = others.iter().map(|other| main.with_file_name(other.name.fill(&filling)));
        let outputs: Vec<_> = std::iter::once(main.clone()).chain(others).collect();
        check_writable(main.parent().unwrap_or(&main))?;
        for path in &outputs {
            check_place(path, inputs, order.overwrite)?;
        }
        Ok(outputs)
    }

    fn main_output(&self, given: Option<&Path>, name: &OsStr) -> Result<PathBuf, Refusal> {
        let path = match given {
            None => PathBuf::from(name),
            Some(path) if path.is_dir() => path.join(name),
            Some(path) => path.to_owned(),
        };
        let ending = |path: &Path| path.extension().map(OsStr::to_ascii_lowercase);
        if let (Some(right), own) = (ending(Path::new(name)), ending(&path))
            && own.as_ref() != Some(&right)
        {
            let ending = right.to_string_lossy().into_owned();
            return Err(Refusal::OutputEnding { path, preset: self.name.clone(), ending });
        }
        path::absolute(&path).map_err(|source| Refusal::Unwritable { folder: path, source })
    }

    fn command_with(
        &self,
        filling: &Filling<'_>,
        programs: &dyn Programs,
    ) -> Result<Vec<OsString>, Refusal> {
        let mut command = fill(&self.command, filling);
        let worker = match self.command.first() {
            Some(Part::One(word)) if word.only_slot() == Some(WORKER) => Some(OsStr::new(WORKER)),
            _ => None,
        };
        let program = worker.or(command.first().map(OsString::as_os_str)).unwrap_or_default();
        let found = programs.find(program).ok_or_else(|| self.no_program(program))?;
        if let Some(first) = command.first_mut() {
            *first = found.into();
        }
        Ok(command)
    }

    /// Where its program is, with its parameters' defaults; none where that depends on the job.
    pub fn find_program(&self, programs: &dyn Programs) -> Option<Result<PathBuf, Refusal>> {
        let default = |param: &Param| Some((param.name.clone(), param.default.clone()?));
        let values: BTreeMap<String, String> = self.params.iter().filter_map(default).collect();
        let first = self.command.get(..1)?;
        let worker = match first {
            [Part::One(word)] => word.only_slot() == Some(WORKER),
            _ => false,
        };
        let filling = Filling { params: &self.params, values: &values, inputs: &[], output: None };
        let named = fill(first, &filling).into_iter().next().filter(|word| !word.is_empty());
        let program = if worker { WORKER.into() } else { named? };
        Some(programs.find(&program).ok_or_else(|| self.no_program(&program)))
    }

    /// That the program is still where it was found.
    pub(super) fn check_program(
        &self,
        command: &[OsString],
        programs: &dyn Programs,
    ) -> Result<(), Refusal> {
        let program = command.first().map(OsString::as_os_str).unwrap_or_default();
        programs.find(program).map(drop).ok_or_else(|| self.no_program(program))
    }

    /// That the files it works with, and those that were chosen, are still there.
    pub(super) fn check_chosen(&self, used: &PresetUse) -> Result<(), Refusal> {
        for (name, value) in &used.values {
            let there = self.param(name).map_or(Ok(()), |param| param.kind.check_there(value));
            there.map_err(|why| self.bad_value(name, value, why))?;
        }
        let (params, values, inputs) = (&self.params, &used.values, &used.inputs);
        self.check_requires(&Filling { params, values, inputs, output: None })
    }

    fn no_program(&self, program: &OsStr) -> Refusal {
        Refusal::NoProgram {
            preset: self.name.clone(),
            program: program.to_string_lossy().into_owned(),
            install: self.install.clone(),
        }
    }

    fn bad_value(&self, name: &str, value: &str, why: String) -> Refusal {
        let (preset, name, value) = (self.name.clone(), name.to_owned(), value.to_owned());
        Refusal::BadValue { preset, name, value, why }
    }

    fn check_requires(&self, filling: &Filling<'_>) -> Result<(), Refusal> {
        let has_all = |word: &&Word| word.slots().all(|slot| filling.values.contains_key(slot));
        let mut paths = self.requires.iter().filter(has_all).map(|word| word.fill(filling));
        match paths.find(|path| !Path::new(path).exists()) {
            None => Ok(()),
            Some(path) => Err(Refusal::Missing {
                preset: self.name.clone(),
                path: path.into(),
                install: self.install.clone(),
            }),
        }
    }

    /// Name, version and what matters, in the order of the names. Of a command every word matters.
    fn key(&self, values: &BTreeMap<String, String>, inputs: &[PathBuf]) -> String {
        let mut key = format!("{} {}", self.name, self.version);
        let learns = |name: &str| self.param(name).is_some_and(|param| param.learns);
        let learned = values.iter().filter(|(name, _)| learns(name));
        key.extend(learned.map(|(name, value)| format!(" {name}={}", quoted(value))));
        if self.inputs.kind == InputKind::Word {
            key.extend(inputs.iter().map(|word| format!(" {}", quoted(&word.to_string_lossy()))));
        }
        key
    }

    fn lower(&self, values: &BTreeMap<String, String>, may_lower: bool) -> Lower {
        match self.next_lower(values) {
            None => Lower::Nothing,
            Some((words, _)) if may_lower => Lower::Allowed(words),
            Some((words, _)) => Lower::Ask(words),
        }
    }
}

/// In quotes where a reader of the key could take it for two values, or for none.
fn quoted(value: &str) -> String {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    if value.is_empty() || value.contains(is_odd) { format!("{value:?}") } else { value.to_owned() }
}

fn check_place(path: &Path, inputs: &[PathBuf], overwrite: bool) -> Result<(), Refusal> {
    let number = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let own = number(path);
    // By its number: a file has many names.
    if own.is_some() && inputs.iter().any(|input| number(input) == own) {
        let why = "it is the input, and the output would replace it; choose another name";
        return Err(Refusal::BadInput { path: path.to_owned(), why: why.to_owned() });
    }
    // A link to nowhere is there too, and would be written through.
    let is_there = path.symlink_metadata().is_ok();
    if is_there && (!overwrite || path.is_dir()) {
        return Err(Refusal::OutputExists { path: path.to_owned() });
    }
    Ok(())
}
