//! `stageload show` and `stageload log`: one job, and what it printed.

use std::fmt::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use stageload::core::queue::JobId;
use stageload::queue::{AttemptFiles, view_of};
use stageload::read_log;

use super::{Queue, job_id};
use crate::failure::Failure;
use crate::output;

/// Between two looks at a log that grows.
const TURN: Duration = Duration::from_millis(200);

/// Show all that is known of a job
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Its number
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: JobId,

    /// Print JSON: one object
    #[arg(long)]
    json: bool,
}

pub(crate) fn show(args: &Show) -> Result<i32, Failure> {
    let queue = Queue::open()?;
    let view = view_of(&queue.home, &queue.store, args.job)?;
    let json = serde_json::to_value(&view).unwrap_or_default();
    if args.json {
        output::out(&(serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"))?;
        return Ok(0);
    }
    let mut text = String::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        let shown = match value {
            serde_json::Value::Null => continue,
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(list) if list.is_empty() => continue,
            other => other.to_string(),
        };
        let shown: String = stageload::core::printable(&shown).collect();
        let _ = writeln!(text, "{:<15} {shown}", name.replace('_', " "));
    }
    output::out(&text)?;
    Ok(0)
}

/// Show what a job has printed
#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    /// Its number
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: JobId,

    /// The attempt; the last one if absent
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,

    /// Go on with what it prints until it is over
    #[arg(short, long)]
    follow: bool,
}

pub(crate) fn log(args: &Log) -> Result<i32, Failure> {
    let queue = Queue::open()?;
    let id = args.job;
    let row = queue.store.job(id)?.ok_or(stageload::Error::NoJob { id })?;
    let attempt = args.attempt.unwrap_or(row.attempts);
    let path = AttemptFiles::of(&queue.home, id, attempt).output();
    if row.spec.in_terminal {
        return Err(Failure::no_input(format!("job {id} prints in its own terminal")));
    }
    if attempt == 0 {
        return Err(Failure::no_input(format!("job {id} has not been started yet")));
    }
    let mut shown = 0;
    loop {
        let is_active = queue.store.job(id)?.is_some_and(|row| row.state.is_active());
        shown += print(&path, shown)?;
        if !args.follow || !is_active {
            return Ok(0);
        }
        sleep(TURN);
    }
}

/// Prints what comes after `from` bytes; how much that was.
fn print(path: &Path, from: usize) -> Result<usize, Failure> {
    let failed = |error| Failure::no_input(format!("cannot read {}: {error}", path.display()));
    let log = read_log(path).map_err(failed)?;
    let mut text = log.head;
    if !log.tail.is_empty() {
        text.extend(format!("\n[{} left out here]\n", log.left_out).into_bytes());
        text.extend(log.tail);
    }
    let new = text.get(from..).unwrap_or_default();
    // Bytes are passed on as they are: the job's own colours and its own language.
    output::bytes(new)?;
    Ok(new.len())
}
