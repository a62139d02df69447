//! Every other system: the same names, and nothing is known.
#![expect(clippy::unnecessary_wraps, reason = "the same signatures as where it can fail")]
#![expect(clippy::unused_self, reason = "the same calls as on Linux, which has a root path")]

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stageload_core::{Bytes, Moment};

use super::{Gauges, Held, Process, ProcessId};

/// A machine that tells nothing.
#[derive(Debug, Clone)]
pub(crate) struct Machine;

impl Machine {
    pub(crate) fn here() -> Self {
        Self
    }

    pub(crate) fn gauges(&mut self) -> Gauges {
        Gauges::default()
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        Vec::new()
    }

    pub(crate) fn process(&self, _pid: i32) -> io::Result<Option<Process>> {
        Ok(None)
    }

    pub(crate) fn footprint(&self, _pid: i32) -> Option<Bytes> {
        None
    }

    pub(crate) fn proportional(&self, _pid: i32) -> Option<Bytes> {
        None
    }

    pub(crate) fn has_memory_of(&self, _pid: i32, _other: i32) -> bool {
        false
    }

    pub(crate) fn command_line(&self, _pid: i32) -> Option<String> {
        None
    }

    pub(crate) fn is_marked(&self, _pid: i32, _token: &str) -> bool {
        false
    }

    pub(crate) fn own_cgroup(&self, _pid: i32) -> Option<PathBuf> {
        None
    }

    pub(crate) fn pids_in(&self, _cgroup: &Path) -> Vec<i32> {
        Vec::new()
    }

    pub(crate) fn held_by(&self, _cgroup: &Path) -> Option<Bytes> {
        None
    }
}

/// There are no processes to hold, so there is no hold either.
#[derive(Debug)]
pub(crate) struct Grip(Infallible);

impl Grip {
    pub(crate) fn take(_machine: &Machine, _id: ProcessId) -> Option<Self> {
        None
    }

    pub(crate) fn id(&self) -> ProcessId {
        match self.0 {}
    }

    pub(crate) fn held(&mut self, _machine: &Machine) -> Option<Held> {
        match self.0 {}
    }

    pub(crate) fn seen(&mut self, _machine: &Machine) -> Option<Held> {
        match self.0 {}
    }

    pub(crate) fn signal(&self, _signal: i32) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn wait(&self) {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct Gpu;

impl Gpu {
    pub(crate) fn of(_machine: &Machine) -> Self {
        Self
    }

    pub(crate) fn begin_look(&mut self) {}

    pub(crate) fn held(&mut self, _pid: i32) -> Bytes {
        Bytes::ZERO
    }
}

/// No terminal is ever handed over.
#[derive(Debug)]
pub(crate) struct Terminal(Infallible);

impl Terminal {
    pub(crate) fn to_hand_over() -> Option<Self> {
        None
    }

    pub(crate) fn lead_group(&self, _command: &mut Command) {
        match self.0 {}
    }

    pub(crate) fn suspend(&self, _group: Option<i32>) {
        match self.0 {}
    }
}

pub(crate) fn is_in_background() -> bool {
    false
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Ended,
    Stopped,
}

pub(crate) fn wait_for_change(_pid: i32) -> Change {
    Change::Ended
}

pub(crate) fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

pub(crate) fn moment() -> Moment {
    Moment::awake(now())
}

pub(crate) fn state_folder() -> io::Result<PathBuf> {
    Err(unsupported())
}

pub(crate) fn set_blocking<T>(_file: &T) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn free_space(_folder: &Path) -> Option<Bytes> {
    None
}

pub(crate) fn set_nonblocking<T>(_pipe: &T) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn lead_session(_command: &mut Command) {}

pub(crate) fn become_program(_command: &mut Command) -> io::Error {
    unsupported()
}

pub(crate) fn exists(_pid: i32) -> bool {
    false
}

pub(crate) fn signal_group(_group: i32, _signal: i32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn reap(_pid: i32) {}

pub(crate) fn suspend_self() {}

pub(crate) fn survive_file_limits() {}

pub(crate) fn adopt_orphans() -> bool {
    false
}

pub(crate) fn lock_memory() {}

pub(crate) fn leave_open<T>(_file: &T) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn first_hole(_file: &File) -> Option<(u64, u64)> {
    None
}

pub(crate) fn punch_hole(_file: &File, _from: u64, _length: u64) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn boot_id() -> Option<String> {
    None
}

pub(crate) fn be_prompt() {}

pub(crate) fn on_pressure(_tell: impl Fn() + Send + 'static) -> io::Result<()> {
    Err(unsupported())
}

/// No signal ever arrives.
#[derive(Debug)]
pub(crate) struct SignalPipe;

impl SignalPipe {
    pub(crate) fn open(_signals: &[i32]) -> io::Result<(Self, &'static PipeReader)> {
        Err(unsupported())
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "stageload guards jobs on macOS and Linux only")
}
