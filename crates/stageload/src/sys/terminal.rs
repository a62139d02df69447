//! The terminal's foreground. A guard that a shell started as a foreground job of its own hands the
//! terminal to its job, as a shell does: Ctrl-C, Ctrl-Z and password prompts then work as if the
//! guard were not there. In a pipeline or a script others need the terminal too, and the job gets a
//! session of its own instead.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::unix::suspend_self;

const STDIN: i32 = 0;
const STDOUT: i32 = 1;

/// A terminal that is the guard's to hand over.
#[derive(Debug)]
pub(crate) struct Terminal {
    own_group: i32,
    /// Whether SIGTTOU was ignored before the guard did.
    was_ignored: bool,
}

impl Terminal {
    /// The terminal, if the guard is a foreground job of its own with a shell above it.
    #[expect(unsafe_code, reason = "std knows no process groups")]
    pub(crate) fn to_hand_over() -> Option<Self> {
        // SAFETY: these take and return numbers.
        let (own, group, session, foreground) =
            unsafe { (libc::getpid(), libc::getpgrp(), libc::getsid(0), libc::tcgetpgrp(STDIN)) };
        let is_own_job = group == own && foreground == own && session != own;
        (is_own_job && !feeds_a_pipe()).then(|| Self { own_group: own, was_ignored: ignore_ttou() })
    }

    /// Makes the command the leader of its own group in the terminal's foreground.
    #[expect(unsafe_code, reason = "the foreground must be set between fork and exec")]
    pub(crate) fn lead_group(&self, command: &mut Command) {
        let was_ignored = self.was_ignored;
        // SAFETY: setpgid, getpid, tcsetpgrp and signal are async-signal-safe, and the closure touches no
        // memory of the parent.
        unsafe {
            command.pre_exec(move || {
                if libc::setpgid(0, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                // A terminal that went away meanwhile is no reason not to run.
                libc::tcsetpgrp(STDIN, libc::getpid());
                if !was_ignored {
                    libc::signal(libc::SIGTTOU, libc::SIG_DFL);
                }
                Ok(())
            });
        }
    }

    /// Takes the terminal back and stops the guard itself, so that the shell sees a stopped job.
    /// Returns when it is continued, with the terminal with `group` again if that is in the foreground.
    #[expect(unsafe_code, reason = "std knows no process groups")]
    pub(crate) fn suspend(&self, group: Option<i32>) {
        set_foreground(self.own_group);
        suspend_self();
        // SAFETY: tcgetpgrp takes and returns numbers.
        let is_in_front = unsafe { libc::tcgetpgrp(STDIN) == self.own_group };
        if let Some(group) = group.filter(|_| is_in_front) {
            set_foreground(group);
        }
    }
}

/// Whether this process has a terminal as its input that is somebody else's now: a job that reads from
/// it would take the keys of whoever has it, since it is in another session and nothing stops it.
#[expect(unsafe_code, reason = "std knows no process groups")]
pub(crate) fn is_in_background() -> bool {
    // SAFETY: these take and return numbers; tcgetpgrp is -1 where there is no terminal of this session.
    let (own, foreground) = unsafe { (libc::getpgrp(), libc::tcgetpgrp(STDIN)) };
    foreground >= 0 && foreground != own
}

impl Drop for Terminal {
    fn drop(&mut self) {
        set_foreground(self.own_group);
    }
}

/// In `stageload guard ... | less` the terminal is also for the one that reads.
#[expect(unsafe_code, reason = "std does not tell what standard output is")]
fn feeds_a_pipe() -> bool {
    // SAFETY: all-zero is a valid stat, and `status` is a valid place for one.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the same.
    let code = unsafe { libc::fstat(STDOUT, &raw mut status) };
    let kind = status.st_mode & libc::S_IFMT;
    code != 0 || kind == libc::S_IFIFO || kind == libc::S_IFSOCK
}

#[expect(unsafe_code, reason = "std knows no process groups")]
fn set_foreground(group: i32) {
    // SAFETY: tcsetpgrp takes numbers. It fails where the terminal is gone, and then nobody needs it.
    unsafe { libc::tcsetpgrp(STDIN, group) };
}

/// Whoever sets the foreground or writes from the background is stopped by SIGTTOU otherwise.
#[expect(unsafe_code, reason = "std does not handle signals")]
fn ignore_ttou() -> bool {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) == libc::SIG_IGN }
}
