//! macOS: libproc, sysctl, Mach and kqueue, all without root for processes of the same user.
//!
//! The footprint is the number Activity Monitor shows: Metal memory and compressed and swapped-out
//! pages included. What needs no Mac to test is beside this folder: `arguments.rs`, `compressor.rs`,
//! `layouts.rs`, `stale.rs`. Nothing here has run on a Mac yet.
//! Not here: GPU time and memory of one process, which macOS does not tell.

mod gauges;
mod grip;
mod libproc;
mod pressure;
mod queue;
mod symbol;
mod sysctl;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stageload_core::Bytes;

pub(crate) use grip::Grip;
pub(crate) use pressure::on_pressure;

use super::arguments::split_arguments;
use super::compressor::Copied;
use super::stale::Copies;
use super::{Gauges, Process, ProcessId, Unique, marks_job};

/// `SZOMB` of `sys/proc.h`.
const ZOMBIE: u32 = 5;

/// The machine as it shows itself.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    copies: Copies<Copied>,
}

impl Machine {
    pub(crate) fn here() -> Self {
        Self { copies: Copies::none_yet() }
    }

    pub(crate) fn gauges(&mut self) -> Gauges {
        let copy = self.copies.take(gauges::copied(), super::now());
        let age = copy.map(|(_, age)| age).filter(|age| !age.is_zero());
        let gauges = gauges::read(copy.map(|(copied, _)| copied));
        Gauges { age: age.as_ref().map(Duration::as_secs_f64), ..gauges }
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn pids(&self) -> Vec<i32> {
        libproc::pids().unwrap_or_default()
    }

    /// None if there is no such process; an error if that could not be found out.
    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn process(&self, pid: i32) -> io::Result<Option<Process>> {
        let Some(info) = libproc::bsd_info(pid)? else { return Ok(None) };
        let unique = libproc::unique_info(pid);
        Ok(Some(Process {
            id: ProcessId { pid, start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec },
            parent: info.pbi_ppid as i32,
            group: info.pbi_pgid as i32,
            session: libproc::session_of(pid),
            is_zombie: info.pbi_status == ZOMBIE,
            unique: unique.map(|unique| Unique { own: unique.own, parent: unique.parent }),
        }))
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn footprint(&self, pid: i32) -> Option<Bytes> {
        libproc::usage(pid).map(|usage| Bytes(usage.footprint))
    }

    /// The ledger behind the footprint has no cheap proportional form.
    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn proportional(&self, _pid: i32) -> Option<Bytes> {
        None
    }

    /// A child shares its parent's memory only until it runs its program, and is listed only then.
    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn has_memory_of(&self, _pid: i32, _other: i32) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn command_line(&self, pid: i32) -> Option<String> {
        let raw = sysctl::arguments(pid)?;
        let (words, _) = split_arguments(&raw)?;
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        Some(words.join(" "))
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux, which has a root path")]
    pub(crate) fn is_marked(&self, pid: i32, token: &str) -> bool {
        let Some(raw) = sysctl::arguments(pid) else { return false };
        split_arguments(&raw)
            .is_some_and(|(_, environment)| environment.iter().any(|one| marks_job(one, token)))
    }

    /// There are none.
    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn own_cgroup(&self, _pid: i32) -> Option<PathBuf> {
        None
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn pids_in(&self, _cgroup: &Path) -> Vec<i32> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn held_by(&self, _cgroup: &Path) -> Option<Bytes> {
        None
    }
}

/// What processes hold through the GPU is in their footprint already.
#[derive(Debug)]
pub(crate) struct Gpu;

impl Gpu {
    pub(crate) fn of(_machine: &Machine) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn begin_look(&mut self) {}

    #[expect(clippy::unused_self, reason = "the same call as on Linux")]
    pub(crate) fn held(&mut self, _pid: i32) -> Bytes {
        Bytes::ZERO
    }
}

/// Orphans go to launchd here, always; the number of their first parent is kept (`Unique`).
pub(crate) fn adopt_orphans() -> bool {
    false
}

/// `mlockall` is not implemented here (XNU `kern_mman.c`).
pub(crate) fn lock_memory() {}

/// Puts the calling thread first in line. On a busy machine the scheduler lets lower classes wait,
/// and a guard that waits is none.
#[expect(unsafe_code, reason = "std has no scheduling classes")]
pub(crate) fn be_prompt() {
    let class = libc::qos_class_t::QOS_CLASS_USER_INTERACTIVE;
    // SAFETY: the call takes two numbers and touches no memory; if it fails, nothing has changed.
    unsafe { libc::pthread_set_qos_class_self_np(class, 0) };
}

/// Gives a part of a file back to the disk; it reads as zeros from then on.
#[expect(unsafe_code, reason = "std makes no holes")]
pub(crate) fn punch_hole(file: &File, from: u64, length: u64) -> io::Result<()> {
    let hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: from as i64,
        fp_length: length as i64,
    };
    // SAFETY: F_PUNCHHOLE reads one fpunchhole_t.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PUNCHHOLE, &raw const hole) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What this start of the machine is called; another after each reboot.
pub(crate) fn boot_id() -> Option<String> {
    sysctl::text(c"kern.bootsessionuuid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_finds_itself() {
        let machine = Machine::here();
        let me = std::process::id() as i32;
        assert!(machine.pids().contains(&me));
        let process = machine.process(me).unwrap().unwrap();
        assert_eq!(process.id.pid, me);
        assert!(process.unique.is_some());
        assert!(machine.footprint(me).unwrap() > Bytes::ZERO);
        assert!(machine.command_line(me).is_some());
    }

    #[test]
    fn the_machine_tells_all_of_its_gauges() {
        let gauges = Machine::here().gauges();
        assert!(gauges.memory.unwrap() >= Bytes::gib(1));
        assert!(gauges.swap_used.unwrap() <= gauges.swap_total.unwrap());
        assert!(gauges.level.is_some() && gauges.pressure.is_some());
        assert!((0.0..=1.0).contains(&gauges.r.unwrap()), "{gauges:?}");
        assert!(gauges.to_swap.unwrap() <= gauges.memory.unwrap());
        assert!(gauges.demand.unwrap() > Bytes::ZERO && gauges.claimable.is_some());
        assert!(gauges.compressed.is_some());
    }

    #[test]
    fn a_gauge_that_is_read_often_grows_old_and_young_again() {
        let mut machine = Machine::here();
        machine.gauges();
        let ages: Vec<_> = (0..200).map(|_| machine.gauges().age).collect();
        assert!(ages.iter().flatten().all(|age| *age < 3.0), "{ages:?}");
    }
}
