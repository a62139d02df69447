//! `stageload run`: waits in the queue in this terminal, and then runs here.

use std::ffi::OsString;
use std::path::PathBuf;

use stageload::core::queue::{JobId, JobState};
use stageload::queue::{AttemptFiles, HostPlace, Turn, supervise};

use super::flags::{QueueFlags, Way, Wish};
use super::what::PresetFlags;
use super::{Queue, absolute};
use crate::commands::guard::Log;
use crate::commands::stand_by;
use crate::failure::Failure;
use crate::flags::GuardFlags;
use crate::output;

/// What a job ends with that found no room.
const NO_ROOM: i32 = 4;
/// And with that somebody took from the queue.
const TAKEN: i32 = 130;

/// Wait in the queue behind the others of a lane, then run here like `guard`
///
/// Exit codes: the command's own, and those of `guard`: 128+N after signal N; 3 stopped by the guard; 4 no
/// room in time; 127 could not be started; 130 taken from the queue.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    queue: QueueFlags,

    #[command(flatten)]
    guard: GuardFlags,

    /// Keep no trace of one's own (the queue keeps one in any case)
    #[arg(long, conflicts_with = "trace")]
    no_trace: bool,

    #[command(flatten)]
    preset: PresetFlags,

    /// The command, after --; with --preset its inputs
    #[arg(required_unless_present = "preset", trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<i32, Failure> {
    if args.guard.is_dry_run() {
        return Err(Failure::usage("--dry-run needs no queue: use `stageload guard --dry-run`"));
    }
    let (trace, reason) = args.guard.files();
    let files = [(trace, "trace"), (reason, "reason")];
    let mut queue = Queue::open()?;
    let what = args.preset.make(args.command, &queue)?;
    let way = Way::InTerminal;
    let new = args.queue.job(Wish { guard: args.guard, what, way, has_timeout: true })?;
    let id = queue.store.add(&new)?;
    let host = HostPlace::take(&queue.home, id)?;
    queue.call_engine()?;
    let mut tell = |waits_for: &[String]| match waits_for {
        [] => output::log(&format!("queue: job {id} waits for its turn")),
        words => output::log(&format!("queue: job {id} waits: {}", words.join("; "))),
    };
    match host.wait_for_turn(&mut queue.store, id, &mut tell)? {
        Turn::Now { attempt, place: _place } => start(&queue, id, attempt, files),
        Turn::Never(state) => Ok(never(id, &state)),
        Turn::Signaled(signal) => Ok(128 + signal),
    }
}

fn never(id: JobId, state: &JobState) -> i32 {
    let why = state.why().map_or_else(String::new, |why| format!(": {why}"));
    output::log(&format!("queue: job {id} is {}{why}", state.name()));
    if *state == JobState::Stopped { TAKEN } else { NO_ROOM }
}

fn start(
    queue: &Queue,
    id: JobId,
    attempt: u32,
    files: [(Option<PathBuf>, &str); 2],
) -> Result<i32, Failure> {
    let own = AttemptFiles::of(&queue.home, id, attempt);
    for (wanted, name) in files {
        if let Some(path) = wanted {
            let place = if name == "trace" { own.trace() } else { own.reason() };
            link(&place, &absolute(&path), name)?;
        }
    }
    let outcome = supervise(&queue.home, id, attempt, stand_by::command(), &mut Log)?;
    Ok(outcome.map_or(130, |outcome| outcome.exit_code()))
}

/// The queue finds its files where it expects them, and they lie where they are wanted.
fn link(place: &std::path::Path, path: &std::path::Path, name: &str) -> Result<(), Failure> {
    let made = place
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::os::unix::fs::symlink(path, place));
    made.map_err(|error| {
        Failure::cannot_create(format!("cannot place the {name} {}: {error}", path.display()))
    })
}
