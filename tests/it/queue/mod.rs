//! The queue end to end: the real binary, real processes, a real database. Each test has a queue of
//! its own, whose engine and jobs end with it.
//!
//! * `engine`: one engine, and what becomes of jobs when it is killed
//! * `kills`: everything killed everywhere; nothing lost, nothing twice, nothing said that is not so
//! * `terminal`: `run`
//! * `control`: what somebody wants of jobs that are there
//! * `disk`: disks that are full
//! * `cases`: what other queues were reported to do wrong

mod cases;
mod control;
#[cfg(target_os = "linux")]
mod disk;
mod engine;
mod kills;
mod terminal;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Finished, Folder, eventually, finish, is_gone, send, stageload, wait};

/// What has a job start at once, however full the test machine is.
const AT_ONCE: [&str; 6] = ["--wait-free", "0", "--kill-free", "1", "--grace", "500ms"];

/// A queue of the test's own, and a folder for what its jobs write.
pub(crate) struct Home {
    folder: Folder,
    queue: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let queue = folder.file("queue");
        Self { folder, queue }
    }

    /// A file for the test's jobs.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.file(name)
    }

    /// A file of the queue's.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.queue.join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = stageload();
        command.env("STAGELOAD_HOME", &self.queue).current_dir(self.folder.path()).args(words);
        command.env_remove("STAGELOAD_WHO").env_remove("STAGELOAD_OWNER");
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Finished {
        finish(&mut self.command(words))
    }

    /// As [`Self::ask`], of what must work.
    pub(crate) fn tell(&self, words: &[&str]) -> String {
        let ended = self.ask(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.out
    }

    /// Queues a shell script; its number.
    pub(crate) fn add(&self, flags: &[&str], script: &str) -> i64 {
        let words = [&["add"], &AT_ONCE[..], flags, &["--", "sh", "-c", script]].concat();
        self.tell(&words).trim().parse().unwrap()
    }

    /// Queues a job that writes its name when it begins and when it ends, and ends with a code.
    pub(crate) fn add_writer(&self, flags: &[&str], name: &str, seconds: &str, code: i32) -> i64 {
        self.add(flags, &writer(name, seconds, code))
    }

    /// A job that waits in this terminal.
    pub(crate) fn run(&self, flags: &[&str], script: &str) -> Command {
        self.command(&[&["run"], &AT_ONCE[..], flags, &["--", "sh", "-c", script]].concat())
    }

    /// What the writers have written, a word each.
    pub(crate) fn written(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("written")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Those of the writers that began, in this order.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.written().iter().filter_map(|w| w.strip_suffix('+').map(str::to_owned)).collect()
    }

    pub(crate) fn waits_until_written(&self, word: &str) {
        let is_there = || self.written().iter().any(|w| w == word).then_some(());
        assert!(eventually(is_there).is_some(), "no {word}: {:?}", self.queue());
    }

    /// An engine that is a child of the test, once it is there.
    pub(crate) fn engine(&self) -> Child {
        let engine = self.spawn(&mut self.command(&["engine"]));
        assert!(eventually(|| (self.queue()["engine"] == true).then_some(())).is_some());
        engine
    }

    /// With nothing on its streams.
    pub(crate) fn spawn(&self, command: &mut Command) -> Child {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let said = fs::File::options().create(true).append(true).open(self.file("said")).unwrap();
        command.stderr(said).spawn().unwrap()
    }

    /// What those said that were spawned.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.file("said")).unwrap_or_default()
    }

    pub(crate) fn queue(&self) -> Value {
        let text = self.tell(&["queue", "--json", "--history", "1000"]);
        serde_json::from_str(&text).unwrap()
    }

    /// Every job by its number and its state, those that are over too.
    pub(crate) fn states(&self) -> Vec<(i64, String)> {
        let queue = self.queue();
        let lists = [&queue["jobs"], &queue["history"]];
        let jobs = lists.into_iter().flat_map(|list| list.as_array().unwrap());
        let mut states: Vec<_> = jobs
            .map(|job| (job["id"].as_i64().unwrap(), job["state"].as_str().unwrap().to_owned()))
            .collect();
        states.sort();
        states
    }

    pub(crate) fn job(&self, id: i64) -> Value {
        serde_json::from_str(&self.tell(&["show", "--json", &id.to_string()])).unwrap()
    }

    pub(crate) fn state(&self, id: i64) -> String {
        self.job(id)["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn why(&self, id: i64) -> String {
        self.job(id)["why"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn waits_for(&self, id: i64, state: &str) {
        let is_there = || (self.state(id) == state).then_some(());
        assert!(eventually(is_there).is_some(), "job {id} is not {state} but {}", self.job(id));
    }

    /// Until nothing waits and nothing runs.
    pub(crate) fn waits_until_over(&self) {
        let is_over = |(_, state): &(i64, String)| {
            ["done", "failed", "stopped", "killed", "interrupted", "held"].contains(&&**state)
        };
        let all = || self.states().iter().all(is_over).then_some(());
        assert!(eventually(all).is_some(), "{:?}", self.queue());
    }

    /// The database, for what no command does: nobody in this process has it open otherwise.
    pub(crate) fn change(&self, sql: &str) {
        self.database().unwrap().execute_batch(sql).unwrap();
    }

    fn database(&self) -> rusqlite::Result<rusqlite::Connection> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let database = rusqlite::Connection::open_with_flags(self.own("queue.sqlite"), flags)?;
        database.busy_timeout(std::time::Duration::from_secs(10))?;
        Ok(database)
    }

    /// The process that supervises a job, once one does.
    pub(crate) fn supervisor(&self, id: i64) -> i32 {
        let ask = || {
            let database = self.database().ok()?;
            let sql = "SELECT pid FROM attempts WHERE job = ?1 ORDER BY number DESC LIMIT 1";
            database.query_row(sql, [id], |row| row.get::<_, Option<i32>>(0)).ok()?
        };
        eventually(ask).expect("a supervisor")
    }

    /// The engine that runs by itself.
    pub(crate) fn engine_pid(&self) -> Option<i32> {
        let lock = fs::File::open(self.own("engine.lock")).ok()?;
        // The number in the file counts only while somebody holds the lock.
        let held = matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
        let text = fs::read_to_string(self.own("engine.lock")).ok()?;
        held.then(|| text.trim().parse().ok()).flatten()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(pid) = self.engine_pid() {
            send(pid, libc::SIGKILL);
        }
        let unfinished = self.command(&["queue", "--json"]).output();
        let view: Value = unfinished
            .ok()
            .and_then(|output| serde_json::from_slice(&output.stdout).ok())
            .unwrap_or_default();
        let ids: Vec<String> = view["jobs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|job| job["id"].to_string())
            .collect();
        if !ids.is_empty() {
            let mut stop = self.command(&["stop"]);
            stop.args(ids).output().ok();
        }
        let left = || processes_of(&self.queue);
        let is_left = || left().is_empty().then_some(());
        if crate::support::within(std::time::Duration::from_secs(3), is_left).is_none() {
            for pid in left() {
                send_if_there(pid, libc::SIGKILL);
            }
        }
    }
}

fn send_if_there(pid: i32, signal: i32) {
    if crate::support::is_alive(pid) {
        send(pid, signal);
    }
}

/// Every process that works for this queue: it carries its name.
#[cfg(target_os = "linux")]
pub(crate) fn processes_of(queue: &Path) -> Vec<i32> {
    use std::os::unix::ffi::OsStrExt;
    let mark = [b"STAGELOAD_HOME=", queue.as_os_str().as_bytes()].concat();
    let is_ours = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

/// Where nobody may look at others' environments, `stop` has done all that is done.
#[cfg(not(target_os = "linux"))]
pub(crate) fn processes_of(_queue: &Path) -> Vec<i32> {
    Vec::new()
}

/// Appends `NAME+`, sleeps, appends `NAME-`, and ends with a code.
fn writer(name: &str, seconds: &str, code: i32) -> String {
    format!("echo {name}+ >> written; sleep {seconds}; echo {name}- >> written; exit {code}")
}

/// The engine is gone and has left its lock.
fn kill(mut process: Child) {
    let pid = process.id() as i32;
    process.kill().unwrap();
    wait(process);
    assert!(is_gone(pid));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
