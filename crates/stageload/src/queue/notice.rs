//! What an engine has to say.

use std::fmt;
use std::path::PathBuf;

use stageload_core::queue::{JobId, JobState};

/// Something worth a line in a log, or a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineNotice {
    /// A job's supervisor was started.
    Started {
        /// Which job.
        job: JobId,
        /// Which attempt.
        attempt: u32,
    },
    /// A job stands where nothing more happens by itself.
    Settled {
        /// Which job.
        job: JobId,
        /// Where.
        state: JobState,
    },
    /// A job was too much, and is tried with less.
    Lowered {
        /// Which.
        job: JobId,
        /// With what, in words.
        words: String,
    },
    /// Nothing is started until somebody says so.
    Paused(String),
    /// A damaged queue was moved here.
    MovedAside(PathBuf),
    /// Something could not be done, and is tried again.
    Trouble(String),
}

impl fmt::Display for EngineNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { job, attempt } => write!(f, "job {job}: attempt {attempt} starts"),
            Self::Settled { job, state } => match state.why() {
                Some(why) => write!(f, "job {job}: {} ({why})", state.name()),
                None => write!(f, "job {job}: {}", state.name()),
            },
            Self::Lowered { job, words } => write!(f, "job {job}: tried again with {words}"),
            Self::Paused(why) => write!(f, "the queue is paused: {why}"),
            Self::MovedAside(path) => write!(
                f,
                "the queue was damaged; what could not be read is kept as {}",
                path.display()
            ),
            Self::Trouble(what) => f.write_str(what),
        }
    }
}
