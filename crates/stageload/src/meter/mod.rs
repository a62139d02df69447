//! What a job holds, and the machine with it, at one look after another.
//!
//! Who belongs to the job: `members.rs`. Pages that several of them hold together: `shared.rs`. The
//! largest processes of the whole machine: `largest.rs`.
//!
//! Cost: one list of pids a look, plus one `stat` and one `status` of each member.

mod largest;
mod members;
mod shared;
mod signals;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::path::Path;

use stageload_core::{Bytes, Member, Reading};

use crate::job::Signalled;
use crate::sys::{self, Gauges, Gpu, Grip, Held, Machine, ProcessId};
use members::Members;
use shared::Shared;
use signals::Signals;

pub(crate) use largest::Largest;
pub(crate) use members::ancestors;

/// So many of the largest members are told one by one.
const TOLD: usize = 8;

/// Meters one job.
#[derive(Debug)]
pub(crate) struct Meter {
    machine: Machine,
    gpu: Gpu,
    members: Members,
    shared: Shared,
    signals: Signals,
    /// Leaves the processes as they are: one that only looks on must not take peaks from a guard.
    is_onlooker: bool,
}

/// What the members hold, one by one.
type Holdings = Vec<(i32, Held)>;

impl Meter {
    /// A meter for the job that `leader` leads and whose processes carry `token`. `adopts` says that
    /// whoever becomes a child of this process is an orphan of the job.
    pub(crate) fn new(machine: Machine, leader: ProcessId, token: String, adopts: bool) -> Self {
        let members = Members::new(&machine, leader, token, adopts);
        Self::with(machine, members, false)
    }

    /// A meter for a process that was not started here, with all that came of it.
    pub(crate) fn of_stranger(machine: Machine, leader: ProcessId) -> Self {
        Self::with(machine, Members::of(leader), true)
    }

    fn with(machine: Machine, members: Members, is_onlooker: bool) -> Self {
        let gpu = Gpu::of(&machine);
        let shared = if is_onlooker { Shared::for_onlooker() } else { Shared::for_guard() };
        Self { machine, gpu, members, shared, signals: Signals::default(), is_onlooker }
    }

    /// One look. Near `limit` the pages that several members share are counted exactly, because a
    /// job must not be stopped for memory it holds once; an onlooker, who has time, always counts so.
    pub(crate) fn look(&mut self, t: f64, limit: Option<Bytes>) -> Reading {
        self.refresh();
        let gauges = self.machine.gauges();
        let mut held = self.held();
        let footprint = self.footprint(&held, &gauges, limit);
        held.sort_unstable_by_key(|(pid, held)| (std::cmp::Reverse(held.footprint), *pid));
        Reading {
            t,
            footprint,
            peak: footprint.and_then(|footprint| peak(footprint, &held)),
            members: held.iter().take(TOLD).map(member).collect(),
            ..reading(&gauges)
        }
    }

    /// Finds who has joined and who is gone.
    pub(crate) fn refresh(&mut self) {
        self.members.refresh(&self.machine);
        self.signals.make_room(self.members.len());
    }

    /// The members that are alive.
    pub(crate) fn members(&self) -> impl Iterator<Item = ProcessId> {
        self.members.grips().map(Grip::id)
    }

    pub(crate) fn is_member(&self, pid: i32) -> bool {
        self.members.contains(pid)
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether the last look found nobody. One that could not look does not count.
    pub(crate) fn found_nobody(&self) -> bool {
        self.members.are_known_to_be_none()
    }

    /// This process is none of the job's, wherever it stands.
    pub(crate) fn exclude(&mut self, pid: i32) {
        self.members.exclude(pid);
    }

    /// Takes in a member that somebody else has found.
    pub(crate) fn admit_known(&mut self, id: ProcessId) {
        self.members.admit_known(&self.machine, id);
    }

    /// Sends `signal` to each member that was not sent it before.
    pub(crate) fn signal_new(&mut self, signal: i32) {
        for grip in self.members.grips() {
            if !self.signals.has(grip.id(), signal) {
                self.signals.note(grip.id(), signal, &grip.signal(signal));
            }
        }
    }

    /// Sends `signal` to every member, and to the leader's group for those that were forked a moment
    /// ago. Some get it twice: not for a signal that a program acts on.
    pub(crate) fn signal_all(&mut self, signal: i32, group: Option<i32>) {
        for grip in self.members.grips() {
            self.signals.note(grip.id(), signal, &grip.signal(signal));
        }
        if let Some(group) = group {
            // Everybody in it may be gone.
            sys::signal_group(group, signal).ok();
        }
    }

    /// Who was sent what.
    pub(crate) fn signalled(&self) -> Vec<Signalled> {
        self.signals.list(|id| self.members.command_of(id))
    }

    fn held(&mut self) -> Holdings {
        let (machine, gpu, is_onlooker) = (&self.machine, &mut self.gpu, self.is_onlooker);
        gpu.begin_look();
        let held = |grip: &mut Grip| {
            let pid = grip.id().pid;
            let mut held = if is_onlooker { grip.seen(machine) } else { grip.held(machine) }?;
            let on_gpu = gpu.held(pid);
            held.footprint += on_gpu;
            held.peak = held.peak.map(|peak| peak + on_gpu);
            Some((pid, held))
        };
        self.members.grips_mut().filter_map(held).collect()
    }

    /// None if there are members and not one of them can be read.
    fn footprint(
        &mut self,
        held: &Holdings,
        gauges: &Gauges,
        limit: Option<Bytes>,
    ) -> Option<Bytes> {
        if self.members.are_unknown() || (held.is_empty() && self.members.len() > 0) {
            return None;
        }
        if let Some(known) = self.members.own_cgroup().and_then(|cgroup| self.held_by(cgroup)) {
            return Some(known);
        }
        let own: Bytes =
            held.iter().map(|(_, held)| held.footprint.saturating_sub(held.shared)).sum();
        let shared: Bytes = held.iter().map(|(_, held)| held.shared).sum();
        // All of them together hold no more of it than there is.
        let plain = own + gauges.shared.map_or(shared, |all| shared.min(all));
        let limit = if self.is_onlooker { Some(Bytes::ZERO) } else { limit };
        let Some(limit) = limit.filter(|_| held.len() > 1) else { return Some(plain) };
        let machine = &self.machine;
        let pids = held.iter().map(|(pid, _)| *pid).collect();
        Some(self.shared.correct(plain, limit, pids, |pids| excess(machine, pids)))
    }

    fn held_by(&self, cgroup: &Path) -> Option<Bytes> {
        self.machine.held_by(cgroup)
    }
}

/// What the plain sum over these processes counts more than once.
fn excess(machine: &Machine, pids: &[i32]) -> Bytes {
    let is_lent = |pid: i32| {
        let parent = machine.process(pid).ok().flatten().map(|process| process.parent);
        parent.is_some_and(|parent| pids.contains(&parent) && machine.has_memory_of(pid, parent))
    };
    let of = |pid: &i32| {
        let held = machine.footprint(*pid)?;
        if is_lent(*pid) {
            Some(held)
        } else {
            Some(held.saturating_sub(machine.proportional(*pid)?))
        }
    };
    pids.iter().filter_map(of).sum()
}

/// The machine's part of a reading.
pub(crate) fn reading(gauges: &Gauges) -> Reading {
    Reading {
        swap_used: gauges.swap_used,
        swap_total: gauges.swap_total,
        level: gauges.level,
        pressure: gauges.pressure,
        compressed: gauges.compressed,
        r: gauges.r,
        to_swap: gauges.to_swap,
        demand: gauges.demand,
        claimable: gauges.claimable,
        age: gauges.age,
        ..Reading::default()
    }
}

fn member((pid, held): &(i32, Held)) -> Member {
    Member { pid: *pid, footprint: held.footprint }
}

/// Members reach their peaks at different moments, so only the highest rise of one is known to have
/// been there. None where that is the footprint itself.
fn peak(footprint: Bytes, held: &Holdings) -> Option<Bytes> {
    let rise = |(_, held): &(i32, Held)| held.peak.map(|peak| peak.saturating_sub(held.footprint));
    let highest = held.iter().filter_map(rise).max()?;
    (highest > Bytes::ZERO).then_some(footprint + highest)
}
