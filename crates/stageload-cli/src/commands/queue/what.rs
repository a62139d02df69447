//! What a job runs: a command of one's own, or one that a preset makes of inputs and parameters.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use stageload::core::queue::{Expected, Lower};
use stageload::presets::{InPath, Order, Presets};
use stageload::wire::PresetUse;

use super::{Queue, absolute};
use crate::failure::Failure;
use crate::output;

/// A preset instead of a command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Preset")]
pub(crate) struct PresetFlags {
    /// Make the command from this preset; what follows is its input then (see `stageload presets`)
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// A parameter of the preset (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "preset", value_parser = setting)]
    set: Vec<(String, String)>,

    /// Where the result goes, a file or a folder; named after the input, here, if absent
    #[arg(short, long, value_name = "PATH", requires = "preset")]
    out: Option<PathBuf>,

    /// Replace a result that is there
    #[arg(long, requires = "preset")]
    overwrite: bool,

    /// After a kill try the next lower setting without asking
    #[arg(long, requires = "preset")]
    may_lower: bool,
}

/// A command line with all that is known of it.
#[derive(Debug)]
pub(crate) struct What {
    pub(crate) command: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) preset: Option<PresetUse>,
    pub(crate) key: String,
    pub(crate) declared: Option<Expected>,
    pub(crate) busy: Vec<String>,
    pub(crate) lower: Lower,
}

impl PresetFlags {
    /// Everything that can be found wrong now is found wrong now: a night of waiting is a long time to
    /// be told of a slip of the pen.
    pub(crate) fn make(&self, words: Vec<OsString>, queue: &Queue) -> Result<What, Failure> {
        let Some(name) = &self.preset else { return Ok(plain(words)) };
        let (presets, problems) = Presets::load(&queue.home);
        for problem in problems {
            output::log(&format!("preset: {problem}"));
        }
        let refuse = |refusal: stageload::presets::Refusal| Failure::data(refusal.to_string());
        let preset = presets.get(name).map_err(refuse)?;
        let inputs: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
        let order = Order {
            inputs: &inputs,
            set: &self.set,
            output: self.out.as_deref(),
            overwrite: self.overwrite,
            may_lower: self.may_lower,
        };
        let made = preset.make_order(&order, &InPath).map_err(refuse)?;
        let used = made.preset_use(preset);
        for seen in preset.preflight(&made.command, &used, &InPath).map_err(refuse)? {
            output::log(&format!("preset: {seen}"));
        }
        refuse_doubled(queue, &used)?;
        Ok(What {
            command: made.command,
            env: made.env,
            preset: Some(used),
            key: made.key,
            declared: made.declared,
            busy: made.busy,
            lower: made.lower,
        })
    }
}

/// Equal commands are expected to take what they took. Their folders and files may differ in ways that
/// nobody can see, so that only the whole command line says so.
fn plain(command: Vec<OsString>) -> What {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    What {
        key: words.join(" "),
        command,
        env: BTreeMap::new(),
        preset: None,
        declared: None,
        busy: Vec::new(),
        lower: Lower::Nothing,
    }
}

/// Two jobs that write one file: the later would destroy what the earlier has made.
fn refuse_doubled(queue: &Queue, used: &PresetUse) -> Result<(), Failure> {
    for row in queue.store.unfinished()? {
        let theirs = row.spec.preset.map(|preset| preset.outputs).unwrap_or_default();
        if let Some(path) = used.outputs.iter().find(|path| theirs.contains(&absolute(path))) {
            let (id, path) = (row.id, path.display());
            let text = format!("job {id} will write {path} already; name another place with --out");
            return Err(Failure::cannot_create(text));
        }
    }
    Ok(())
}

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give NAME=VALUE".to_owned()),
    }
}
