//! A hold on one process that a re-used number cannot move: a pidfd. Where none can be had (no file
//! handle left), the identity is compared and then the number is signalled, with a gap of
//! microseconds between the two.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use stageload_core::Bytes;

use super::Machine;
use crate::sys::{Held, ProcessId, unix};

/// How often to look for the end of a process that no pidfd tells of.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Grip {
    id: ProcessId,
    pidfd: Option<OwnedFd>,
    lifetime_peak: Option<Bytes>,
}

impl Grip {
    /// None if that process is not there any more.
    pub(crate) fn take(machine: &Machine, id: ProcessId) -> Option<Self> {
        let pidfd = if machine.is_here() { open(id.pid).ok() } else { None };
        // After the opening: if the number is its own now, the pidfd is its own too.
        let now = machine.process(id.pid).ok().flatten()?;
        (id.pid > 1 && now.id == id && !now.is_zombie).then_some(Self {
            id,
            pidfd,
            lifetime_peak: None,
        })
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// What it holds, with the most it held since the last call of this.
    pub(crate) fn held(&mut self, machine: &Machine) -> Option<Held> {
        let status = machine.status(self.id.pid)?;
        let held = status.since(self.lifetime_peak);
        self.lifetime_peak = status.lifetime_peak;
        Some(held)
    }

    /// The same, for one who must change nothing: the kernel keeps no state for readers.
    pub(crate) fn seen(&mut self, machine: &Machine) -> Option<Held> {
        self.held(machine)
    }

    /// ESRCH if it is gone.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        match &self.pidfd {
            Some(pidfd) => send(pidfd, signal),
            None if self.is_alive() => unix::signal_one(self.id.pid, signal),
            None => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    /// Blocks until it is over.
    pub(crate) fn wait(&self) {
        if self.pidfd.as_ref().is_some_and(|pidfd| wait_for_end(pidfd).is_ok()) {
            return;
        }
        while self.is_alive() {
            thread::sleep(LOOK_EVERY);
        }
    }

    fn is_alive(&self) -> bool {
        let now = Machine::here().process(self.id.pid).ok().flatten();
        now.is_some_and(|now| now.id == self.id && !now.is_zombie)
    }
}

#[expect(unsafe_code, reason = "std has no stable pidfd")]
fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two numbers; no flags are set.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed this descriptor out, close-on-exec, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[expect(unsafe_code, reason = "std has no stable pidfd")]
fn send(pidfd: &OwnedFd, signal: i32) -> io::Result<()> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    let fd = pidfd.as_raw_fd();
    // SAFETY: without a siginfo the call reads numbers only.
    match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[expect(unsafe_code, reason = "std has no poll")]
fn wait_for_end(pidfd: &OwnedFd) -> io::Result<()> {
    let mut one = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: `one` is a valid place for one pollfd.
        if unsafe { libc::poll(&raw mut one, 1, -1) } == 1 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;

    fn start() -> (Child, Grip) {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let machine = Machine::here();
        let process = machine.process(child.id() as i32).unwrap().unwrap();
        (child, Grip::take(&machine, process.id).unwrap())
    }

    #[test]
    fn a_signal_reaches_the_process_and_its_end_is_noticed() {
        let (mut child, grip) = start();
        grip.signal(libc::SIGTERM).unwrap();
        grip.wait();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(grip.signal(libc::SIGTERM).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        grip.wait();
    }

    #[test]
    fn without_a_pidfd_the_identity_is_compared_before_the_signal() {
        let (mut child, mut grip) = start();
        grip.pidfd = None;
        let stranger = ProcessId { start: grip.id.start + 1, ..grip.id };
        let wrong = Grip { id: stranger, pidfd: None, lifetime_peak: None };
        assert_eq!(wrong.signal(libc::SIGKILL).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(Grip::take(&Machine::here(), stranger).is_none());
        grip.signal(libc::SIGKILL).unwrap();
        grip.wait();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
