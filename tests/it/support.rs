//! What the tests share: a folder, a guard command, a deadline on everything.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing here takes longer than this even on a busy machine; what does, hangs.
const DEADLINE: Duration = Duration::from_secs(90);

/// A folder of the test's own.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.file(name)).unwrap()).unwrap()
    }
}

/// The stageload command, free of what the test's own surroundings may have set.
pub(crate) fn stageload() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stageload"));
    command.env_remove("STAGELOAD_EVENTS").env_remove("STAGELOAD_JOB");
    command
}

/// A guard that starts at once and does not mind how full the test machine is.
pub(crate) fn guard(flags: &[&str]) -> Command {
    let mut command = stageload();
    command.args(["guard", "--wait-free", "0", "--kill-free", "1"]).args(flags);
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Finished {
    let logs = Folder::new();
    let (out, err) = (logs.file("out"), logs.file("err"));
    let child = command
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let code = wait(child);
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Finished { code, out: read(&out), err: read(&err) }
}

/// The exit code; None after a signal. Ends a child that takes for ever.
pub(crate) fn wait(mut child: Child) -> Option<i32> {
    let ended = eventually(|| child.try_wait().unwrap());
    if ended.is_none() {
        child.kill().unwrap();
        panic!("pid {} hangs", child.id());
    }
    ended.and_then(|status| status.code())
}

/// Asks until there is an answer, or for so long that there will be none.
pub(crate) fn eventually<T>(ask: impl FnMut() -> Option<T>) -> Option<T> {
    within(DEADLINE, ask)
}

/// Asks until there is an answer, for this long.
pub(crate) fn within<T>(time: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// The pid that a job wrote into a file.
pub(crate) fn pid_in(path: &Path) -> i32 {
    eventually(|| fs::read_to_string(path).ok()?.trim().parse().ok()).expect("a pid")
}

/// Sends a signal to one process.
pub(crate) fn send(pid: i32, signal: i32) {
    assert!(kill(pid, signal), "pid {pid} takes no signal {signal}");
}

/// Whether the process is there and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    kill(pid, 0) && !is_zombie(pid)
}

/// Whether the process is gone, waiting a little for whoever has to reap it.
pub(crate) fn is_gone(pid: i32) -> bool {
    eventually(|| (!is_alive(pid)).then_some(())).is_some()
}

/// An orphan can stay a zombie where the first process of a container reaps nobody.
fn is_zombie(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

#[expect(unsafe_code, reason = "std can only kill children")]
fn kill(pid: i32, signal: i32) -> bool {
    assert!(pid > 1);
    // SAFETY: kill takes two numbers and touches no memory.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// A pipe that takes not one byte more, as a terminal after Ctrl-S does.
pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    set_status(&writer, libc::O_NONBLOCK);
    while writer.write(b"x").is_ok() {}
    set_status(&writer, 0);
    (reader, writer)
}

#[expect(unsafe_code, reason = "std cannot make a pipe non-blocking")]
fn set_status(pipe: &PipeWriter, flags: i32) {
    // SAFETY: fcntl with F_SETFL takes numbers and touches no memory.
    assert_eq!(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags) }, 0);
}

/// A test that is skipped in silence reads like one that passed. Past the capture of a test's own
/// output, which is shown only when it fails.
pub(crate) fn skipped(why: &str) {
    std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes()).unwrap();
}

/// Whether `/dev/full` is what it should be; says so where it is not.
#[cfg(target_os = "linux")]
pub(crate) fn has_full_disk() -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_device = fs::metadata("/dev/full").is_ok_and(|file| file.file_type().is_char_device());
    if !is_device {
        skipped("this system has no /dev/full");
    }
    is_device
}
