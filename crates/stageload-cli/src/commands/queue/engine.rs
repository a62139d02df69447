//! `stageload engine`: runs the queue. `stageload supervise`: runs one job of it, started by the engine.

use std::ffi::OsString;
use std::path::Path;

use stageload::core::Span;
use stageload::core::queue::JobId;
use stageload::queue::{EngineNotice, EngineSetup, run_engine, supervise};

use super::{job_id, own_program};
use crate::commands::guard::Log;
use crate::commands::stand_by;
use crate::failure::Failure;
use crate::output;

/// How long an engine that was called for a job stays when there is nothing more to do.
const STAYS: &str = "60s";

/// Run the queue; without an app, the first job calls one by itself
///
/// One engine runs for a queue. Its jobs do not end with it. Exit codes: 0; 75 another one runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End after there was nothing to do for this long
    #[arg(long, value_name = "TIME")]
    until_idle: Option<Span>,
}

/// The command line of an engine that ends by itself.
pub(crate) fn command(_home: &Path) -> Result<Vec<OsString>, Failure> {
    let words = ["engine", "--until-idle", STAYS].map(OsString::from);
    Ok(std::iter::once(own_program()?.into()).chain(words).collect())
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let setup = EngineSetup {
        home: stageload::queue::queue_home()?,
        supervisor: vec![own_program()?.into(), "supervise".into()],
        idle: args.until_idle.map(|span| span.0),
    };
    run_engine(&setup, &mut |notice: &EngineNotice| output::log(&format!("engine: {notice}")))?;
    Ok(0)
}

/// Run one attempt of a job that the engine has begun
#[derive(Debug, clap::Args)]
pub(crate) struct SuperviseArgs {
    #[arg(value_parser = job_id)]
    job: JobId,
    attempt: u32,
}

pub(crate) fn run_supervise(args: &SuperviseArgs) -> Result<i32, Failure> {
    let home = stageload::queue::queue_home()?;
    let outcome = supervise(&home, args.job, args.attempt, stand_by::command(), &mut Log)?;
    Ok(outcome.map_or(0, |outcome| outcome.exit_code()))
}
