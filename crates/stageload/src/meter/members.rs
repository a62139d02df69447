//! Who belongs to a job.
//!
//! Members are found by process group and session, by ancestry (once seen, kept: a child whose
//! parent dies stays a member), by the number of the process that forked them where the system
//! keeps it, by being adopted by the guard, by the job's own cgroup, and by the marker in the
//! environment, so neither setsid nor a double fork escapes. A member is a pid *and* its start time.
//!
//! Strangers are remembered and their identity is looked at again only now and then, in case their
//! number went to a new process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::sys::{self, Grip, Machine, Process, ProcessId};

/// Every tenth pass takes no stranger for granted. A number is handed out again only after all
/// others were, so a second (at 100 ms a look) is no time to lose one in.
const RECHECK_EVERY: u32 = 10;

/// The members of one job.
#[derive(Debug)]
pub(super) struct Members {
    /// None where nothing carries a mark: what is only looked at was not started here.
    token: Option<String>,
    leader: ProcessId,
    adopts: bool,
    alive: BTreeMap<i32, Grip>,
    /// Never re-used numbers of all there ever were: a parent may be gone when its child is found.
    uniques: BTreeSet<u64>,
    /// Command lines, by the number; kept when the process ends, for the report.
    commands: BTreeMap<i32, (ProcessId, String)>,
    strangers: BTreeMap<i32, ProcessId>,
    /// The guard, everything above it, and whoever helps it.
    never: BTreeSet<i32>,
    cgroup: Cgroup,
    passes: u32,
    /// The system lists no processes at all, so that no members means nothing.
    is_blind: bool,
}

/// The job's own cgroup.
#[derive(Debug, Default)]
struct Cgroup {
    folder: Option<PathBuf>,
    /// Nobody of the job is outside of it.
    has_all: bool,
}

impl Members {
    pub(super) fn new(machine: &Machine, leader: ProcessId, token: String, adopts: bool) -> Self {
        let never = ancestors(machine, own_pid());
        Self { token: Some(token), adopts, never, ..Self::of(leader) }
    }

    /// Whoever `leader` leads and whatever came of it, this process included.
    pub(super) fn of(leader: ProcessId) -> Self {
        Self {
            token: None,
            leader,
            adopts: false,
            alive: BTreeMap::new(),
            uniques: BTreeSet::new(),
            commands: BTreeMap::new(),
            strangers: BTreeMap::new(),
            never: BTreeSet::new(),
            cgroup: Cgroup::default(),
            passes: 0,
            is_blind: false,
        }
    }

    pub(super) fn refresh(&mut self, machine: &Machine) {
        let pids = machine.pids();
        self.is_blind = pids.is_empty();
        let is_recheck = self.passes.is_multiple_of(RECHECK_EVERY);
        self.passes = self.passes.wrapping_add(1);
        self.forget_strangers(machine, &pids, is_recheck);
        // No list, no news: whoever was there is taken to be there still.
        if !self.is_blind {
            let (leader, adopts) = (self.leader.pid, self.adopts);
            self.alive.retain(|pid, grip| {
                let is_over = is_over(machine, *pid, grip.id());
                if is_over && adopts && *pid != leader {
                    sys::reap(*pid);
                }
                !is_over
            });
        }
        self.admit(machine, &pids);
        if is_recheck {
            self.find_cgroup(machine);
            self.read_commands(machine);
        }
        self.admit_cgroup(machine);
    }

    pub(super) fn grips(&self) -> impl Iterator<Item = &Grip> {
        self.alive.values()
    }

    pub(super) fn grips_mut(&mut self) -> impl Iterator<Item = &mut Grip> {
        self.alive.values_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.alive.len()
    }

    pub(super) fn contains(&self, pid: i32) -> bool {
        self.alive.contains_key(&pid)
    }

    pub(super) const fn are_unknown(&self) -> bool {
        self.is_blind
    }

    pub(super) fn are_known_to_be_none(&self) -> bool {
        !self.is_blind && self.alive.is_empty()
    }

    /// The cgroup that holds the whole job and nobody else.
    pub(super) fn own_cgroup(&self) -> Option<&Path> {
        self.cgroup.folder.as_deref().filter(|_| self.cgroup.has_all)
    }

    pub(super) fn command_of(&self, id: ProcessId) -> Option<String> {
        let (of, command) = self.commands.get(&id.pid)?;
        (*of == id).then(|| command.clone())
    }

    pub(super) fn exclude(&mut self, pid: i32) {
        self.never.insert(pid);
        self.alive.remove(&pid);
    }

    pub(super) fn admit_known(&mut self, machine: &Machine, id: ProcessId) {
        if let Some(process) = machine.process(id.pid).ok().flatten().filter(|now| now.id == id) {
            self.join(machine, &process);
        }
    }

    fn forget_strangers(&mut self, machine: &Machine, pids: &[i32], is_recheck: bool) {
        let there: BTreeSet<i32> = pids.iter().copied().collect();
        self.strangers.retain(|pid, _| there.contains(pid));
        if is_recheck {
            self.strangers.retain(|pid, id| is_same(machine, *pid, *id));
        }
    }

    fn admit(&mut self, machine: &Machine, pids: &[i32]) {
        let mut unsure: Vec<Process> = pids
            .iter()
            .filter(|pid| !self.alive.contains_key(pid) && !self.strangers.contains_key(pid))
            .filter(|pid| !self.never.contains(pid))
            .filter_map(|pid| machine.process(*pid).ok().flatten())
            .collect();
        let is_number_ours = self.is_number_ours(machine);
        unsure.retain(|process| !process.is_zombie || self.lay_to_rest(process));
        // A grandchild can be listed before its parent, so go on until nobody joins.
        loop {
            let (joining, rest): (Vec<_>, Vec<_>) =
                unsure.into_iter().partition(|process| self.belongs(process, is_number_ours));
            unsure = rest;
            if joining.is_empty() {
                break;
            }
            for process in joining {
                self.join(machine, &process);
            }
        }
        for process in unsure {
            if self.is_marked(machine, process.id.pid) {
                self.join(machine, &process);
            } else {
                self.strangers.insert(process.id.pid, process.id);
            }
        }
    }

    fn join(&mut self, machine: &Machine, process: &Process) {
        let Some(grip) = Grip::take(machine, process.id) else { return };
        self.uniques.extend(process.unique.map(|unique| unique.own));
        self.alive.insert(process.id.pid, grip);
        self.read_command(machine, process.id);
    }

    fn belongs(&self, process: &Process, is_number_ours: bool) -> bool {
        (is_number_ours && self.is_of_leader(process))
            || self.alive.contains_key(&process.parent)
            || (self.adopts && process.parent == own_pid())
            || process.unique.is_some_and(|unique| self.uniques.contains(&unique.parent))
    }

    fn is_of_leader(&self, process: &Process) -> bool {
        [process.id.pid, process.group, process.session].contains(&self.leader.pid)
    }

    /// Whether the leader's number, and so a group or session of that number, is still the job's: it
    /// goes to nobody else as long as the leader was not waited for, or a member is in its group.
    fn is_number_ours(&self, machine: &Machine) -> bool {
        let now = |pid| machine.process(pid).ok().flatten();
        if self.alive.contains_key(&self.leader.pid) {
            return true;
        }
        match now(self.leader.pid) {
            // A start of 0 is one that could not be read.
            Some(holder) => holder.id == self.leader || self.leader.start == 0,
            None => {
                self.alive.keys().filter_map(|pid| now(*pid)).any(|one| self.is_of_leader(&one))
            }
        }
    }

    fn is_marked(&self, machine: &Machine, pid: i32) -> bool {
        self.token.as_ref().is_some_and(|token| machine.is_marked(pid, token))
    }

    /// An adopted orphan that ended before anybody saw it; false, so that it goes from the list.
    fn lay_to_rest(&self, process: &Process) -> bool {
        if self.adopts && process.parent == own_pid() && process.id.pid != self.leader.pid {
            sys::reap(process.id.pid);
        }
        false
    }

    /// A cgroup is the job's own if everybody in it was found to be a member by other means.
    fn find_cgroup(&mut self, machine: &Machine) {
        if self.cgroup.folder.is_none()
            && let Some(folder) = machine.own_cgroup(self.leader.pid)
        {
            let inside = machine.pids_in(&folder);
            let are_members = inside.iter().all(|pid| self.alive.contains_key(pid));
            self.cgroup.folder = Some(folder).filter(|_| !inside.is_empty() && are_members);
        }
    }

    fn admit_cgroup(&mut self, machine: &Machine) {
        let Some(folder) = &self.cgroup.folder else { return };
        let inside: BTreeSet<i32> = machine.pids_in(folder).into_iter().collect();
        let is_new = |pid: &&i32| !self.alive.contains_key(pid) && !self.never.contains(pid);
        let new =
            inside.iter().filter(is_new).filter_map(|pid| machine.process(*pid).ok().flatten());
        for process in new.collect::<Vec<_>>() {
            self.join(machine, &process);
        }
        self.cgroup.has_all = self.alive.keys().all(|pid| inside.contains(pid));
    }

    /// Read while it can be: a process that has ended has no command line.
    fn read_commands(&mut self, machine: &Machine) {
        let ids: Vec<ProcessId> = self.grips().map(Grip::id).collect();
        for id in ids {
            self.read_command(machine, id);
        }
    }

    fn read_command(&mut self, machine: &Machine, id: ProcessId) {
        if let Some(command) = machine.command_line(id.pid) {
            self.commands.insert(id.pid, (id, command));
        }
    }
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

/// Whether this number still belongs to this process, and it is alive.
fn is_same(machine: &Machine, pid: i32, id: ProcessId) -> bool {
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
