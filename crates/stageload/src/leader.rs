//! The job's first process: the guard's own child, or for a warden that took over, a stranger.

use std::io;
use std::process::{Child, ExitStatus};

use crate::sys::{Grip, ProcessId};

/// The job's first process.
#[derive(Debug)]
pub(crate) enum Leader {
    /// Started here; its number stays its own until it is reaped.
    Child {
        /// The process.
        child: Child,
        /// How it ended, once that was asked.
        status: Option<ExitStatus>,
    },
    /// Started by a guard that is dead.
    Stranger(Grip),
    /// It has ended before anybody here could take hold of it.
    Gone(ProcessId),
}

impl Leader {
    pub(crate) fn pid(&self) -> i32 {
        match self {
            Self::Child { child, .. } => child.id() as i32,
            Self::Stranger(grip) => grip.id().pid,
            Self::Gone(id) => id.pid,
        }
    }

    /// Whether it has ended. The answer gives a child's number away, so it is asked last.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Child { child, status } => match child.try_wait() {
                Ok(None) => false,
                Ok(ended) => {
                    *status = status.or(ended);
                    true
                }
                Err(_) => true,
            },
            Self::Stranger(grip) => is_gone(grip),
            Self::Gone(_) => true,
        }
    }

    /// Its process group, while that number cannot be another's.
    pub(crate) fn group(&self) -> Option<i32> {
        match self {
            Self::Child { status: None, child } => Some(child.id() as i32),
            Self::Child { .. } | Self::Gone(_) => None,
            Self::Stranger(grip) => (!is_gone(grip)).then_some(grip.id().pid),
        }
    }

    /// How it ended; waits for it. None where only its parent could tell.
    pub(crate) fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Child { child, .. } => child.wait().map(Some),
            Self::Stranger(_) | Self::Gone(_) => Ok(None),
        }
    }
}

fn is_gone(grip: &Grip) -> bool {
    grip.signal(0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}
