//! Stops a job: SIGTERM, SIGCONT, a grace, SIGKILL, and then it waits until everyone is gone.
//!
//! Only members are signalled, and each one's identity is checked right before; the group as a
//! whole only while the guard has not reaped its leader, so that its number cannot be another's.
//! Whether to stop is decided elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use stageload_core::Bytes;

use crate::job::Signalled;
use crate::meter::{Meter, is_same};
use crate::sys::{self, ProcessId};

/// A job that has been told to end and still grows by this much is ended at once: at 1.7 GB/s a
/// grace of 5 s would cost 8.5 GB.
const STILL_GROWS: Bytes = Bytes::mib(64);
/// How long even SIGKILL may take: returning 10 GB took up to 1.6 s, a process in uninterruptible
/// sleep takes as long as its disk does.
const DEATH: Duration = Duration::from_secs(10);

/// What the stopping needs to know in each turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) now: Duration,
    pub(crate) footprint: Option<Bytes>,
    /// The guard got another signal.
    pub(crate) is_hurried: bool,
    /// The leader has ended and no member was found.
    pub(crate) is_over: bool,
}

/// Whether the stopping goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Going,
    Gone,
    /// Some did not go.
    Stuck,
}

/// One stopping in progress; the supervisor turns it between its looks.
#[derive(Debug)]
pub(crate) struct Stopping {
    leader: i32,
    grace_ends: Duration,
    at_start: Option<Bytes>,
    killing_since: Option<Duration>,
    signalled: BTreeMap<ProcessId, Signalled>,
}

impl Stopping {
    /// Sends SIGTERM, and SIGCONT so that a stopped process gets to see it.
    pub(crate) fn begin(meter: &Meter, leader: i32, turn: Turn, grace: Duration) -> Self {
        let mut stopping = Self {
            leader,
            grace_ends: turn.now + grace,
            at_start: turn.footprint,
            killing_since: None,
            signalled: BTreeMap::new(),
        };
        stopping.signal(meter, libc::SIGTERM, "SIGTERM");
        stopping.signal(meter, libc::SIGCONT, "SIGCONT");
        stopping
    }

    /// Takes the next step. The meter has just been refreshed.
    pub(crate) fn turn(&mut self, meter: &Meter, turn: Turn) -> Progress {
        if turn.is_over {
            return Progress::Gone;
        }
        let out_of_grace = turn.now >= self.grace_ends || turn.is_hurried || self.grows(turn);
        if self.killing_since.is_none() && out_of_grace {
            self.killing_since = Some(turn.now);
        }
        let Some(since) = self.killing_since else { return Progress::Going };
        // Again in each turn: a fork can have been missed by the pass before.
        self.signal(meter, libc::SIGKILL, "SIGKILL");
        if turn.now.saturating_sub(since) < DEATH { Progress::Going } else { Progress::Stuck }
    }

    /// Who was sent what.
    pub(crate) fn signalled(self) -> Vec<Signalled> {
        self.signalled.into_values().collect()
    }

    fn grows(&self, turn: Turn) -> bool {
        let Some((now, then)) = turn.footprint.zip(self.at_start) else { return false };
        now > then + Bytes(STILL_GROWS.0.max(then.0 / 10))
    }

    fn signal(&mut self, meter: &Meter, signal: i32, name: &'static str) {
        let members: Vec<ProcessId> = meter.members().collect();
        for id in &members {
            self.note(meter, *id, name);
        }
        // The group first: it reaches those that were forked since the last pass. Failing means
        // it is empty.
        sys::signal_group(self.leader, signal).ok();
        let machine = meter.machine();
        let outside = |id: &ProcessId| {
            let process = machine.process(id.pid).ok().flatten();
            process.is_some_and(|process| process.group != self.leader)
        };
        for id in members.into_iter().filter(outside) {
            if is_same(machine, id.pid, id) {
                // It may have ended this instant, or changed its user; the next pass tells.
                sys::signal_one(id.pid, signal).ok();
            }
        }
    }

    fn note(&mut self, meter: &Meter, id: ProcessId, name: &'static str) {
        let entry = self.signalled.entry(id).or_insert_with(|| Signalled {
            id,
            command: meter.machine().command_line(id.pid),
            signals: Vec::new(),
        });
        if entry.signals.last() != Some(&name) {
            entry.signals.push(name);
        }
    }
}
