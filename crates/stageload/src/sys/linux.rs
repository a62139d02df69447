//! Linux: everything comes from `/proc`, under a root that tests can fake.
//!
//! The footprint is `RssAnon` + `RssShmem` + `VmSwap` of `status`, which costs 9 to 16 µs at any size.
//! The exact share of pages that several processes hold together costs 23 ms per GB (measured at
//! 1, 4 and 10 GB), so `proportional` is only asked before a job is stopped.
//! Not here: cgroups, pressure stalls and GPU memory outside the process (GTT).

use std::fs;
use std::io;
use std::path::PathBuf;

use stageload_core::{Bytes, Percent};

use super::{Gauges, Process, ProcessId, marks_job};

/// The machine as `/proc` shows it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    proc: PathBuf,
}

impl Machine {
    pub(crate) fn here() -> Self {
        Self { proc: PathBuf::from("/proc") }
    }

    #[cfg(test)]
    pub(crate) fn under(proc: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into() }
    }

    pub(crate) fn gauges(&self) -> Gauges {
        fs::read(self.proc.join("meminfo")).map(|text| parse_meminfo(&text)).unwrap_or_default()
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        let Ok(entries) = fs::read_dir(&self.proc) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// None if there is no such process; an error if that could not be found out.
    pub(crate) fn process(&self, pid: i32) -> io::Result<Option<Process>> {
        match fs::read(self.file(pid, "stat")) {
            Ok(raw) => parse_stat(&raw).map(Some).ok_or(io::ErrorKind::InvalidData.into()),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn footprint(&self, pid: i32) -> Option<Bytes> {
        let status = self.status(pid)?;
        Some(["RssAnon", "RssShmem", "VmSwap"].iter().filter_map(|key| field(&status, key)).sum())
    }

    /// What is left of the footprint when shared pages are split among those who share them.
    pub(crate) fn proportional(&self, pid: i32) -> Option<Bytes> {
        let rollup = self.read(pid, "smaps_rollup")?;
        let anonymous = field(&rollup, "Pss_Anon")?;
        let rest = ["Pss_Shmem", "SwapPss"].iter().filter_map(|key| field(&rollup, key));
        Some(anonymous + rest.sum())
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

    /// The `status` that has the memory: when the main thread has ended and others have not, it is
    /// in theirs only.
    fn status(&self, pid: i32) -> Option<Vec<u8>> {
        let main = self.read(pid, "status")?;
        if field(&main, "RssAnon").is_some() {
            return Some(main);
        }
        let threads = fs::read_dir(self.proc.join(pid.to_string()).join("task")).ok();
        let others = threads.into_iter().flatten().flatten();
        let statuses = others.filter_map(|thread| fs::read(thread.path().join("status")).ok());
        statuses.into_iter().find(|status| field(status, "RssAnon").is_some()).or(Some(main))
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

/// The size behind `key:` in a file whose lines read `Key:   123 kB`.
fn field(text: &[u8], key: &str) -> Option<Bytes> {
    let value = text
        .split(|b| *b == b'\n')
        .find_map(|line| line.strip_prefix(key.as_bytes())?.strip_prefix(b":"))?;
    let number = std::str::from_utf8(value).ok()?.trim().strip_suffix("kB")?.trim();
    Some(Bytes(number.parse::<u64>().ok()?.checked_mul(1024)?))
}

fn parse_meminfo(text: &[u8]) -> Gauges {
    let swap_total = field(text, "SwapTotal");
    let swap_free = field(text, "SwapFree");
    let available = field(text, "MemAvailable");
    Gauges {
        swap_used: swap_total.zip(swap_free).map(|(total, free)| total.saturating_sub(free)),
        swap_total,
        level: available.zip(field(text, "MemTotal")).and_then(|(a, all)| Percent::of(a, all)),
        ..Gauges::default()
    }
}

/// `pid (name) state parent group session ...`, where the name may hold anything, `) Z ` included;
/// the last parenthesis ends it.
fn parse_stat(raw: &[u8]) -> Option<Process> {
    let name_start = raw.iter().position(|b| *b == b'(')?;
    let name_end = raw.iter().rposition(|b| *b == b')')?;
    let pid = std::str::from_utf8(&raw[..name_start]).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(raw.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<i32>().ok();
    Some(Process {
        id: ProcessId { pid, start: fields.get(19)?.parse().ok()? },
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        // A main thread that ended before the others looks like a zombie, but the process lives.
        is_zombie: matches!(*fields.first()?, "Z" | "X" | "x") && number(17)? <= 1,
        unique: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn half_a_stat_line_is_no_process() {
        for raw in ["", "12", "12 (a", "12 (a) S", "12 (a) S 1 2 3", ")(", "x (a) S 1 1 1"] {
            assert_eq!(parse_stat(raw.as_bytes()), None, "{raw}");
        }
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
    }

    #[test]
    fn what_meminfo_does_not_say_is_unknown_and_never_0() {
        assert_eq!(parse_meminfo(b"MemTotal: 0 kB\nMemAvailable: garbage\n"), Gauges::default());
        assert_eq!(fixtures("nowhere").gauges(), Gauges::default());
        let no_swap = parse_meminfo(b"SwapTotal: 0 kB\nSwapFree: 0 kB\n");
        assert_eq!(no_swap.swap_used, Some(Bytes::ZERO));
    }

    #[test]
    fn a_marker_is_found_only_as_a_whole_word_of_its_list() {
        assert!(marks_job(b"STAGELOAD_JOB=abc", "abc"));
        assert!(marks_job(b"STAGELOAD_JOB=outer:abc", "abc"));
        assert!(!marks_job(b"STAGELOAD_JOB=abcd", "abc"));
        assert!(!marks_job(b"X_STAGELOAD_JOB=abc", "abc"));
    }

    #[test]
    fn this_process_finds_itself() {
        let machine = Machine::here();
        let me = std::process::id() as i32;
        assert!(machine.pids().contains(&me));
        assert_eq!(machine.process(me).unwrap().unwrap().id.pid, me);
        assert!(machine.footprint(me).unwrap() > Bytes::ZERO);
        assert!(machine.command_line(me).is_some());
    }
}
