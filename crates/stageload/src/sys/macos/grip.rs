//! A hold on one process that a re-used number cannot move.
//!
//! The kernel gives each process a number that is never used again, and a version that changes with
//! each exec. A signal goes out with pid and version, and the kernel refuses it if either is
//! another's (`proc_signal_with_audittoken`). Where that call is missing, the identity is compared
//! and then the number is signalled, with a gap of microseconds between the two.

use std::io;
use std::thread;
use std::time::Duration;

use mach2::message::audit_token_t;
use stageload_core::Bytes;

use super::queue::{Queue, Woken};
use super::{Machine, libproc};
use crate::sys::{Held, Process, ProcessId, layouts, unix};

/// How often an exec may come between the reading of a version and its use. More than one in a row
/// would be a process that does nothing else.
const EXECS: u32 = 3;
/// How often to look for the end of a process whatever the queue says. One call each.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Grip {
    id: ProcessId,
    /// Its never re-used number; None if the kernel did not tell.
    unique: Option<u64>,
}

impl Grip {
    /// None if that process is not there any more.
    pub(crate) fn take(machine: &Machine, id: ProcessId) -> Option<Self> {
        // Looked up here, so that nothing is allocated when a signal is sent.
        libproc::signal_with_token();
        let look = || machine.process(id.pid).ok()?.filter(|now| now.id == id && !now.is_zombie);
        let unique = look()?.unique.map(|unique| unique.own);
        // Once more: one look is two calls, and between them the number may have changed hands.
        look().filter(|_| id.pid > 1).map(|_| Self { id, unique })
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// What it holds, with the most it held since the last call of this, or since its start. The
    /// kernel keeps one interval for everybody: another program that resets it shortens this one.
    pub(crate) fn held(&mut self, _machine: &Machine) -> Option<Held> {
        let usage = libproc::usage(self.id.pid)?;
        // After the reading: if it is itself now, it was itself then.
        if !self.is_alive() {
            return None;
        }
        let is_reset = libproc::reset_interval(self.id.pid);
        Some(Held {
            footprint: Bytes(usage.footprint),
            shared: Bytes::ZERO,
            peak: is_reset.then_some(Bytes(usage.interval_max)),
        })
    }

    /// What it holds, for one who must change nothing: a reset of the interval would take the peak
    /// from a guard that holds the same process.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "the same call as on Linux")]
    pub(crate) fn seen(&mut self, _machine: &Machine) -> Option<Held> {
        let usage = libproc::usage(self.id.pid)?;
        let held = Held { footprint: Bytes(usage.footprint), ..Held::default() };
        self.is_alive().then_some(held)
    }

    /// ESRCH if it is gone.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        let call = libproc::signal_with_token();
        let Some((unique, send)) = self.unique.zip(call) else {
            return self.compare_then_kill(signal);
        };
        for _ in 0..EXECS {
            let version = self.version_of(unique).ok_or_else(gone)?;
            match send_to(send, self.id.pid, version, signal) {
                0 => return Ok(()),
                // It exec'ed since, or ended: look again.
                libc::ESRCH => {}
                // Most likely a kernel without the call. If not, kill says the same.
                _ => break,
            }
        }
        self.compare_then_kill(signal)
    }

    /// Blocks until it is over. It looks now and then as well: a process that is already on its way
    /// out can still be found and tells no more.
    pub(crate) fn wait(&self) {
        let queue = Queue::for_one(self.id.pid as usize, libc::EVFILT_PROC, libc::NOTE_EXIT);
        // After the adding: it may have ended before, or the number may be another's by now.
        while self.is_alive() {
            match queue.as_ref().map(|queue| queue.wait(Some(LOOK_EVERY))) {
                Ok(Ok(Woken::ByEvent)) => return,
                Ok(Ok(Woken::ByNothing)) => {}
                Ok(Err(_)) | Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// The version it has now; None if it is gone.
    fn version_of(&self, unique: u64) -> Option<i32> {
        let now = libproc::unique_info(self.id.pid)?;
        (now.own == unique).then_some(now.version)
    }

    fn is_alive(&self) -> bool {
        match self.unique {
            Some(unique) => self.version_of(unique).is_some(),
            None => self.process().is_some_and(|process| process.id == self.id),
        }
    }

    /// Whoever has the number now, unless that is a zombie.
    fn process(&self) -> Option<Process> {
        let process = Machine::here().process(self.id.pid).ok()??;
        (!process.is_zombie).then_some(process)
    }

    fn compare_then_kill(&self, signal: i32) -> io::Result<()> {
        let process = self.process().filter(|process| process.id == self.id).ok_or_else(gone)?;
        let is_other = |unique| process.unique.is_some_and(|now| now.own != unique);
        if self.unique.is_some_and(is_other) {
            Err(gone())
        } else {
            unix::signal_one(self.id.pid, signal)
        }
    }
}

/// 0, or the number of the error.
#[expect(unsafe_code, reason = "libproc is a C interface")]
fn send_to(send: libproc::Send, pid: i32, version: i32, signal: i32) -> i32 {
    let mut token = audit_token_t { val: layouts::audit_token(pid, version) };
    // SAFETY: the call reads one audit token, which lives for it.
    let code = unsafe { send(&raw mut token, signal) };
    // libproc returns the error itself and sets errno as well; -1 is what the bare system call says.
    if code < 0 { io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) } else { code }
}

/// Made from a number, which allocates nothing.
fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn start(command: &mut Command) -> (Child, Grip) {
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let machine = Machine::here();
        let process = machine.process(child.id() as i32).unwrap().unwrap();
        (child, Grip::take(&machine, process.id).unwrap())
    }

    #[test]
    fn a_signal_reaches_the_process_and_its_end_is_noticed() {
        let (mut child, grip) = start(Command::new("sleep").arg("60"));
        grip.signal(libc::SIGTERM).unwrap();
        grip.wait();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(grip.signal(libc::SIGTERM).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        grip.wait();
    }

    #[test]
    fn an_exec_does_not_loosen_the_grip() {
        let mut command = Command::new("sh");
        let (mut child, grip) = start(command.args(["-c", "read x; exec sleep 60"]));
        drop(child.stdin.take());
        thread::sleep(Duration::from_millis(300));
        grip.signal(libc::SIGKILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn another_start_under_the_same_number_is_another_process() {
        let (mut child, grip) = start(Command::new("sleep").arg("60"));
        let machine = Machine::here();
        let other = ProcessId { start: grip.id().start + 1, ..grip.id() };
        assert!(Grip::take(&machine, other).is_none());
        let stale = Grip { id: grip.id(), unique: Some(1) };
        assert_eq!(stale.signal(libc::SIGKILL).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_peak_between_two_looks_is_seen() {
        let machine = Machine::here();
        let me = machine.process(std::process::id() as i32).unwrap().unwrap();
        let mut grip = Grip::take(&machine, me.id).unwrap();
        grip.held(&machine).unwrap();
        drop(std::hint::black_box(vec![1u8; 256 << 20]));
        let held = grip.held(&machine).unwrap();
        assert!(held.peak.unwrap() >= Bytes::mib(256), "{held:?}");
    }
}
