//! A kernel event queue that waits for one thing. Not here: what the thing means.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

/// What happened while `Queue::wait` waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    ByEvent,
    /// The time is up, or a signal came.
    ByNothing,
}

#[derive(Debug)]
pub(super) struct Queue(OwnedFd);

impl Queue {
    /// A queue on which `filter` tells what `flags` ask for about `subject`.
    #[expect(unsafe_code, reason = "std has no kqueue")]
    pub(super) fn for_one(subject: usize, filter: i16, flags: u32) -> io::Result<Self> {
        // SAFETY: kqueue takes nothing.
        let fd = unsafe { libc::kqueue() };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else has it. It closes itself on exec and is not
        // inherited by a fork.
        let queue = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        queue.add(subject, filter, flags)?;
        Ok(queue)
    }

    #[expect(unsafe_code, reason = "std has no kqueue")]
    fn add(&self, subject: usize, filter: i16, flags: u32) -> io::Result<()> {
        // SAFETY: all-zero is a valid kevent.
        let mut change: libc::kevent = unsafe { zeroed() };
        change.ident = subject;
        change.filter = filter;
        change.flags = libc::EV_ADD | libc::EV_CLEAR;
        change.fflags = flags;
        // SAFETY: one change is given, and room for no event, so that its error comes as this call's.
        let code = unsafe {
            libc::kevent(self.0.as_raw_fd(), &raw const change, 1, ptr::null_mut(), 0, ptr::null())
        };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Blocks until it happens or the time is up; for as long as it takes without a time.
    #[expect(unsafe_code, reason = "std has no kqueue")]
    pub(super) fn wait(&self, at_most: Option<Duration>) -> io::Result<Woken> {
        let time = at_most.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: all-zero is a valid kevent.
        let mut event: libc::kevent = unsafe { zeroed() };
        // SAFETY: no change is given, there is room for one event, and the time lives for the call.
        let count =
            unsafe { libc::kevent(self.0.as_raw_fd(), ptr::null(), 0, &raw mut event, 1, time) };
        let error = io::Error::last_os_error();
        match count {
            1.. => Ok(Woken::ByEvent),
            0 => Ok(Woken::ByNothing),
            _ if error.kind() == io::ErrorKind::Interrupted => Ok(Woken::ByNothing),
            _ => Err(error),
        }
    }
}
