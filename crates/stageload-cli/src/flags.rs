//! The guard's flags, shared by every subcommand that runs a job under it. Names, defaults and
//! meanings are those of the seed's `stageload guard`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use regex::Regex;
use stageload::core::{Bytes, Grace, Percent, Policy, RoomPolicy, Span};
use stageload::{Job, OnGuardDeath};

use crate::failure::Failure;

/// When a running job is stopped.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Guard")]
pub(crate) struct PolicyFlags {
    /// Swap the job may add over what was used at its start
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    swap_budget: Bytes,

    /// Absolute swap ceiling, also checked before a start
    #[arg(long, value_name = "SIZE")]
    swap_limit: Option<Bytes>,

    /// Stop the job when less than this stays available
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = floor)]
    #[arg(allow_negative_numbers = true)]
    kill_free: Percent,

    /// Stop the job when all its processes together hold more than this
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    limit: Option<Bytes>,

    /// Longest time between two looks; they come every 50 ms and less while memory moves
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    poll: Span,
}

impl PolicyFlags {
    /// The rules that these flags make.
    pub(crate) const fn policy(self) -> Policy {
        Policy {
            limit: self.limit,
            swap_budget: self.swap_budget,
            swap_limit: self.swap_limit,
            kill_free: self.kill_free,
            poll: self.poll.0,
        }
    }
}

/// When to start the job and when to stop it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Guard")]
pub(crate) struct GuardFlags {
    /// Memory available before starting
    #[arg(long, value_name = "PERCENT", default_value = "40", allow_negative_numbers = true)]
    wait_free: Percent,

    #[command(flatten)]
    policy: PolicyFlags,

    /// Do not start while a process matches (repeatable)
    #[arg(long, value_name = "REGEX")]
    busy: Vec<Regex>,

    /// With --busy: start only after no busy process was seen for this long
    #[arg(long, value_name = "TIME", default_value = "1m")]
    quiet_for: Span,

    /// How long to wait for room
    #[arg(long, value_name = "TIME", default_value = "30m")]
    start_timeout: Span,

    /// Expected peak of the job, which must fit before it starts
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    need: Option<Bytes>,

    /// How long a job that is being stopped may take to end by itself; auto: 5 s and half a second
    /// for each GB it holds, at most 30 s
    #[arg(long, value_name = "TIME|auto", default_value = "5s")]
    grace: Grace,

    /// What becomes of the job if this guard is killed
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_guard_death: GuardDeath,

    /// Start at once and stop nothing; only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Write the memory trace here
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// If the job is stopped or finds no room, write why here (JSON)
    #[arg(long, value_name = "FILE")]
    reason: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum GuardDeath {
    /// It is stopped
    Stop,
    /// It runs on, still guarded
    Continue,
}

impl From<GuardDeath> for OnGuardDeath {
    fn from(what: GuardDeath) -> Self {
        match what {
            GuardDeath::Stop => Self::Stop,
            GuardDeath::Continue => Self::Continue,
        }
    }
}

impl GuardFlags {
    /// Whether any of them stands on the command line.
    pub(crate) fn are_given(given: &ArgMatches) -> bool {
        let own = Self::augment_args(clap::Command::new("guard"));
        own.get_arguments().any(|flag| is_given(given, flag.get_id().as_str()))
    }

    /// What its peak is declared to be.
    pub(crate) const fn need(&self) -> Option<Bytes> {
        self.need
    }

    /// Whether nothing shall be stopped.
    pub(crate) const fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Where the trace and the reason shall lie.
    pub(crate) fn files(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        (self.trace.clone(), self.reason.clone())
    }

    /// For a command that keeps these files itself.
    pub(crate) fn refuse_files(&self, command: &str) -> Result<(), Failure> {
        let given = [(self.trace.is_some(), "--trace"), (self.reason.is_some(), "--reason")];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, flag)) => Err(Failure::usage(format!(
                "{flag} is not for `{command}`: the queue keeps it, and `stageload show JOB` says where"
            ))),
            None if self.dry_run => {
                Err(Failure::usage("--dry-run needs no queue: use `stageload guard --dry-run`"))
            }
            None => Ok(()),
        }
    }

    /// The job that these flags make of a command.
    pub(crate) fn job(self, command: Vec<OsString>) -> Job {
        let policy = self.policy.policy();
        Job {
            command,
            env: Vec::new(),
            room: RoomPolicy {
                wait_free: self.wait_free,
                swap_budget: policy.swap_budget,
                swap_limit: policy.swap_limit,
                need: self.need,
                quiet_for: self.quiet_for.0,
                start_timeout: self.start_timeout.0,
            },
            policy,
            busy: self.busy,
            grace: self.grace,
            on_guard_death: self.on_guard_death.into(),
            warden: crate::commands::stand_by::command(),
            dry_run: self.dry_run,
            trace: self.trace,
            reason: self.reason,
            events: None,
            token: None,
            meta: serde_json::Map::new(),
        }
    }
}

/// Whether a flag stands on the command line.
pub(crate) fn is_given(given: &ArgMatches, flag: &str) -> bool {
    let is_known = given.try_contains_id(flag).is_ok();
    is_known && given.value_source(flag) == Some(ValueSource::CommandLine)
}

fn positive(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.0 > Duration::ZERO { Ok(span) } else { Err("must be more than zero".to_owned()) }
}

fn some_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if size > Bytes::ZERO { Ok(size) } else { Err("no job fits into nothing".to_owned()) }
}

/// 0 would switch the floor off, which nobody should do by a slip of the hand.
fn floor(text: &str) -> Result<Percent, String> {
    let percent: Percent = text.parse().map_err(|error| format!("{error}"))?;
    if percent.get() > 0 { Ok(percent) } else { Err("must be at least 1%".to_owned()) }
}
