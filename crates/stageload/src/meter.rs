//! Who belongs to a job, and what all of them hold together.
//!
//! Members are found by process group and session, by ancestry (once seen, kept: a child whose
//! parent dies stays a member) and by the marker in the environment, so neither setsid nor a
//! double fork escapes. A member is a pid *and* its start time. What happens to members is the
//! business of `stopping.rs`.
//!
//! Cost: one list of pids a look, plus one `status` of each member. Strangers are remembered and
//! their identity is looked at again only now and then, in case their number went to a new
//! process. With 73 processes and a debug build, ten looks a second took 0.7 % of a core.

use std::collections::{BTreeMap, BTreeSet};

use stageload_core::{Bytes, Reading};

use crate::sys::{Machine, Process, ProcessId};

/// Every tenth pass takes no stranger for granted. A number is handed out again only after all
/// others were, so a second (at 100 ms a look) is no time to lose one in.
const RECHECK_EVERY: u32 = 10;

/// Meters one job.
#[derive(Debug)]
pub(crate) struct Meter {
    machine: Machine,
    token: String,
    leader: i32,
    members: BTreeMap<i32, ProcessId>,
    strangers: BTreeMap<i32, ProcessId>,
    /// The guard and everything above it.
    never: BTreeSet<i32>,
    passes: u32,
    shared: Shared,
    /// The system lists no processes at all, so that no members means nothing.
    is_blind: bool,
}

/// What the plain sum counts more than once (pages shared since a fork, shared memory), and for
/// which members that was measured.
#[derive(Debug, Default)]
struct Shared {
    excess: Bytes,
    members: Vec<i32>,
    pass: u32,
}

impl Meter {
    /// A meter for the job that `leader` leads and whose processes carry `token`.
    pub(crate) fn new(machine: Machine, leader: i32, token: String) -> Self {
        let never = ancestors(&machine, std::process::id() as i32);
        Self {
            machine,
            token,
            leader,
            members: BTreeMap::new(),
            strangers: BTreeMap::new(),
            never,
            passes: 0,
            shared: Shared::default(),
            is_blind: false,
        }
    }

    /// One look. Above `limit` the pages that several members share are counted exactly, because
    /// a job must not be stopped for memory it holds once.
    pub(crate) fn look(&mut self, t: f64, limit: Option<Bytes>) -> Reading {
        self.refresh();
        let gauges = self.machine.gauges();
        Reading {
            t,
            footprint: self.footprint(limit),
            swap_used: gauges.swap_used,
            swap_total: gauges.swap_total,
            level: gauges.level,
            ..Reading::default()
        }
    }

    /// The members that are alive.
    pub(crate) fn members(&self) -> impl Iterator<Item = ProcessId> {
        self.members.values().copied()
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Finds who has joined and who is gone.
    pub(crate) fn refresh(&mut self) {
        let pids = self.machine.pids();
        self.is_blind = pids.is_empty();
        let alive: BTreeSet<i32> = pids.iter().copied().collect();
        self.strangers.retain(|pid, _| alive.contains(pid));
        if self.passes.is_multiple_of(RECHECK_EVERY) {
            self.strangers.retain(|pid, id| is_same(&self.machine, *pid, *id));
        }
        self.passes = self.passes.wrapping_add(1);
        // No list, no news: whoever was there is taken to be there still.
        if !self.is_blind {
            self.members.retain(|pid, id| !is_over(&self.machine, *pid, *id));
        }
        self.admit(&pids);
    }

    /// Whether the last look found nobody. One that could not look does not count.
    pub(crate) fn found_nobody(&self) -> bool {
        !self.is_blind && self.members.is_empty()
    }

    fn admit(&mut self, pids: &[i32]) {
        let machine = &self.machine;
        let is_new =
            |pid: &&i32| !self.members.contains_key(pid) && !self.strangers.contains_key(pid);
        let mut unsure: Vec<Process> = pids
            .iter()
            .filter(is_new)
            .filter(|pid| !self.never.contains(pid))
            .filter_map(|pid| machine.process(*pid).ok().flatten())
            .filter(|process| !process.is_zombie)
            .collect();
        // A grandchild can be listed before its parent, so go on until nobody joins.
        loop {
            let (joining, rest): (Vec<_>, Vec<_>) =
                unsure.into_iter().partition(|process| self.belongs(process));
            unsure = rest;
            if joining.is_empty() {
                break;
            }
            self.members.extend(joining.iter().map(|process| (process.id.pid, process.id)));
        }
        for process in unsure {
            if self.machine.is_marked(process.id.pid, &self.token) {
                self.members.insert(process.id.pid, process.id);
            } else {
                self.strangers.insert(process.id.pid, process.id);
            }
        }
    }

    fn belongs(&self, process: &Process) -> bool {
        process.id.pid == self.leader
            || process.group == self.leader
            || process.session == self.leader
            || self.members.contains_key(&process.parent)
    }

    /// None if there are members and not one of them can be read.
    fn footprint(&mut self, limit: Option<Bytes>) -> Option<Bytes> {
        let machine = &self.machine;
        let held: Vec<Bytes> =
            self.members.keys().filter_map(|pid| machine.footprint(*pid)).collect();
        if self.is_blind || (held.is_empty() && !self.members.is_empty()) {
            return None;
        }
        let plain: Bytes = held.iter().copied().sum();
        if held.len() < 2 || limit.is_none_or(|limit| plain <= limit) {
            return Some(plain);
        }
        if self.is_shared_stale(plain, limit) {
            self.shared = self.measure_shared();
        }
        Some(plain.saturating_sub(self.shared.excess))
    }

    /// Members that write to shared pages get their own, so a measurement serves for a second; and
    /// no job is stopped on an old one.
    fn is_shared_stale(&self, plain: Bytes, limit: Option<Bytes>) -> bool {
        let estimate = plain.saturating_sub(self.shared.excess);
        limit.is_some_and(|limit| estimate > limit)
            || self.passes.wrapping_sub(self.shared.pass) >= RECHECK_EVERY
            || !self.members.keys().eq(&self.shared.members)
    }

    fn measure_shared(&self) -> Shared {
        let machine = &self.machine;
        let excess = |pid: &i32| {
            let (plain, exact) = (machine.footprint(*pid)?, machine.proportional(*pid)?);
            Some(plain.saturating_sub(exact))
        };
        Shared {
            excess: self.members.keys().filter_map(excess).sum(),
            members: self.members.keys().copied().collect(),
            pass: self.passes,
        }
    }
}

/// Whether this number still belongs to this process, and it is alive.
pub(crate) fn is_same(machine: &Machine, pid: i32, id: ProcessId) -> bool {
    machine.process(pid).ok().flatten().is_some_and(|now| now.id == id && !now.is_zombie)
}

/// Whether it is known that this process is alive no more. What cannot be read is not known: a
/// guard that has no file handle left must not take its job for ended.
fn is_over(machine: &Machine, pid: i32, id: ProcessId) -> bool {
    machine.process(pid).is_ok_and(|now| now.is_none_or(|now| now.id != id || now.is_zombie))
}

/// `pid` and every process above it, the first of all left out.
pub(crate) fn ancestors(machine: &Machine, pid: i32) -> BTreeSet<i32> {
    let parent = |pid: &i32| machine.process(*pid).ok().flatten().map(|process| process.parent);
    let mut chain = BTreeSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| *pid > 1) {
        if !chain.insert(pid) {
            break;
        }
        next = parent(&pid);
    }
    chain
}

// On a written `/proc`, so only where there is one.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A `/proc` that a test can write.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn start(&self, pid: i32, parent: i32, group: i32, start: u64) -> &Self {
            let folder = self.path().join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            let zeros = "0 ".repeat(15);
            let stat = format!("{pid} (x) S {parent} {group} {group} {zeros}{start} 0\n");
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("status"), "RssAnon:\t1024 kB\n").unwrap();
            fs::write(folder.join("environ"), "").unwrap();
            self
        }

        fn write(&self, pid: i32, file: &str, text: &str) -> &Self {
            fs::write(self.path().join(pid.to_string()).join(file), text).unwrap();
            self
        }

        fn end(&self, pid: i32) -> &Self {
            fs::remove_dir_all(self.path().join(pid.to_string())).unwrap();
            self
        }

        fn meter(&self) -> Meter {
            Meter::new(Machine::under(self.path()), 100, "token".into())
        }
    }

    fn pids(meter: &mut Meter) -> Vec<i32> {
        meter.refresh();
        meter.members().map(|id| id.pid).collect()
    }

    #[test]
    fn a_job_is_its_group_its_descendants_and_whoever_carries_its_mark() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(101, 100, 100, 2).start(50, 1, 50, 1);
        proc.start(103, 102, 103, 4).start(102, 101, 102, 3); // setsid, and its child
        proc.start(104, 1, 104, 5).write(104, "environ", "A=1\0STAGELOAD_JOB=token\0");
        proc.start(105, 1, 105, 6).write(105, "environ", "STAGELOAD_JOB=another\0");
        assert_eq!(pids(&mut proc.meter()), [100, 101, 102, 103, 104]);
    }

    #[test]
    fn a_member_that_cannot_be_read_is_not_taken_for_gone() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
        let mut meter = proc.meter();
        assert_eq!(pids(&mut meter), [100, 102]);
        fs::remove_file(proc.path().join("102/stat")).unwrap();
        fs::create_dir(proc.path().join("102/stat")).unwrap();
        assert_eq!(pids(&mut meter), [100, 102]);
        proc.end(102);
        assert_eq!(pids(&mut meter), [100]);
    }

    #[test]
    fn a_look_at_no_list_at_all_finds_nobody_gone() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1);
        let mut meter = proc.meter();
        assert_eq!(pids(&mut meter), [100]);
        proc.end(100);
        assert_eq!(pids(&mut meter), [100]);
        assert!(!meter.found_nobody());
        proc.start(7, 1, 7, 1);
        assert_eq!(pids(&mut meter), [] as [i32; 0]);
        assert!(meter.found_nobody());
    }

    #[test]
    fn an_orphan_stays_a_member() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
        let mut meter = proc.meter();
        assert_eq!(pids(&mut meter), [100, 102]);
        proc.end(100).start(102, 1, 102, 3);
        assert_eq!(pids(&mut meter), [102]);
    }

    #[test]
    fn a_number_that_went_to_a_stranger_is_no_member_any_more() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
        let mut meter = proc.meter();
        assert_eq!(pids(&mut meter), [100, 102]);
        proc.start(102, 1, 102, 999);
        assert_eq!(pids(&mut meter), [100]);
    }

    #[test]
    fn a_number_that_went_from_a_stranger_to_the_job_is_found_within_ten_looks() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(200, 1, 200, 3);
        let mut meter = proc.meter();
        assert_eq!(pids(&mut meter), [100]);
        proc.start(200, 100, 100, 9);
        assert!((0..RECHECK_EVERY).any(|_| pids(&mut meter) == [100, 200]));
    }

    #[test]
    fn a_zombie_holds_nothing_and_is_no_member() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
        let stat = fs::read_to_string(proc.path().join("101/stat")).unwrap();
        proc.write(101, "stat", &stat.replace(") S", ") Z"));
        assert_eq!(pids(&mut proc.meter()), [100]);
    }

    #[test]
    fn the_footprint_is_the_sum_over_all_members() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(101, 100, 100, 2).start(7, 1, 7, 1);
        assert_eq!(proc.meter().look(0.0, None).footprint, Some(Bytes::mib(2)));
    }

    #[test]
    fn members_that_cannot_be_read_are_unknown_and_not_0() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1);
        fs::remove_file(proc.path().join("100/status")).unwrap();
        assert_eq!(proc.meter().look(0.0, None).footprint, None);
    }

    #[test]
    fn a_machine_that_lists_no_processes_knows_no_footprint() {
        let proc = Proc::new();
        assert_eq!(proc.meter().look(0.0, None).footprint, None);
        proc.start(7, 1, 7, 1);
        assert_eq!(proc.meter().look(0.0, None).footprint, Some(Bytes::ZERO));
    }

    #[test]
    fn pages_shared_since_a_fork_do_not_stop_a_job() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
        for pid in [100, 101] {
            proc.write(pid, "smaps_rollup", "Pss_Anon: 600 kB\nPss_Shmem: 0 kB\nSwapPss: 0 kB\n");
        }
        let mut meter = proc.meter();
        let limit = Some(Bytes(1500 * 1024));
        assert_eq!(meter.look(0.0, limit).footprint, Some(Bytes(1200 * 1024)));
        assert_eq!(meter.look(0.1, limit).footprint, Some(Bytes(1200 * 1024)), "remembered");
        proc.start(102, 100, 100, 3);
        assert_eq!(meter.look(0.2, limit).footprint, Some(Bytes(2224 * 1024)), "measured anew");
    }

    #[test]
    fn the_guard_and_what_is_above_it_are_never_members() {
        let proc = Proc::new();
        let me = std::process::id() as i32;
        proc.start(100, 50, 100, 1).start(me, 77, 100, 2).start(77, 1, 100, 1);
        assert_eq!(pids(&mut proc.meter()), [100]);
    }
}
