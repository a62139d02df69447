//! What is to run, under which rules, and how it came out.

use std::ffi::OsString;
use std::path::PathBuf;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stageload_core::{Breach, End, Grace, Policy, Reason, RoomPolicy};

use crate::notice::signal_name;
use crate::{Grown, ProcessId};

/// The environment variable that marks every process of a job with the tokens of its guards.
pub const JOB_ENV: &str = "STAGELOAD_JOB";

/// A command and the rules it runs under.
#[derive(Debug, Clone)]
pub struct Job {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What its environment has besides the guard's own.
    pub env: Vec<(OsString, OsString)>,
    /// When it may start.
    pub room: RoomPolicy,
    /// When it is stopped.
    pub policy: Policy,
    /// It does not start while a process's command line matches one of these.
    pub busy: Vec<Regex>,
    /// How long a job that is being stopped may take to end by itself.
    pub grace: Grace,
    /// What becomes of it when the guard itself is killed.
    pub on_guard_death: OnGuardDeath,
    /// The command that takes over when the guard is killed: it speaks the words of
    /// [`stand_by`](crate::stand_by) on its standard input. Without one nobody does.
    pub warden: Option<Vec<OsString>>,
    /// Only say what would be done: start at once, and stop nothing.
    pub dry_run: bool,
    /// Where the trace goes.
    pub trace: Option<PathBuf>,
    /// Where the reason goes if the job is stopped or finds no room.
    pub reason: Option<PathBuf>,
    /// Where it finds the file for its events; a folder of its own that is removed afterwards if None.
    pub events: Option<PathBuf>,
    /// What marks its processes; made up if None.
    pub token: Option<String>,
    /// Free-form facts for the start record of the trace.
    pub meta: Map<String, Value>,
}

/// What becomes of a job whose guard was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnGuardDeath {
    /// It is stopped within two seconds.
    #[default]
    Stop,
    /// It runs on, guarded by the warden with the same rules and the same baseline.
    Continue,
}

/// How a job came out.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ended by itself.
    Exited(i32),
    /// A signal from elsewhere ended it.
    Signaled(i32),
    /// The guard stopped it.
    Stopped(Box<Stop>),
    /// The guard was told to end, and stopped the job first.
    Interrupted(i32),
    /// There was no room for it in time.
    NoRoom(String),
    /// The system could not start it.
    CannotStart(String),
}

impl Outcome {
    /// What the guard's own process ends with: the command's code, 128+N after signal N, 3 for
    /// a stopped job, 4 for no room, 127 for a command that cannot be started.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) | Self::Interrupted(signal) => 128 + *signal,
            Self::Stopped(_) => 3,
            Self::NoRoom(_) => 4,
            Self::CannotStart(_) => 127,
        }
    }

    /// What the end of a trace says of it, but for the time and the code.
    pub(crate) fn end(&self) -> End {
        let said = |reason, rule: &str, share| End {
            reason: Some(reason),
            rule: Some(rule.to_owned()),
            share,
            ..End::default()
        };
        match self {
            Self::Stopped(stop) => {
                let reason = &stop.reason;
                said(reason.to_string(), reason.breach.rule(), reason.blame().share())
            }
            // A guard hears of every other signal itself.
            Self::Interrupted(libc::SIGKILL) => {
                said(signal_name(libc::SIGKILL), "guard-death", None)
            }
            Self::Interrupted(signal) => said(signal_name(*signal), "signal", None),
            _ => End::default(),
        }
    }
}

/// A job that was stopped: why, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stop {
    /// The rule, the numbers, the stage.
    #[serde(flatten)]
    pub reason: Reason,
    /// When, in seconds of the trace.
    pub t: f64,
    /// Every process that was sent a signal.
    pub signalled: Vec<Signalled>,
    /// Those that were still there after SIGKILL.
    pub survivors: Vec<ProcessId>,
    /// Who outside of the job grew most in the ten seconds or so before.
    pub grew: Vec<Grown>,
}

impl Stop {
    /// The numbers the decision was made on.
    pub const fn breach(&self) -> &Breach {
        &self.reason.breach
    }
}

/// One process that was sent signals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signalled {
    /// Which.
    #[serde(flatten)]
    pub id: ProcessId,
    /// Its command line, as far as it could be read.
    pub command: Option<String>,
    /// The names of the signals, in order.
    pub signals: Vec<String>,
    /// The system did not let the guard signal it, as after `sudo`.
    pub refused: bool,
}
