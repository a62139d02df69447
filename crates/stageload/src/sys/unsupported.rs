//! Every other system: the same names, and nothing is known.
#![expect(clippy::unnecessary_wraps, reason = "the same signatures as where it can fail")]
#![expect(clippy::unused_self, reason = "the same calls as on Linux, which has a root path")]

use std::io::{self, PipeReader};
use std::process::Command;
use std::time::Duration;

use stageload_core::{Bytes, Moment};

use super::{Gauges, Process};

/// A machine that tells nothing.
#[derive(Debug, Clone)]
pub(crate) struct Machine;

impl Machine {
    pub(crate) fn here() -> Self {
        Self
    }

    pub(crate) fn gauges(&self) -> Gauges {
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

    pub(crate) fn command_line(&self, _pid: i32) -> Option<String> {
        None
    }

    pub(crate) fn is_marked(&self, _pid: i32, _token: &str) -> bool {
        false
    }
}

pub(crate) fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

pub(crate) fn moment() -> Moment {
    Moment::awake(now())
}

pub(crate) fn lead_session(_command: &mut Command) {}

pub(crate) fn become_program(_command: &mut Command) -> io::Error {
    unsupported()
}

pub(crate) fn signal_one(_pid: i32, _signal: i32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn exists(_pid: i32) -> bool {
    false
}

pub(crate) fn signal_group(_group: i32, _signal: i32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn wait_for_exit(_pid: i32) {}

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
