//! What can go wrong before or after a job: what, where, and what to do now. What a job itself
//! does is never an error but an `Outcome`.

use std::io;
use std::path::PathBuf;

use stageload_core::BadLine;
use stageload_core::queue::JobId;

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
    /// Others have kept the queue to themselves for too long.
    #[error(
        "the queue {path} has been in use for 5 s on end; see whether a stageload process hangs, \
         and try again",
        path = path.display()
    )]
    QueueBusy {
        /// Where.
        path: PathBuf,
    },
    /// There is no space to write the queue.
    #[error("the disk is full and the queue {path} cannot be written; free some space and try again",
        path = path.display())]
    QueueDiskFull {
        /// Where.
        path: PathBuf,
    },
    /// A later version has written the queue.
    #[error(
        "the queue {path} is of version {found} and this stageload knows {known} at most; it is left \
         as it is. Update stageload, or set STAGELOAD_HOME to another folder",
        path = path.display()
    )]
    NewerQueue {
        /// Where.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The last that is known here.
        known: i64,
    },
    /// The queue is damaged, and others have it open.
    #[error(
        "the queue {path} is damaged ({why}); end every stageload process: the next to start moves \
         it aside and begins a new one",
        path = path.display()
    )]
    DamagedQueue {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The queue cannot be read or written for another reason.
    #[error("cannot use the queue {path}: {source}; see that its folder can be written",
        path = path.display())]
    Queue {
        /// Where.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Something in the queue is not what it should be.
    #[error("the queue {path} has something in it that cannot be read: {source}; was it written by \
        a newer stageload?", path = path.display())]
    UnreadableJob {
        /// Where.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// One engine runs the queue already.
    #[error("an engine runs this queue already{}; there is nothing to do",
        pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    EngineRuns {
        /// Its number, as it was written down.
        pid: Option<i32>,
    },
    /// No job has this number.
    #[error("there is no job {id}; `stageload queue` lists them")]
    NoJob {
        /// The number.
        id: JobId,
    },
    /// A job was to come after one that comes after it.
    #[error("job {id} would come after itself and never start; leave one of the two out")]
    AfterItself {
        /// The number.
        id: JobId,
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

    /// What a failure of the database means for whoever uses the queue.
    pub(crate) fn queue(path: &std::path::Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        match (source.sqlite_error_code(), &source) {
            (Some(Code::DatabaseBusy | Code::DatabaseLocked), _) => Self::QueueBusy { path },
            (Some(Code::DiskFull), _) => Self::QueueDiskFull { path },
            (Some(Code::DatabaseCorrupt | Code::NotADatabase), _) => {
                Self::DamagedQueue { path, why: source.to_string() }
            }
            (
                _,
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..),
            ) => Self::UnreadableJob { path, source },
            _ => Self::Queue { path, source },
        }
    }
}
