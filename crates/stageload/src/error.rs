//! What can go wrong before or after a job: what, where, and what to do now. What a job itself
//! does is never an error but an `Outcome`.

use std::io;
use std::path::PathBuf;

use stageload_core::BadLine;

/// Anything this crate can fail at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An output was to be written before or after the job and cannot be.
    #[error("cannot write the {what} {path}: {source}; choose another place", path = path.display())]
    Unwritable {
        /// Which output.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Two outputs that would overwrite each other.
    #[error("--trace and --reason are the same file, {path}; give them two", path = path.display())]
    SameFile {
        /// Which.
        path: PathBuf,
    },
    /// A trace cannot be opened.
    #[error("cannot read the trace {path}: {source}", path = path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no trace.
    #[error("{path}: {source}; is it a trace at all?", path = path.display())]
    BadTrace {
        /// Where.
        path: PathBuf,
        /// Which line, and why.
        source: BadLine,
    },
    /// A file has no record of a trace in it.
    #[error("{path}: no record of a trace is in it; is it a trace at all?", path = path.display())]
    EmptyTrace {
        /// Where.
        path: PathBuf,
    },
    /// No process has this number, or it has ended and only its parent has not asked yet.
    #[error("there is no process {pid}; it may have ended already")]
    NoProcess {
        /// The number.
        pid: i32,
    },
    /// A process is there and cannot be looked at.
    #[error("cannot look at process {pid}: {source}")]
    Unmeasurable {
        /// The number.
        pid: i32,
        /// Why.
        source: io::Error,
    },
    /// The system refused something a supervisor needs.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn unwritable(
        what: &'static str,
        path: &std::path::Path,
        source: io::Error,
    ) -> Self {
        Self::Unwritable { what, path: path.to_owned(), source }
    }
}
