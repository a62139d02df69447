//! `stageload stand-by`: the warden of a guard, started by the guard itself and by nobody else.

use stageload::stand_by;

use crate::commands::guard::Log;
use crate::failure::Failure;

/// Take over when the guard on the other end of standard input is killed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The command line that starts it.
pub(crate) fn command() -> Option<Vec<std::ffi::OsString>> {
    let own = std::env::current_exe().ok()?;
    Some(vec![own.into(), "stand-by".into()])
}

pub(crate) fn run() -> Result<i32, Failure> {
    let outcome = stand_by(std::io::stdin().lock(), &mut Log)?;
    Ok(outcome.map_or(0, |outcome| outcome.exit_code()))
}
