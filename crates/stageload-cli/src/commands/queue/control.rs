//! `stop`, `pause`, `resume`, `retry`, `move`, `clear`: what somebody wants of jobs that are there.

use std::fs;

use stageload::core::queue::{JobId, JobState};
use stageload::queue::{AttemptFiles, remove_attempts, tell_supervisor};
use stageload::store::{Clear, Spot};

use super::{Queue, job_id};
use crate::failure::Failure;
use crate::output;

/// Stop jobs: one that waits leaves the queue, one that runs is ended as the guard does it
#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// Their numbers
    #[arg(required = true, value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
}

/// Pause the queue, or a job where its next stage begins
///
/// Without a JOB nothing more is started. A job that runs stage by stage gives its models back and
/// stands still; one that cannot do that runs on to its end.
#[derive(Debug, clap::Args)]
pub(crate) struct Pause {
    /// The job to pause; the whole queue if absent
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
}

/// Let the queue go on, or a job that was paused
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The job that was paused; the whole queue if absent
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
}

/// Queue jobs again that are over or held
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// Their numbers
    #[arg(required = true, value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
}

/// Move a waiting job in line
#[derive(Debug, clap::Args)]
pub(crate) struct Move {
    /// Its number
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: JobId,

    #[command(flatten)]
    to: To,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct To {
    /// Before all others
    #[arg(long)]
    first: bool,

    /// After all others
    #[arg(long)]
    last: bool,

    /// Directly before this one
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    before: Option<JobId>,

    /// Directly after this one
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    after: Option<JobId>,
}

/// Forget jobs that are over, with their traces and their output
///
/// Without a JOB all that are over; those that are held stay.
#[derive(Debug, clap::Args)]
pub(crate) struct Clean {
    /// Their numbers
    #[arg(value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
}

/// What a command ends with that did nothing, because nothing was there to do it to.
const NOTHING_DONE: i32 = 1;

pub(crate) fn stop(args: &Stop) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    for_each(&args.jobs, |id| {
        match queue.store.stop(id)? {
            Some(JobState::Stopping { attempt }) => {
                tell_supervisor(&queue.store, id, attempt)?;
                output::log(&format!("queue: job {id} is being stopped"));
            }
            Some(_) => output::log(&format!("queue: job {id} left the queue")),
            None => return missed(&queue, id, "stopped"),
        }
        Ok(0)
    })
}

pub(crate) fn pause(args: &Pause) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let Some(id) = args.job else {
        queue.store.pause("by hand")?;
        output::log("queue: nothing more is started; `stageload resume` lets it go on");
        return Ok(0);
    };
    if !queue.store.pausing(id)? {
        return missed(&queue, id, "paused");
    }
    let attempt = queue.store.job(id)?.map_or(0, |row| row.attempts);
    let files = AttemptFiles::of(&queue.home, id, attempt);
    let made = fs::write(files.pause(), "");
    made.map_err(|error| Failure::cannot_create(format!("cannot ask job {id} to pause: {error}")))?;
    output::log(&format!("queue: job {id} pauses where its next stage begins"));
    Ok(0)
}

pub(crate) fn resume(args: &Resume) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let Some(id) = args.job else {
        queue.store.resume()?;
        queue.call_engine()?;
        return Ok(0);
    };
    let attempt = queue.store.job(id)?.map_or(0, |row| row.attempts);
    fs::remove_file(AttemptFiles::of(&queue.home, id, attempt).pause()).ok();
    if queue.store.resumed(id)? { Ok(0) } else { missed(&queue, id, "paused") }
}

pub(crate) fn retry(args: &Retry) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let code = for_each(&args.jobs, |id| {
        if queue.store.job(id)?.is_some_and(|row| row.spec.in_terminal) {
            output::error(&format!("job {id} ran in a terminal; `stageload run` it again there"));
            return Ok(NOTHING_DONE);
        }
        if queue.store.retry(id)? { Ok(0) } else { missed(&queue, id, "over") }
    })?;
    queue.call_engine()?;
    Ok(code)
}

pub(crate) fn move_to(args: &Move) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let to = match &args.to {
        To { before: Some(other), .. } => Spot::Before(*other),
        To { after: Some(other), .. } => Spot::After(*other),
        To { first: true, .. } => Spot::First,
        To { .. } => Spot::Last,
    };
    if queue.store.move_to(args.job, to)? { Ok(0) } else { missed(&queue, args.job, "waiting") }
}

pub(crate) fn clear(args: &Clean) -> Result<i32, Failure> {
    let mut queue = Queue::open()?;
    let which = if args.jobs.is_empty() { Clear::Finished } else { Clear::Jobs(&args.jobs) };
    let removed = queue.store.clear(which)?;
    for job in &removed {
        remove_attempts(&queue.home, job);
    }
    output::log(&format!("queue: {} jobs forgotten", removed.len()));
    let kept = args.jobs.iter().filter(|id| removed.iter().all(|job| job.id != **id));
    for_each(&kept.copied().collect::<Vec<_>>(), |id| {
        missed(&queue, id, "over, or another waits for it")
    })
}

/// The worst of all codes.
fn for_each(
    jobs: &[JobId],
    mut work: impl FnMut(JobId) -> Result<i32, Failure>,
) -> Result<i32, Failure> {
    jobs.iter().try_fold(0, |worst: i32, id| Ok(worst.max(work(*id)?)))
}

fn missed(queue: &Queue, id: JobId, wanted: &str) -> Result<i32, Failure> {
    let row = queue.store.job(id)?.ok_or(stageload::Error::NoJob { id })?;
    output::error(&format!("job {id} is {}, not {wanted}", row.state.name()));
    Ok(NOTHING_DONE)
}
