//! Live readings for whoever wants to look on: of one process and all that came of it, or of the
//! whole machine. Nothing here sends a signal or changes what it looks at.
//!
//! Not here: the wait between two looks (`watch.rs`), and showing them.

use std::io;
use std::time::Duration;

use stageload_core::{Bytes, Reading};

use crate::Error;
use crate::meter::{Largest, Meter, reading};
use crate::sys::{self, Grip, Machine, ProcessId};
use crate::utc::utc_seconds;

/// Looks at one process tree or at the machine.
///
/// ```no_run
/// let mut meter = stageload::LiveMeter::of(4711)?;
/// let reading = meter.look();
/// println!("{:?} in {} processes", reading.footprint, reading.members.len());
/// # Ok::<(), stageload::Error>(())
/// ```
#[derive(Debug)]
pub struct LiveMeter {
    target: Target,
    start: Duration,
    memory: Option<Bytes>,
}

#[derive(Debug)]
enum Target {
    Tree { root: ProcessId, meter: Box<Meter> },
    System { machine: Machine, largest: Largest },
}

impl LiveMeter {
    /// The whole machine. Its readings have no footprint, which is a job's, but `demand`; their
    /// members are the largest processes of all users, as far as they can be read.
    pub fn system() -> Self {
        let mut machine = Machine::here();
        let memory = machine.gauges().memory;
        let target = Target::System { machine, largest: Largest::default() };
        Self { target, start: sys::now(), memory }
    }

    /// The process `pid` with its descendants and whoever is in a group or session that it leads,
    /// this very process included. A child whose parent dies is still counted.
    ///
    /// [`Error::NoProcess`] if there is none; [`Error::Unmeasurable`] if it may not be looked at, and
    /// for process 1, which everything descends from.
    pub fn of(pid: i32) -> Result<Self, Error> {
        Self::on(Machine::here(), pid)
    }

    fn on(mut machine: Machine, pid: i32) -> Result<Self, Error> {
        let root = find(&machine, pid)?;
        let memory = machine.gauges().memory;
        let mut meter = Meter::of_stranger(machine, root);
        meter.refresh();
        let target = Target::Tree { root, meter: Box::new(meter) };
        Ok(Self { target, start: sys::now(), memory })
    }

    /// One look. `t` is in seconds since this meter was made. What was held between two looks (`peak`)
    /// is known on Linux only: on macOS the kernel keeps one interval for all who ask, and it is left
    /// to the guard.
    pub fn look(&mut self) -> Reading {
        let since = sys::now().saturating_sub(self.start);
        let t = since.as_millis() as f64 / 1000.0;
        let seen = match &mut self.target {
            Target::Tree { meter, .. } => meter.look(t, None),
            Target::System { machine, largest } => {
                let members = largest.list(machine);
                Reading { t, members, ..reading(&machine.gauges()) }
            }
        };
        Reading { utc: utc_seconds(), ..seen }
    }

    /// Whether the process was gone at the last look, even if some that it started live on. The
    /// machine never is.
    pub fn has_ended(&self) -> bool {
        match &self.target {
            Target::Tree { root, meter } => !meter.members().any(|id| id == *root),
            Target::System { .. } => false,
        }
    }

    /// The process this is about; None for the machine.
    pub const fn root(&self) -> Option<ProcessId> {
        match &self.target {
            Target::Tree { root, .. } => Some(*root),
            Target::System { .. } => None,
        }
    }

    /// All of the machine's memory.
    pub const fn memory(&self) -> Option<Bytes> {
        self.memory
    }

    /// The command line of a process, as far as it can be read now. It is the process's own text: make
    /// it [`printable`](stageload_core::printable) before it gets to a terminal.
    pub fn command_line(&self, pid: i32) -> Option<String> {
        self.machine().command_line(pid)
    }

    /// A hold on the process, to wait for its end.
    pub(crate) fn grip(&self) -> Option<Grip> {
        Grip::take(self.machine(), self.root()?)
    }

    fn machine(&self) -> &Machine {
        match &self.target {
            Target::Tree { meter, .. } => meter.machine(),
            Target::System { machine, .. } => machine,
        }
    }
}

/// The process with this number, if it can be metered.
fn find(machine: &Machine, pid: i32) -> Result<ProcessId, Error> {
    let unmeasurable = |source| Error::Unmeasurable { pid, source };
    if pid == 1 {
        let why = "everything descends from it, so look at the whole system instead";
        return Err(unmeasurable(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let found = machine.process(pid).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => unmeasurable(forbidden()),
        _ => unmeasurable(error),
    })?;
    match found.filter(|process| pid > 1 && !process.is_zombie) {
        Some(process) if machine.footprint(pid).is_some() => Ok(process.id),
        // It ended meanwhile, or it is hidden from this user.
        Some(_) if machine.process(pid).is_ok_and(|now| now.is_some()) => {
            Err(unmeasurable(forbidden()))
        }
        _ => Err(Error::NoProcess { pid }),
    }
}

fn forbidden() -> io::Error {
    let why = "permission denied; try as the user it belongs to, or as root";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

// On a written `/proc`, so only where there is one.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;
    use crate::fake_proc::Proc;

    fn on(proc: &Proc, pid: i32) -> Result<LiveMeter, Error> {
        LiveMeter::on(Machine::under(proc.path()), pid)
    }

    #[test]
    fn a_tree_is_the_process_and_its_descendants_with_this_process_if_it_is_one() {
        let proc = Proc::new();
        let me = std::process::id() as i32;
        proc.start(100, 50, 100, 1);
        proc.start(101, 100, 101, 2);
        proc.start(me, 101, me, 3);
        proc.start(50, 2, 50, 1);
        let reading = on(&proc, 100).unwrap().look();
        assert_eq!(reading.footprint, Some(Bytes::mib(3)));
        let mut pids: Vec<_> = reading.members.iter().map(|member| member.pid).collect();
        pids.sort_unstable();
        let mut want = [100, 101, me];
        want.sort_unstable();
        assert_eq!(pids, want);
    }

    #[test]
    fn pages_shared_since_a_fork_are_counted_once() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1);
        proc.start(101, 100, 100, 2);
        for pid in [100, 101] {
            proc.write(pid, "smaps_rollup", "Pss_Anon: 600 kB\nPss_Shmem: 0 kB\nSwapPss: 0 kB\n");
        }
        assert_eq!(on(&proc, 100).unwrap().look().footprint, Some(Bytes(1200 * 1024)));
    }

    #[test]
    fn the_process_is_gone_when_its_number_is_another_ones() {
        let proc = Proc::new();
        proc.start(100, 50, 100, 1);
        proc.start(101, 100, 101, 2);
        let mut meter = on(&proc, 100).unwrap();
        meter.look();
        assert!(!meter.has_ended());
        proc.start(100, 50, 100, 99);
        meter.look();
        assert!(meter.has_ended());
    }

    #[test]
    fn what_cannot_be_metered_is_refused_with_the_reason() {
        let proc = Proc::new();
        proc.start(1, 0, 1, 1);
        proc.start(100, 1, 100, 1);
        proc.start(101, 1, 101, 1);
        fs::remove_file(proc.path().join("100/status")).unwrap();
        let stat = fs::read_to_string(proc.path().join("101/stat")).unwrap();
        proc.write(101, "stat", &stat.replace(") S", ") Z"));
        let refused = |pid| on(&proc, pid).unwrap_err().to_string();
        assert!(refused(100).contains("permission denied"), "{}", refused(100));
        assert!(refused(1).contains("whole system"), "{}", refused(1));
        for pid in [101, 102, 0, -7] {
            assert!(refused(pid).contains("there is no process"), "{}", refused(pid));
        }
    }

    #[test]
    fn the_machine_is_told_with_its_largest_processes() {
        let mut meter = LiveMeter::system();
        let reading = meter.look();
        assert_eq!(reading.footprint, None, "which is a job's");
        assert!(reading.level.is_some() && reading.demand.is_some() && reading.utc.is_some());
        assert!(reading.members.is_sorted_by(|a, b| a.footprint >= b.footprint));
        assert!(!reading.members.is_empty() && meter.memory().unwrap() > Bytes::mib(64));
        assert!(!meter.has_ended() && meter.root().is_none());
    }
}
