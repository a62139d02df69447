//! `stageload add`: queues a command and returns at once.

use std::ffi::OsString;

use super::Queue;
use super::flags::{QueueFlags, Way, Wish};
use super::what::PresetFlags;
use crate::failure::Failure;
use crate::flags::GuardFlags;
use crate::output;

/// Queue a command or a preset, and return at once with its number
///
/// The number is printed on stdout. The command runs with no terminal; `stageload log` shows what it
/// prints.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    queue: QueueFlags,

    #[command(flatten)]
    guard: GuardFlags,

    /// Whether --start-timeout was given by hand.
    #[arg(skip)]
    pub(crate) has_timeout: bool,

    #[command(flatten)]
    preset: PresetFlags,

    /// The command, after --; with --preset its inputs
    #[arg(required_unless_present = "preset", trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<i32, Failure> {
    args.guard.refuse_files("add")?;
    let mut queue = Queue::open()?;
    let what = args.preset.make(args.command, &queue)?;
    let has_timeout = args.has_timeout;
    let new = args.queue.job(Wish { guard: args.guard, what, way: Way::Behind, has_timeout })?;
    let id = queue.store.add(&new)?;
    queue.call_engine()?;
    if let Some(why) = queue.store.pause_reason()? {
        output::log(&format!("queue: it is paused ({why}); `stageload resume` lets it go on"));
    }
    output::out(&format!("{id}\n"))?;
    Ok(0)
}
