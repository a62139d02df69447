//! Linux: everything comes from `/proc`, under a root that tests can fake.
//!
//! The footprint is `RssAnon` + `RssShmem` + `VmSwap` of `status`, which costs 9 to 16 µs at any size.
//! The exact share of pages that several processes hold together costs 23 ms per GB (measured at
//! 1, 4 and 10 GB), so `proportional` is for those who know when to ask.
//! Not here: what NVIDIA's driver holds outside of the process, and the limits of a container.

mod cgroup;
mod gauges;
mod gpu;
mod grip;
mod pressure;
mod stat;
mod status;
mod text;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use stageload_core::Bytes;

pub(crate) use gpu::Gpu;
pub(crate) use grip::Grip;
pub(crate) use pressure::on_pressure;

use super::{Gauges, Process, marks_job};
use status::Status;

const PROC: &str = "/proc";

/// The machine as it shows itself.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    proc: PathBuf,
    cgroups: PathBuf,
    dri: PathBuf,
}

impl Machine {
    pub(crate) fn here() -> Self {
        Self { proc: PROC.into(), cgroups: "/sys/fs/cgroup".into(), dri: "/dev/dri".into() }
    }

    /// One that a test has written, in one folder.
    #[cfg(test)]
    pub(crate) fn under(proc: impl Into<PathBuf>) -> Self {
        let proc = proc.into();
        Self { cgroups: proc.join("cgroups"), dri: proc.join("dri"), proc }
    }

    /// Whether its processes can be signalled: their numbers are this system's.
    fn is_here(&self) -> bool {
        self.proc == Path::new(PROC)
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "macOS remembers what it has read")]
    pub(crate) fn gauges(&mut self) -> Gauges {
        let text = fs::read(self.proc.join("meminfo")).unwrap_or_default();
        let stalls = fs::read(self.proc.join("pressure/memory")).unwrap_or_default();
        Gauges { pressure: gauges::parse_pressure(&stalls), ..gauges::parse_meminfo(&text) }
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        let Ok(entries) = fs::read_dir(&self.proc) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// None if there is no such process; an error if that could not be found out.
    pub(crate) fn process(&self, pid: i32) -> io::Result<Option<Process>> {
        match fs::read(self.file(pid, "stat")) {
            Ok(raw) => stat::parse_stat(&raw).map(Some).ok_or(io::ErrorKind::InvalidData.into()),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn footprint(&self, pid: i32) -> Option<Bytes> {
        self.status(pid).map(|status| status.footprint)
    }

    /// What is left of the footprint when shared pages are split among those who share them.
    pub(crate) fn proportional(&self, pid: i32) -> Option<Bytes> {
        status::proportional(&self.read(pid, "smaps_rollup")?)
    }

    /// Whether the two have one and the same memory, as after vfork until the child runs its program:
    /// each then holds all of it, and no count of shared pages says so. False where the system does not
    /// tell (a container that forbids kcmp).
    #[expect(unsafe_code, reason = "libc has only the number of this call")]
    pub(crate) fn has_memory_of(&self, pid: i32, other: i32) -> bool {
        const KCMP_VM: i32 = 1;
        // SAFETY: kcmp takes numbers and touches no memory of this process.
        self.is_here() && unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) } == 0
    }

    pub(crate) fn command_line(&self, pid: i32) -> Option<String> {
        let raw = self.read(pid, "cmdline")?;
        let words = raw.split(|b| *b == 0).map(String::from_utf8_lossy);
        let line = words.collect::<Vec<_>>().join(" ").trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    }

    pub(crate) fn is_marked(&self, pid: i32, token: &str) -> bool {
        self.read(pid, "environ")
            .is_some_and(|raw| raw.split(|b| *b == 0).any(|one| marks_job(one, token)))
    }

    /// The cgroup of a process, unless this process is in it too.
    pub(crate) fn own_cgroup(&self, pid: i32) -> Option<PathBuf> {
        let folder = |pid: i32| cgroup::folder_of(&self.proc.join(pid.to_string()), &self.cgroups);
        let of_guard = folder(std::process::id() as i32).unwrap_or_default();
        folder(pid).filter(|folder| !of_guard.starts_with(folder))
    }

    /// Whoever is in a cgroup or below it.
    #[expect(clippy::unused_self, reason = "the same call as where there are no cgroups")]
    pub(crate) fn pids_in(&self, cgroup: &Path) -> Vec<i32> {
        cgroup::pids(cgroup)
    }

    /// What a cgroup holds; None where that is not accounted.
    #[expect(clippy::unused_self, reason = "the same call as where there are no cgroups")]
    pub(crate) fn held_by(&self, cgroup: &Path) -> Option<Bytes> {
        cgroup::held(cgroup)
    }

    /// When the main thread has ended and others have not, the memory is in their `status` only.
    fn status(&self, pid: i32) -> Option<Status> {
        let main = self.read(pid, "status")?;
        if status::has_memory(&main) {
            return Some(Status::parse(&main));
        }
        let threads = fs::read_dir(self.file(pid, "task")).into_iter().flatten().flatten();
        let mut others = threads.filter_map(|thread| fs::read(thread.path().join("status")).ok());
        let of_other = others.find(|text| status::has_memory(text));
        Some(Status::parse(&of_other.unwrap_or(main)))
    }

    fn read(&self, pid: i32, file: &str) -> Option<Vec<u8>> {
        fs::read(self.file(pid, file)).ok()
    }

    fn file(&self, pid: i32, file: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(file)
    }
}

/// A process that ends between the opening of its file and the reading of it is ESRCH.
fn is_absence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// From now on a descendant whose parent dies becomes a child of this process, whatever session,
/// group and environment it has given itself. Says whether that holds.
#[expect(unsafe_code, reason = "std has no prctl")]
pub(crate) fn adopt_orphans() -> bool {
    // SAFETY: this prctl takes numbers and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 }
}

/// Keeps this process's pages in memory: a guard that waits for its own to come back from swap is
/// late. Not under a limit on locked memory, which would make later allocations fail.
#[expect(unsafe_code, reason = "std locks no memory")]
pub(crate) fn lock_memory() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for one rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    // SAFETY: geteuid cannot fail; mlockall takes a number and changes nothing if it fails.
    unsafe {
        if limit.rlim_cur == libc::RLIM_INFINITY || libc::geteuid() == 0 {
            libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT);
        }
    }
}

/// Puts the calling thread before others, where that is allowed. What it starts from then on would
/// be before others too, so nothing is.
#[expect(unsafe_code, reason = "std has no priorities")]
pub(crate) fn be_prompt() {
    // SAFETY: setpriority takes numbers and touches no memory; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}

/// Gives a part of a file back to the disk; it reads as zeros from then on.
#[expect(unsafe_code, reason = "std makes no holes")]
pub(crate) fn punch_hole(file: &File, from: u64, length: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate takes numbers and touches no memory.
    let code = unsafe { libc::fallocate(file.as_raw_fd(), mode, from as i64, length as i64) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What this start of the machine is called; another after each reboot.
pub(crate) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Everything here that reads what others wrote, for the fuzzer and the test below.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_anything(raw: &[u8]) {
    std::hint::black_box((
        stat::parse_stat(raw),
        status::Status::parse(raw),
        status::proportional(raw),
        gauges::parse_meminfo(raw),
        gauges::parse_pressure(raw),
        gpu::parse_client(raw),
        cgroup::parse_path(raw),
    ));
}

#[cfg(test)]
mod tests {
    use stageload_core::Percent;

    use super::*;
    use crate::sys::ProcessId;

    fn fixtures(case: &str) -> Machine {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/proc/");
        Machine::under(format!("{root}{case}"))
    }

    #[test]
    fn a_name_that_looks_like_a_state_fools_nobody() {
        let machine = fixtures("hostile-names");
        let process = machine.process(4242).unwrap().unwrap();
        assert_eq!(process.id, ProcessId { pid: 4242, start: 987_654 });
        assert_eq!((process.parent, process.group, process.session), (17, 4240, 4240));
        assert!(!process.is_zombie);
        assert!(machine.process(4243).unwrap().unwrap().is_zombie);
        assert_eq!(machine.process(4244).unwrap().unwrap().parent, 1, "a name that is not UTF-8");
    }

    #[test]
    fn a_process_whose_main_thread_ended_lives_on_in_the_others() {
        let machine = fixtures("hostile-names");
        assert!(!machine.process(4245).unwrap().unwrap().is_zombie);
        assert_eq!(machine.footprint(4245), Some(Bytes::mib(7)));
    }

    #[test]
    fn a_process_that_cannot_be_read_is_not_one_that_is_gone() {
        let proc = tempfile::tempdir().unwrap();
        let machine = Machine::under(proc.path());
        assert_eq!(machine.process(7).unwrap(), None);
        // Reading a folder fails for root too, with an error that does not mean absence.
        fs::create_dir_all(proc.path().join("7/stat")).unwrap();
        machine.process(7).unwrap_err();
        fs::create_dir(proc.path().join("8")).unwrap();
        fs::write(proc.path().join("8/stat"), "8 (half").unwrap();
        machine.process(8).unwrap_err();
    }

    #[test]
    fn the_footprint_is_anonymous_shared_and_swapped_memory() {
        let machine = fixtures("hostile-names");
        assert_eq!(machine.footprint(4242), Some(Bytes(1024 * (1000 + 20 + 300))));
        assert_eq!(machine.footprint(4243), Some(Bytes::ZERO), "a zombie holds nothing");
        assert_eq!(machine.footprint(1), None, "no such process");
    }

    #[test]
    fn the_level_and_the_swap_come_from_meminfo() {
        let gauges = fixtures("hostile-names").gauges();
        assert_eq!(gauges.level, Percent::new(25));
        assert_eq!(gauges.swap_used, Some(Bytes::mib(512)));
        assert_eq!(gauges.swap_total, Some(Bytes::gib(2)));
        assert_eq!(gauges.demand, Some(Bytes::gib(12) + Bytes::mib(512)));
        assert_eq!(fixtures("nowhere").gauges(), Gauges::default());
    }

    #[test]
    fn a_marker_is_found_only_as_a_whole_word_of_its_list() {
        assert!(marks_job(b"STAGELOAD_JOB=abc", "abc"));
        assert!(marks_job(b"STAGELOAD_JOB=outer:abc", "abc"));
        assert!(!marks_job(b"STAGELOAD_JOB=abcd", "abc"));
        assert!(!marks_job(b"X_STAGELOAD_JOB=abc", "abc"));
    }

    #[test]
    fn a_cgroup_that_this_process_is_in_or_under_is_not_the_jobs_own() {
        let proc = tempfile::tempdir().unwrap();
        let write = |pid: i32, path: &str| {
            fs::create_dir_all(proc.path().join(pid.to_string())).unwrap();
            fs::write(proc.path().join(format!("{pid}/cgroup")), format!("0::{path}\n")).unwrap();
            fs::create_dir_all(proc.path().join(format!("cgroups{path}"))).unwrap();
        };
        let machine = Machine::under(proc.path());
        write(std::process::id() as i32, "/user/shell.scope");
        for (path, is_own) in [("/user", false), ("/user/shell.scope", false), ("/job.scope", true)]
        {
            write(100, path);
            assert_eq!(machine.own_cgroup(100).is_some(), is_own, "{path}");
        }
    }

    #[test]
    fn this_process_finds_itself() {
        let mut machine = Machine::here();
        let me = std::process::id() as i32;
        assert!(machine.pids().contains(&me));
        assert_eq!(machine.process(me).unwrap().unwrap().id.pid, me);
        assert!(machine.footprint(me).unwrap() > Bytes::ZERO);
        assert!(machine.command_line(me).is_some());
        assert!(machine.gauges().claimable.unwrap() > Bytes::ZERO);
    }

    proptest::proptest! {
        #[test]
        fn no_file_in_proc_can_bring_the_guard_down(
            key in "(MemTotal:|VmHWM:|RssAnon:|some avg10=|drm-total-gtt:|7 \\(|0::)?",
            raw in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..200),
            number in "[0-9]{0,25} (kB|MiB|\\) S)?( -?[0-9]{1,22}){0,25}\n?",
        ) {
            read_anything(&raw);
            read_anything(format!("{key}{number}").as_bytes());
            read_anything(&[key.as_bytes(), &raw].concat());
        }
    }
}
