//! The only place that prints. A reader that went away (`stageload summary | head`) is no error.
//!
//! Standard error is written by a thread of its own: a paused terminal or a full pipe blocks
//! whoever writes to it, and a guard that is blocked guards nothing.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stageload::core::printable;
use stageload::utc_time;

use crate::failure::Failure;

/// Lines that wait for a terminal that does not take them; beyond that the oldest are dropped.
const MOST_WAITING: usize = 1024;
/// How long the end waits for a terminal that does not take what is left.
const LAST_WORDS: Duration = Duration::from_secs(1);

static QUEUE: Queue = Queue::new();

/// Text for whoever asked for it.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    // On a terminal both streams are one, and what came first comes first.
    drain();
    match stream(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(()),
    }
}

/// What `stream` could not write, for a person.
pub(crate) fn unwritable(error: &io::Error) -> Failure {
    Failure::cannot_write(format!("cannot write to the standard output: {error}"))
}

/// One text of many for whoever asked for them. Where the reader went away there is no more to do, so
/// that is told.
pub(crate) fn stream(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Bytes of a job for whoever asked for them.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(()),
    }
}

/// A log line, stamped.
pub(crate) fn log(line: &str) {
    // Command lines of others get in here too.
    let line: String = printable(line).collect();
    send(Text::Line(format!("{} {line}\n", utc_time())));
}

/// Why the command failed.
pub(crate) fn error(text: &str) {
    send(Text::Line(format!("stageload: {text}\n")));
}

/// Replaces the live line.
pub(crate) fn live(text: &str) {
    send(Text::Live(format!("\r\x1b[2K{text}")));
}

/// Whether a live line can be seen.
pub(crate) fn has_live_line() -> bool {
    io::stderr().is_terminal()
}

/// Waits, but not for ever, until everything said is written.
pub(crate) fn drain() {
    QUEUE.wait_until_idle(LAST_WORDS);
}

fn send(text: Text) {
    static HAS_THREAD: OnceLock<bool> = OnceLock::new();
    let thread = || std::thread::Builder::new().name("stageload-stderr".into()).spawn(print);
    if *HAS_THREAD.get_or_init(|| thread().is_ok()) {
        QUEUE.push(text);
    } else {
        write(&text);
    }
}

fn print() {
    loop {
        write(&QUEUE.next());
    }
}

fn write(text: &Text) {
    let (Text::Line(text) | Text::Live(text)) = text;
    io::stderr().lock().write_all(text.as_bytes()).ok();
}

#[derive(Debug, PartialEq, Eq)]
enum Text {
    Line(String),
    /// Only the newest one matters.
    Live(String),
}

/// What is to be printed. Putting something in never blocks.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Text>,
    /// The thread has taken a text and not come back for the next.
    is_writing: bool,
}

impl Queue {
    const fn new() -> Self {
        let state = State { waiting: VecDeque::new(), is_writing: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn push(&self, text: Text) {
        let mut state = self.lock();
        let is_newer =
            matches!((state.waiting.back(), &text), (Some(Text::Live(_)), Text::Live(_)));
        if is_newer {
            state.waiting.pop_back();
        } else if state.waiting.len() >= MOST_WAITING {
            state.waiting.pop_front();
        }
        state.waiting.push_back(text);
        self.changed.notify_all();
    }

    fn next(&self) -> Text {
        let mut state = self.lock();
        loop {
            if let Some(text) = state.waiting.pop_front() {
                state.is_writing = true;
                return text;
            }
            state.is_writing = false;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_until_idle(&self, time: Duration) {
        let is_busy = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        drop(self.changed.wait_timeout_while(self.lock(), time, is_busy));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_takes_nothing_costs_old_lines_and_never_a_wait() {
        let queue = Queue::new();
        for i in 0..MOST_WAITING + 10 {
            queue.push(Text::Live("40%".into()));
            queue.push(Text::Live("50%".into()));
            queue.push(Text::Line(i.to_string()));
        }
        let waiting = queue.lock().waiting.len();
        assert_eq!(waiting, MOST_WAITING);
        let first = queue.next();
        assert!(first == Text::Live("50%".into()) || matches!(first, Text::Line(_)));
        let last = queue.lock().waiting.pop_back();
        assert_eq!(last, Some(Text::Line((MOST_WAITING + 9).to_string())));
        queue.wait_until_idle(Duration::from_millis(10));
    }
}
