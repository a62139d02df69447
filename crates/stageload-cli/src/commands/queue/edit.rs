//! `stageload edit`: changes a job that waits.

use std::path::PathBuf;

use stageload::core::queue::JobId;
use stageload::presets::{InPath, Order, Presets};
use stageload::wire::Spec;

use super::what::setting;
use super::{Queue, job_id};
use crate::failure::Failure;
use crate::output;

/// Change a job that waits or is held
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its number
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: JobId,

    /// Higher comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,

    /// Its lane
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,

    /// Whose turn it takes
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Start only after this job is done, and no more after those named before (repeatable)
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    after: Vec<JobId>,

    /// A parameter of its preset (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

/// What a command ends with that did nothing.
const NOTHING_DONE: i32 = 1;

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let id = args.job;
    let row = queue.store.job(id)?.ok_or(stageload::Error::NoJob { id })?;
    let mut spec = row.spec;
    if !args.set.is_empty() {
        spec = with_settings(spec, args, &queue)?;
    }
    spec.lane = args.lane.clone().unwrap_or(spec.lane);
    spec.owner = args.owner.clone().unwrap_or(spec.owner);
    let priority = args.priority.unwrap_or(row.priority);
    let after = if args.after.is_empty() { row.after } else { args.after.clone() };
    if queue.store.edit(id, &spec, priority, &after)? {
        return Ok(0);
    }
    let state = queue.store.job(id)?.map_or("gone", |row| row.state.name());
    output::error(&format!("job {id} is {state}, and only what waits can be changed"));
    Ok(NOTHING_DONE)
}

/// The job as its preset makes it of the values it has and the new ones.
fn with_settings(spec: Spec, args: &Args, queue: &Queue) -> Result<Spec, Failure> {
    let Some(used) = &spec.preset else {
        let text = format!("job {} was made from no preset and has nothing to set", args.job);
        return Err(Failure::usage(text));
    };
    let refuse = |refusal: stageload::presets::Refusal| Failure::data(refusal.to_string());
    let presets = Presets::load(&queue.home).0;
    let preset = presets.get(&used.name).map_err(refuse)?;
    let kept = used.values.iter().map(|(name, value)| (name.clone(), value.clone()));
    let set: Vec<(String, String)> = kept.chain(args.set.iter().cloned()).collect();
    let order = Order {
        inputs: &used.inputs,
        set: &set,
        output: used.outputs.first().map(PathBuf::as_path),
        overwrite: true,
        may_lower: matches!(spec.lower, stageload::core::queue::Lower::Allowed(_)),
    };
    let made = preset.make_order(&order, &InPath).map_err(refuse)?;
    let preset = Some(made.preset_use(preset));
    Ok(Spec {
        command: made.command,
        preset,
        key: made.key,
        declared: made.declared,
        lower: made.lower,
        ..spec
    })
}
