//! The platform contract: one file per system with the same names, chosen here and nowhere else.
//!
//! * `linux/`, `macos/` read processes and gauges; `unix.rs` holds what both share: signals, sessions,
//!   waiting, the clock; `terminal.rs` the terminal's foreground.
//! * `unsupported.rs` has the same names for every other system and knows nothing; it is compiled
//!   by the tests of every system.
//!
//! Nothing here decides anything: a value that cannot be read is None. A process that is not there
//! is told apart from one that cannot be read, because the first is over and the second is not.

use serde::{Deserialize, Serialize};
use stageload_core::{Bytes, Percent, Pressure};

#[cfg(any(test, target_os = "macos"))]
mod arguments;
#[cfg(any(test, target_os = "macos"))]
mod compressor;
#[cfg(any(test, target_os = "macos"))]
mod layouts;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(test, target_os = "macos"))]
mod stale;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod terminal;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod unix;
#[cfg(any(test, not(any(target_os = "linux", target_os = "macos"))))]
#[cfg_attr(test, expect(dead_code, reason = "compiled so that it cannot rot"))]
mod unsupported;

#[cfg(all(fuzzing, target_os = "linux"))]
pub(crate) use linux::read_anything;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Gpu, Grip, Machine, adopt_orphans, be_prompt, boot_id, lock_memory, on_pressure, punch_hole,
};
#[cfg(target_os = "macos")]
pub(crate) use macos::{
    Gpu, Grip, Machine, adopt_orphans, be_prompt, boot_id, lock_memory, on_pressure, punch_hole,
};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) use terminal::{Terminal, is_in_background};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) use unix::{
    Change, SignalPipe, become_program, exists, first_hole, free_space, lead_session, leave_open,
    moment, now, reap, set_blocking, set_nonblocking, signal_group, state_folder,
    survive_file_limits, suspend_self, wait_for_change,
};
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) use unsupported::{
    Change, Gpu, Grip, Machine, SignalPipe, Terminal, adopt_orphans, be_prompt, become_program,
    boot_id, exists, first_hole, free_space, is_in_background, lead_session, leave_open,
    lock_memory, moment, now, on_pressure, punch_hole, reap, set_blocking, set_nonblocking,
    signal_group, state_folder, survive_file_limits, suspend_self, wait_for_change,
};

/// A process, told apart from a later one with the same number by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The number.
    pub pid: i32,
    /// When it started, in the system's own unit; only ever compared.
    pub start: u64,
}

/// Where a process stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// It has ended and holds nothing; only its parent has not asked yet.
    pub(crate) is_zombie: bool,
    /// Numbers that are never used again, its own and its first parent's, which outlives the parent;
    /// macOS has them.
    pub(crate) unique: Option<Unique>,
}

/// Never-reused identities of a process and of the process that forked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unique {
    pub(crate) own: u64,
    pub(crate) parent: u64,
}

/// What the whole machine says of its memory. What each value means: `stageload_core::Reading`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Gauges {
    /// All of its memory; never changes.
    pub(crate) memory: Option<Bytes>,
    pub(crate) swap_used: Option<Bytes>,
    pub(crate) swap_total: Option<Bytes>,
    pub(crate) level: Option<Percent>,
    pub(crate) pressure: Option<Pressure>,
    pub(crate) compressed: Option<Bytes>,
    pub(crate) r: Option<f64>,
    pub(crate) to_swap: Option<Bytes>,
    pub(crate) demand: Option<Bytes>,
    pub(crate) claimable: Option<Bytes>,
    /// All shared memory there is, where it is in more than one process's footprint.
    pub(crate) shared: Option<Bytes>,
    /// Seconds since the oldest value was measured, where the system hands out old ones.
    pub(crate) age: Option<f64>,
}

/// What one process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// All of it, what it shares with others and its GPU memory included.
    pub(crate) footprint: Bytes,
    /// The part of it that is shared memory, which the job counts once.
    pub(crate) shared: Bytes,
    /// The most it held since the look before, where the system counts along; at least `footprint`.
    pub(crate) peak: Option<Bytes>,
}

/// Whether one `NAME=value` of an environment is the job marker and lists `token`. A guard inside
/// a guard appends its own token, so the value is a list.
pub(crate) fn marks_job(assignment: &[u8], token: &str) -> bool {
    assignment
        .strip_prefix(crate::job::JOB_ENV.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"="))
        .is_some_and(|list| list.split(|b| *b == b':').any(|one| one == token.as_bytes()))
}
