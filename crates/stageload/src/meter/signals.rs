//! Which signals a job was sent: to whom, and who could not be reached.

use std::io;

use crate::job::Signalled;
use crate::notice::signal_name;
use crate::sys::ProcessId;

/// SIGTERM, SIGCONT and SIGKILL.
const KINDS: usize = 4;

/// What was sent to one process.
#[derive(Debug, Clone)]
struct Sent {
    id: ProcessId,
    signals: [i32; KINDS],
    is_refused: bool,
}

/// All that was sent. It has room before anything is sent, so that writing it down while a job is
/// being stopped takes no memory.
#[derive(Debug, Default)]
pub(super) struct Signals {
    sent: Vec<Sent>,
}

impl Signals {
    /// Makes room for this many processes more.
    pub(super) fn make_room(&mut self, members: usize) {
        self.sent.reserve(members);
    }

    /// Whether this process was sent this signal.
    pub(super) fn has(&self, id: ProcessId, signal: i32) -> bool {
        self.sent.iter().any(|sent| sent.id == id && sent.signals.contains(&signal))
    }

    pub(super) fn note(&mut self, id: ProcessId, signal: i32, result: &io::Result<()>) {
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
        // Gone before it got there.
        if errno == Some(libc::ESRCH) {
            return;
        }
        let known = self.sent.iter().position(|sent| sent.id == id);
        let at = known.unwrap_or_else(|| {
            self.sent.push(Sent { id, signals: [0; KINDS], is_refused: false });
            self.sent.len() - 1
        });
        let sent = &mut self.sent[at];
        sent.is_refused |= errno.is_some();
        if errno.is_none()
            && !sent.signals.contains(&signal)
            && let Some(free) = sent.signals.iter_mut().find(|signal| **signal == 0)
        {
            *free = signal;
        }
    }

    pub(super) fn list(&self, command: impl Fn(ProcessId) -> Option<String>) -> Vec<Signalled> {
        let names = |signals: [i32; KINDS]| {
            signals.into_iter().filter(|signal| *signal != 0).map(signal_name).collect()
        };
        let named = |sent: &Sent| Signalled {
            id: sent.id,
            command: command(sent.id),
            signals: names(sent.signals),
            refused: sent.is_refused,
        };
        self.sent.iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_told_once_and_whoever_was_gone_was_sent_nothing() {
        let mut signals = Signals::default();
        signals.make_room(3);
        let id = |pid| ProcessId { pid, start: 1 };
        let gone = Err(io::Error::from_raw_os_error(libc::ESRCH));
        let refused = Err(io::Error::from_raw_os_error(libc::EPERM));
        for signal in [libc::SIGTERM, libc::SIGCONT, libc::SIGKILL, libc::SIGKILL] {
            signals.note(id(7), signal, &Ok(()));
            signals.note(id(8), signal, &gone);
            signals.note(id(9), signal, &refused);
        }
        let list = signals.list(|id| Some(id.pid.to_string()));
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].signals, ["SIGTERM", "SIGCONT", "SIGKILL"]);
        assert_eq!((list[0].refused, list[1].refused), (false, true));
        assert!(list[1].signals.is_empty());
    }
}
