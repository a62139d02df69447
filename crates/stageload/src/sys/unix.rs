//! What Linux and macOS share: the clock, sessions, signals, waiting for a child.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use stageload_core::{Bytes, Moment};

/// The clock that jobs stamp their events with. It stops while the machine sleeps, so a night
/// with the lid closed is no 8-hour streak of low memory.
#[cfg(target_os = "macos")]
const CLOCK: libc::clockid_t = libc::CLOCK_UPTIME_RAW;
#[cfg(not(target_os = "macos"))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The same with the time the machine slept.
#[cfg(target_os = "macos")]
const CLOCK_WITH_SLEEP: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
#[cfg(not(target_os = "macos"))]
const CLOCK_WITH_SLEEP: libc::clockid_t = libc::CLOCK_BOOTTIME;

/// Time on the clock that stops in sleep.
pub(crate) fn now() -> Duration {
    read_clock(CLOCK)
}

/// Now, on both clocks.
pub(crate) fn moment() -> Moment {
    Moment { awake: read_clock(CLOCK), total: read_clock(CLOCK_WITH_SLEEP) }
}

#[expect(unsafe_code, reason = "std's Instant does not show its clock's value")]
fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Makes the command the leader of its own session and process group. Ctrl-C in the terminal
/// then reaches the guard alone, which stops the job in order.
#[expect(unsafe_code, reason = "std has process groups but no sessions")]
pub(crate) fn lead_session(command: &mut Command) {
    // SAFETY: setsid is async-signal-safe, and the closure touches no memory of the parent.
    unsafe {
        command.pre_exec(
            || {
                if libc::setsid() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            },
        );
    }
}

/// Where this user's guards keep what outlives one of them: `$STAGELOAD_HOME`, else the system's
/// place for state.
pub(crate) fn state_folder() -> io::Result<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(home) = given("STAGELOAD_HOME") {
        return Ok(home.into());
    }
    let home = || given("HOME").map(PathBuf::from).ok_or(io::ErrorKind::NotFound);
    if cfg!(target_os = "macos") {
        return Ok(home()?.join("Library/Application Support/Stageload"));
    }
    match given("XDG_STATE_HOME") {
        Some(state) => Ok(PathBuf::from(state).join("stageload")),
        None => Ok(home()?.join(".local/state/stageload")),
    }
}

/// What is free for this user on the disk that this folder is on.
#[expect(unsafe_code, reason = "std does not ask disks")]
pub(crate) fn free_space(folder: &Path) -> Option<Bytes> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero is a valid statvfs.
    let mut disk: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a NUL, and `disk` is a valid place for one statvfs.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut disk) } != 0 {
        return None;
    }
    Some(Bytes(wide(disk.f_bavail).saturating_mul(wide(disk.f_frsize))))
}

/// Systems differ in how wide their counters are.
fn wide(counter: impl Into<u64>) -> u64 {
    counter.into()
}

/// Replaces this process by the command; returns only if that fails.
pub(crate) fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// The process group of the caller, which is never signalled.
#[expect(unsafe_code, reason = "no call of std tells the group")]
fn own_group() -> i32 {
    // SAFETY: getpgrp takes nothing and cannot fail.
    unsafe { libc::getpgrp() }
}

/// Sends `signal` to one process. Whoever calls has just checked whose number it is.
pub(super) fn signal_one(pid: i32, signal: i32) -> io::Result<()> {
    debug_assert!(pid > 1, "0, 1 and negative numbers mean more than one process");
    kill(pid, signal)
}

/// Whether some process has this number, a zombie included.
pub(crate) fn exists(pid: i32) -> bool {
    signal_one(pid, 0).map_or_else(|error| error.raw_os_error() != Some(libc::ESRCH), |()| true)
}

/// Sends `signal` to a whole group, never to the caller's own.
pub(crate) fn signal_group(group: i32, signal: i32) -> io::Result<()> {
    if group <= 1 || group == own_group() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    kill(-group, signal)
}

#[expect(unsafe_code, reason = "std can only kill its own children, with SIGKILL")]
fn kill(target: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes two numbers and touches no memory.
    if unsafe { libc::kill(target, signal) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Stands still until somebody continues this process, as Ctrl-Z has it.
#[expect(unsafe_code, reason = "std sends no signals")]
pub(crate) fn suspend_self() {
    // SAFETY: raise takes a number and touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// What a child did that its parent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has ended.
    Ended,
    /// A signal stopped it; it can be continued.
    Stopped,
}

/// Blocks until the child has ended or was stopped. One that ended is not reaped: until the guard
/// does that, nobody else can get the child's number or its group's.
pub(crate) fn wait_for_change(pid: i32) -> Change {
    match wait(pid, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT) {
        Ok(libc::CLD_STOPPED) => {
            // A stop that is not asked for would be told again at once.
            wait(pid, libc::WSTOPPED | libc::WNOHANG).ok();
            Change::Stopped
        }
        _ => Change::Ended,
    }
}

#[expect(unsafe_code, reason = "std's wait reaps, and knows no stops")]
fn wait(pid: i32, flags: i32) -> io::Result<i32> {
    loop {
        // SAFETY: all-zero is a valid siginfo_t, and `info` is a valid place for one.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the same.
        if unsafe { libc::waitid(libc::P_PID, pid as u32, &raw mut info, flags) } == 0 {
            return Ok(info.si_code);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Takes note of the end of a child that nobody else waits for, if it has ended.
#[expect(unsafe_code, reason = "std reaps only what it has started")]
pub(crate) fn reap(pid: i32) {
    // SAFETY: a null status is allowed; the call touches no other memory.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// Where the handler writes; -1 before anybody listened.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// While it lives, the given signals arrive as bytes in a pipe instead of ending this process.
/// One that was ignored at the start, as `nohup` does, stays ignored. One at a time per process.
#[derive(Debug)]
pub(crate) struct SignalPipe {
    caught: Vec<i32>,
}

impl SignalPipe {
    /// The same pipe each time.
    pub(crate) fn open(signals: &[i32]) -> io::Result<(Self, &'static PipeReader)> {
        let (reader, writer) = pipe_for_life()?;
        PIPE.store(writer.as_raw_fd(), Ordering::SeqCst);
        let caught = signals.iter().copied().filter(|signal| catch(*signal)).collect();
        Ok((Self { caught }, reader))
    }
}

/// One pipe that is never closed: a handler that runs late must not write into whatever got the
/// number of its pipe.
fn pipe_for_life() -> io::Result<&'static (PipeReader, PipeWriter)> {
    static ENDS: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
    if ENDS.get().is_none() {
        let (reader, writer) = io::pipe()?;
        set_nonblocking(&writer)?;
        // Whoever was first wins, and the other pipe closes with nobody knowing it.
        ENDS.set((reader, writer)).ok();
    }
    ENDS.get().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A handler that blocks on a full pipe would block the very thread that may have to empty it.
pub(crate) fn set_nonblocking(pipe: &impl AsRawFd) -> io::Result<()> {
    set_flags(pipe, libc::O_NONBLOCK)
}

/// Has the programs that are started from here on keep this file open, and the locks on it with it.
#[expect(unsafe_code, reason = "std has every file closed when a program starts")]
pub(crate) fn leave_open(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFD takes numbers and touches no memory.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where a file has its first hole: its start and its end, in bytes. None if there is none but the end
/// of the file.
pub(crate) fn first_hole(file: &File) -> Option<(u64, u64)> {
    let start = seek(file, 0, libc::SEEK_HOLE)?;
    let end = seek(file, start, libc::SEEK_DATA)?;
    Some((start as u64, end as u64))
}

#[expect(unsafe_code, reason = "std knows no holes")]
fn seek(file: &File, from: i64, whence: i32) -> Option<i64> {
    // SAFETY: lseek takes numbers and touches no memory.
    let at = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
    (at >= 0).then_some(at)
}

/// For a file that was opened so that the opening itself could not block.
pub(crate) fn set_blocking(file: &impl AsRawFd) -> io::Result<()> {
    set_flags(file, 0)
}

#[expect(unsafe_code, reason = "std cannot change the flags of an open file")]
fn set_flags(file: &impl AsRawFd, flags: i32) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFL takes numbers and touches no memory.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Drop for SignalPipe {
    #[expect(unsafe_code, reason = "std does not handle signals")]
    fn drop(&mut self) {
        for signal in &self.caught {
            // SAFETY: SIG_DFL is a valid disposition for each signal that `catch` accepted.
            unsafe { libc::signal(*signal, libc::SIG_DFL) };
        }
    }
}

extern "C" fn on_signal(signal: i32) {
    let pipe = PIPE.load(Ordering::SeqCst);
    let byte = signal as u8;
    #[expect(unsafe_code, reason = "only async-signal-safe calls are allowed in a handler")]
    // SAFETY: write is async-signal-safe, and `byte` lives for the call; a full pipe only fails.
    // errno is this thread's own and is put back: the code that was interrupted may be about to
    // read it.
    unsafe {
        let errno = errno_place();
        let before = *errno;
        libc::write(pipe, (&raw const byte).cast(), 1);
        *errno = before;
    };
}

#[cfg(target_os = "linux")]
use libc::__errno_location as errno_place;
#[cfg(target_os = "macos")]
use libc::__error as errno_place;

/// A file that reaches the limit of its size (`ulimit -f`) shall be an error of the write, and not the
/// end of this process. A handler, unlike ignoring, is not passed on to a program that is started.
pub(crate) fn survive_file_limits() {
    extern "C" fn leave_it_to_write(_: i32) {}
    handle(libc::SIGXFSZ, leave_it_to_write);
}

fn catch(signal: i32) -> bool {
    handle(signal, on_signal)
}

/// False where the signal was ignored, and stays so.
#[expect(unsafe_code, reason = "std does not handle signals")]
fn handle(signal: i32, handler: extern "C" fn(i32)) -> bool {
    // SAFETY: all-zero is a valid sigaction: the default disposition, no flags, no mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is a valid place for the old disposition; nothing is changed.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    if action.sa_sigaction == libc::SIG_IGN {
        return false;
    }
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` holds a handler of the right type; both of ours make async-signal-safe calls only.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_leaves_the_errno_of_what_it_interrupts() {
        let missing = std::fs::File::open("/no/such/file").unwrap_err();
        // Ignored by whoever listens in another test; fails with EBADF where nobody does.
        on_signal(libc::SIGTSTP);
        assert_eq!(io::Error::last_os_error().raw_os_error(), missing.raw_os_error());
    }

    #[test]
    fn a_full_signal_pipe_does_not_block_the_handler() {
        let (reader, mut writer) = io::pipe().unwrap();
        set_nonblocking(&writer).unwrap();
        while io::Write::write(&mut writer, b"x").is_ok() {}
        drop(reader);
    }
}
