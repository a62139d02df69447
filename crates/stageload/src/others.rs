//! Who else grew: remembered while a job runs, so that a warning can name whom it means.
//!
//! Listing every process costs more than a look, so it is done now and then, and once more when
//! somebody asks.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;
use stageload_core::Bytes;

use crate::sys::{Machine, ProcessId};

/// Between two listings.
const EVERY: Duration = Duration::from_secs(5);
/// Growth is told over at least the 10 s in which blame is found, as far as anything is known.
const KEPT: usize = 3;
/// Less than this is no news on a machine that runs heavy jobs.
const LEAST: Bytes = Bytes::mib(64);
/// How many are named.
const NAMED: usize = 3;

/// A process outside of the job that has grown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// Its number.
    pub pid: i32,
    /// Its command line, as far as it could be read.
    pub command: String,
    /// By how much, over about the last ten seconds.
    pub by: Bytes,
}

#[derive(Debug, Default)]
struct Listing {
    at: Duration,
    /// By the number.
    held: Vec<(ProcessId, Bytes)>,
}

/// What processes outside of the job held lately.
#[derive(Debug, Default)]
pub(crate) struct Others {
    listings: VecDeque<Listing>,
}

impl Others {
    /// Lists them, if it is time again.
    pub(crate) fn remember(
        &mut self,
        machine: &Machine,
        is_member: impl Fn(i32) -> bool,
        now: Duration,
    ) {
        if self.listings.back().is_some_and(|last| now.saturating_sub(last.at) < EVERY) {
            return;
        }
        let is_full = self.listings.len() == KEPT;
        // Room that is used again does not make a guard grow.
        let oldest = if is_full { self.listings.pop_front() } else { None }.unwrap_or_default();
        let held = list(machine, is_member, oldest.held);
        self.listings.push_back(Listing { at: now, held });
    }

    /// Those that grew most since the oldest listing, most first.
    pub(crate) fn grown_most(
        &self,
        machine: &Machine,
        is_member: impl Fn(i32) -> bool,
    ) -> Vec<Grown> {
        let Some(oldest) = self.listings.front() else { return Vec::new() };
        let growth = |(id, held): (ProcessId, Bytes)| {
            let by = held.saturating_sub(oldest.held_by(id));
            (by >= LEAST).then_some((by, id.pid))
        };
        let now = list(machine, is_member, Vec::new());
        let mut grown: Vec<_> = now.into_iter().filter_map(growth).collect();
        grown.sort_unstable_by(|a, b| b.cmp(a));
        grown.truncate(NAMED);
        let named = |(by, pid)| {
            let command = machine.command_line(pid).unwrap_or_else(|| "unknown".to_owned());
            Grown { pid, command, by }
        };
        grown.into_iter().map(named).collect()
    }
}

impl Listing {
    /// One that was not there held nothing.
    fn held_by(&self, id: ProcessId) -> Bytes {
        let at = self.held.binary_search_by_key(&id.pid, |(id, _)| id.pid);
        let (_, held) = at.map(|at| self.held[at]).ok().filter(|(then, _)| *then == id).unzip();
        held.unwrap_or_default()
    }
}

/// Everybody but the members, by the number, in the room of an older list.
fn list(
    machine: &Machine,
    is_member: impl Fn(i32) -> bool,
    mut room: Vec<(ProcessId, Bytes)>,
) -> Vec<(ProcessId, Bytes)> {
    let others = machine.pids().into_iter().filter(|pid| !is_member(*pid));
    let held = |pid| {
        let footprint = machine.footprint(pid)?;
        Some((machine.process(pid).ok().flatten()?.id, footprint))
    };
    room.clear();
    room.extend(others.filter_map(held));
    room.sort_unstable_by_key(|(id, _)| id.pid);
    room
}

// On a written `/proc`, so only where there is one.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn write(proc: &tempfile::TempDir, pid: i32, start: u64, mib: u64) {
        let folder = proc.path().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(15);
        fs::write(folder.join("stat"), format!("{pid} (x) S 1 1 1 {zeros}{start} 0\n")).unwrap();
        fs::write(folder.join("status"), format!("RssAnon:\t{} kB\n", mib * 1024)).unwrap();
        fs::write(folder.join("cmdline"), format!("program-{pid}\0--flag\0")).unwrap();
    }

    #[test]
    fn those_that_grew_most_are_named_and_no_member_is() {
        let proc = tempfile::tempdir().unwrap();
        let machine = Machine::under(proc.path());
        let mut others = Others::default();
        let is_member = |pid| pid == 100;
        for pid in [7, 8, 9, 100] {
            write(&proc, pid, 1, 500);
        }
        others.remember(&machine, is_member, seconds(0));
        write(&proc, 7, 1, 600);
        write(&proc, 8, 1, 510); // too little
        write(&proc, 9, 2, 300); // another process under the same number
        write(&proc, 10, 3, 200); // new
        write(&proc, 100, 1, 9000);
        let grown = others.grown_most(&machine, is_member);
        let found: Vec<_> = grown.iter().map(|one| (one.pid, one.by)).collect();
        assert_eq!(found, [(9, Bytes::mib(300)), (10, Bytes::mib(200)), (7, Bytes::mib(100))]);
        assert_eq!(grown[0].command, "program-9 --flag");
    }

    #[test]
    fn growth_is_told_over_the_last_ten_seconds_and_not_since_ever() {
        let proc = tempfile::tempdir().unwrap();
        let machine = Machine::under(proc.path());
        let mut others = Others::default();
        for second in 0..30 {
            write(&proc, 7, 1, 100 * second);
            others.remember(&machine, |_| false, seconds(second));
        }
        // The oldest listing is that of second 15.
        assert_eq!(others.grown_most(&machine, |_| false)[0].by, Bytes::mib(1400));
    }
}
