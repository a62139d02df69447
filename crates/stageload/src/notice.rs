//! What a front end gets to see while a job runs. Nothing here prints: a `Notice` has the words,
//! the front end has the place to put them.

use std::fmt;

use stageload_core::{Bytes, Event, Percent, Reading, Span, Want};

use crate::job::OnGuardDeath;

/// Receives what happens, as it happens, on the guard's own thread: it must not block.
pub trait Observer {
    /// Something worth a line in a log.
    fn notice(&mut self, notice: &Notice);
    /// A look was taken.
    fn sample(&mut self, _reading: &Reading) {}
    /// The job said something; `t` is in seconds of the trace.
    fn event(&mut self, _event: &Event) {}
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn notice(&mut self, _notice: &Notice) {}
}

/// Something worth a line in a log, in the seed's words.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// The job waits for room.
    Waiting(Vec<Want>),
    /// In a dry run: the job would wait for this.
    WouldWait(Vec<Want>),
    /// There was none in time.
    NoRoom {
        /// How long it waited.
        waited: Span,
        /// For what.
        wants: Vec<Want>,
    },
    /// The job starts.
    Starting {
        /// Swap in use now: the baseline.
        swap_used: Option<Bytes>,
        /// Where the swap rules stop it.
        stop_above: Option<Bytes>,
        /// Its own limit.
        limit: Option<Bytes>,
        /// The least that must stay available.
        kill_free: Percent,
    },
    /// The system could not start it.
    CannotStart(String),
    /// In a dry run: the job would be stopped now.
    WouldStop(String),
    /// The guard of a running job was killed, and this process takes over.
    TookOver {
        /// The job's leader.
        pid: i32,
        /// What becomes of the job.
        what: OnGuardDeath,
    },
    /// The job is gone and about this much of its memory is not back.
    Stranded(Bytes),
    /// The job is being stopped.
    Stopping {
        /// Its leader.
        pid: i32,
        /// Why.
        why: String,
    },
    /// The guard was told to end before the job started.
    EndedBeforeStart {
        /// By which signal.
        signal: i32,
    },
    /// The job ended but some of its processes did not.
    LeftRunning(Vec<i32>),
    /// Even SIGKILL did not end these.
    Survivors(Vec<i32>),
    /// The job goes on, but something else does not.
    Warning(String),
    /// The job is over.
    Exit(i32),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(wants) => write!(f, "waiting ({})", listed(wants)),
            Self::WouldWait(wants) => write!(f, "dry run: would wait ({})", listed(wants)),
            Self::NoRoom { waited, wants } => {
                write!(f, "no room after {waited} ({})", listed(wants))
            }
            Self::Starting { swap_used, stop_above, limit, kill_free } => {
                write!(f, "start, swap {}", known(*swap_used))?;
                write!(f, ", stop above {} swap", known(*stop_above))?;
                if let Some(limit) = limit {
                    write!(f, ", above {limit} footprint")?;
                }
                write!(f, " or under {kill_free} available")
            }
            Self::CannotStart(why) => write!(f, "cannot start {why}"),
            Self::WouldStop(why) => write!(f, "dry run: would stop the command ({why})"),
            Self::TookOver { pid, what: OnGuardDeath::Stop } => {
                write!(f, "the guard of pid {pid} was killed, so its job is stopped")
            }
            Self::TookOver { pid, what: OnGuardDeath::Continue } => {
                write!(f, "the guard of pid {pid} was killed, this one goes on for it")
            }
            Self::Stranded(bytes) => write!(
                f,
                "the command is gone and about {bytes} of its memory is not back; where nobody else \
                 has taken it and it stays so, only a restart of the machine frees it"
            ),
            Self::Stopping { pid, why } => write!(f, "stopping pid {pid} and its group ({why})"),
            Self::EndedBeforeStart { signal } => {
                write!(f, "got {} before starting the command", signal_name(*signal))
            }
            Self::LeftRunning(pids) => {
                write!(f, "the command ended, these of its processes run on unguarded: {pids:?}")
            }
            Self::Survivors(pids) => write!(f, "still there after SIGKILL: {pids:?}"),
            Self::Warning(what) => write!(f, "warning: {what}"),
            Self::Exit(code) => write!(f, "exit {code}"),
        }
    }
}

/// Reasons to wait, in one line.
pub(crate) fn listed(wants: &[Want]) -> String {
    wants.iter().map(Want::to_string).collect::<Vec<_>>().join(", ")
}

fn known(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string())
}

/// `SIGINT` for 2.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGCONT => "SIGCONT",
        libc::SIGSTOP => "SIGSTOP",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
