//! A subcommand that could not do its work: one line for the person, one code for the script.
//! The codes are those of `sysexits.h`; 3, 4, 127 and 128+N belong to the guard.

use std::fmt;

use stageload::Error;

/// A process or a job that is not there, or must not be looked at.
const NO_PROCESS: i32 = 1;
/// Bad input data.
const DATA: i32 = 65;
/// An input that cannot be read.
const NO_INPUT: i32 = 66;
/// Something that the work needs is not on this system.
const UNAVAILABLE: i32 = 69;
/// A command line that makes no sense.
const USAGE: i32 = 2;
/// Somebody else does it already.
const TEMPORARY: i32 = 75;
/// Anything else.
const INTERNAL: i32 = 70;
/// An output that cannot be created.
const CANNOT_CREATE: i32 = 73;
/// An output that was created and cannot be written, as on a full disk.
const CANNOT_WRITE: i32 = 74;
/// A command that cannot be started.
const CANNOT_START: i32 = 127;

/// Why, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: i32,
}

impl Failure {
    /// A program that is not there.
    pub(crate) fn cannot_start(text: String) -> Self {
        Self { text, code: CANNOT_START }
    }

    /// Flags that do not go together.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: USAGE }
    }

    /// Something that the system lacks.
    pub(crate) fn unavailable(text: String) -> Self {
        Self { text, code: UNAVAILABLE }
    }

    /// A bug.
    pub(crate) fn internal(text: String) -> Self {
        Self { text, code: INTERNAL }
    }

    /// An input that makes no sense.
    pub(crate) fn data(text: String) -> Self {
        Self { text, code: DATA }
    }

    /// An input that cannot be read.
    pub(crate) fn no_input(text: String) -> Self {
        Self { text, code: NO_INPUT }
    }

    /// An output that cannot be written to its end.
    pub(crate) fn cannot_write(text: String) -> Self {
        Self { text, code: CANNOT_WRITE }
    }

    /// An output that cannot be created.
    pub(crate) fn cannot_create(text: String) -> Self {
        Self { text, code: CANNOT_CREATE }
    }

    pub(crate) const fn exit_code(&self) -> i32 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Unwritable { .. } | Error::SameFile { .. } => CANNOT_CREATE,
            Error::Unreadable { .. } => NO_INPUT,
            Error::BadTrace { .. } | Error::EmptyTrace { .. } => DATA,
            Error::NoProcess { .. } | Error::Unmeasurable { .. } | Error::NoJob { .. } => {
                NO_PROCESS
            }
            Error::AfterItself { .. } => USAGE,
            Error::EngineRuns { .. } | Error::QueueBusy { .. } => TEMPORARY,
            Error::QueueDiskFull { .. } => CANNOT_WRITE,
            Error::DamagedQueue { .. } | Error::NewerQueue { .. } | Error::UnreadableJob { .. } => {
                DATA
            }
            _ => INTERNAL,
        };
        Self { text: error.to_string(), code }
    }
}
