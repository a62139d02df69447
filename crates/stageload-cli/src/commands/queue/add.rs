//! `stageload add`: queues a command and returns at once.

use std::ffi::OsString;

use super::Queue;
use super::flags::{QueueFlags, Way};
use crate::failure::Failure;
use crate::flags::GuardFlags;
use crate::output;

/// Queue a command, and return at once with its number
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

    /// The command, after --
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<i32, Failure> {
    args.guard.refuse_files("add")?;
    let new = args.queue.job(args.guard, args.command, Way::Behind, args.has_timeout)?;
    let mut queue = Queue::open()?;
    let id = queue.store.add(&new)?;
    queue.call_engine()?;
    if let Some(why) = queue.store.pause_reason()? {
        output::log(&format!("queue: it is paused ({why}); `stageload resume` lets it go on"));
    }
    output::out(&format!("{id}\n"))?;
    Ok(0)
}
