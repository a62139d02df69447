//! `stageload guard`: any command, started when there is room and stopped before swap runs away.

use std::ffi::OsString;

use serde_json::json;
use stageload::{Notice, Observer, Outcome, run as run_job};

use crate::failure::Failure;
use crate::flags::GuardFlags;
use crate::output;

/// Run one command when there is room and stop it before swap runs away
///
/// Exit codes: the command's own; 128+N if signal N ended it; 3 stopped by the guard; 4 never found
/// room; 127 could not be started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// When done, print the outcome as one line of JSON on stdout
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    guard: GuardFlags,

    /// The command, after --
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<i32, Failure> {
    if let Some(flag) = misplaced(&args.command, std::env::args_os()) {
        output::log(&format!(
            "guard: warning: {flag} stands behind the command and is the command's own; \
             flags of the guard come before it, and `--` between"
        ));
    }
    let job = args.guard.job(args.command);
    let outcome = run_job(&job, &mut Log)?;
    if args.json {
        // What cannot be told does not change how the command came out.
        if let Err(failure) = output::out(&format!("{}\n", outcome_json(&outcome))) {
            output::error(&failure.to_string());
        }
    }
    Ok(outcome.exit_code())
}

/// A flag of the guard's among the words of a command that nothing sets apart.
fn misplaced(
    command: &[OsString],
    mut all: impl Iterator<Item = OsString>,
) -> Option<&'static str> {
    const FLAGS: [&str; 5] = ["--limit", "--trace", "--need", "--swap-budget", "--wait-free"];
    if all.any(|word| word == "--") {
        return None;
    }
    FLAGS.into_iter().find(|flag| command.iter().any(|word| word == *flag))
}

fn outcome_json(outcome: &Outcome) -> serde_json::Value {
    let exit = outcome.exit_code();
    match outcome {
        Outcome::Exited(_) => json!({"outcome": "exited", "exit": exit}),
        Outcome::Signaled(n) => json!({"outcome": "signaled", "exit": exit, "signal": n}),
        Outcome::Interrupted(n) => json!({"outcome": "interrupted", "exit": exit, "signal": n}),
        Outcome::Stopped(stop) => json!({
            "outcome": "stopped", "exit": exit, "why": stop.reason.to_string(), "stop": stop,
        }),
        Outcome::NoRoom(why) => json!({"outcome": "no-room", "exit": exit, "why": why}),
        Outcome::CannotStart(why) => json!({"outcome": "cannot-start", "exit": exit, "why": why}),
    }
}

/// Every notice becomes a log line.
pub(crate) struct Log;

impl Observer for Log {
    fn notice(&mut self, notice: &Notice) {
        output::log(&format!("guard: {notice}"));
    }
}
