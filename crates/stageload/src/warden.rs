//! The warden: a second process that waits for the guard to be killed. The guard tells it at the
//! start what it guards, and later who has joined; a pipe that closes without a good-bye means that
//! the guard is dead, and then the warden stops the job, or guards it on. It sleeps in a read all
//! that time.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stageload_core::{Baseline, Grace, Policy};

use crate::job::OnGuardDeath;
use crate::sys::{self, ProcessId};

/// The guard's last word.
const GOOD_BYE: &str = "\"good-bye\"";

/// How long the guard waits for its warden to take in what it will guard.
const BRIEFING: Duration = Duration::from_secs(5);

/// How long the guard waits for its warden to have heard that.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// All that is needed to guard a job that runs already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Brief {
    pub(crate) token: String,
    pub(crate) policy: Policy,
    pub(crate) grace: Grace,
    pub(crate) on_guard_death: OnGuardDeath,
    pub(crate) baseline: Baseline,
    pub(crate) events: PathBuf,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) reason: Option<PathBuf>,
    pub(crate) command: Vec<String>,
    /// When the run began, on the clock that stops in sleep.
    pub(crate) began: Duration,
    /// The trace's start record, which a guard that dies at once has not written.
    pub(crate) meta: Map<String, Value>,
}

/// What the warden learned before the guard died.
#[derive(Debug)]
pub(crate) struct Orphaned {
    pub(crate) brief: Brief,
    /// The leader first; nobody, if the guard died before it knew what it had started.
    pub(crate) members: Vec<ProcessId>,
}

/// The guard's end.
#[derive(Debug)]
pub(crate) struct Warden {
    child: Child,
    pipe: Option<ChildStdin>,
    told: BTreeSet<ProcessId>,
}

impl Warden {
    /// Starts it, before there is a job.
    pub(crate) fn start(command: &[OsString]) -> io::Result<Self> {
        let [program, words @ ..] = command else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::null());
        // What ends the guard's session must not end its warden.
        sys::lead_session(&mut command);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        if let Some(pipe) = &pipe {
            sys::set_nonblocking(pipe)?;
        }
        Ok(Self { child, pipe, told: BTreeSet::new() })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Tells it what will be to guard. A command line can be longer than a pipe is.
    pub(crate) fn brief(&mut self, brief: &Brief) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut line = serde_json::to_vec(brief)?;
        line.push(b'\n');
        let told = write_patiently(pipe, &line, sys::now() + BRIEFING);
        if told.is_err() {
            // Half a brief is none.
            self.pipe = None;
        }
        told
    }

    /// Tells it who belongs to the job, the leader first, each once: a child that hides may be found only by a guard
    /// that was there when it was born.
    pub(crate) fn tell(&mut self, members: impl Iterator<Item = ProcessId>) {
        for id in members {
            if !self.told.contains(&id) {
                self.told.insert(id);
                self.say(&id);
            }
        }
    }

    /// Whether it has died, which nobody would notice otherwise; told once.
    pub(crate) fn has_just_died(&mut self) -> bool {
        let has_died = self.pipe.is_some() && !matches!(self.child.try_wait(), Ok(None));
        if has_died {
            self.pipe = None;
        }
        has_died
    }

    /// A pipe that is full or closed is one that nobody reads any more. A line this short goes whole or
    /// not at all.
    fn say(&mut self, what: &impl Serialize) {
        let Some(pipe) = &mut self.pipe else { return };
        if let Ok(mut line) = serde_json::to_vec(what) {
            line.push(b'\n');
            pipe.write_all(&line).ok();
        }
    }
}

impl Drop for Warden {
    /// The guard ends in order; one that panics does not, and its job still needs somebody.
    fn drop(&mut self) {
        let Some(mut pipe) = self.pipe.take() else { return };
        if !std::thread::panicking() {
            writeln!(pipe, "{GOOD_BYE}").ok();
        }
        drop(pipe);
        let deadline = sys::now() + LAST_WORDS;
        while matches!(self.child.try_wait(), Ok(None)) && sys::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The pipe does not block; it is emptied while it is filled.
fn write_patiently(mut pipe: &ChildStdin, mut rest: &[u8], deadline: Duration) -> io::Result<()> {
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && sys::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The warden's end: what the guard left behind, or None if it needs no warden any more.
pub(crate) fn wait_for_death(guard: impl Read) -> Option<Orphaned> {
    let mut lines = BufReader::new(guard).lines().map_while(Result::ok);
    let brief = serde_json::from_str(&lines.next()?).ok()?;
    let mut members = Vec::new();
    for line in lines {
        if line == GOOD_BYE {
            return None;
        }
        members.extend(serde_json::from_str::<ProcessId>(&line));
    }
    Some(Orphaned { brief, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief() -> Brief {
        Brief {
            token: "token".into(),
            policy: Policy {
                limit: None,
                swap_budget: stageload_core::Bytes::gib(8),
                swap_limit: None,
                kill_free: stageload_core::Percent::default(),
                poll: Duration::from_secs(1),
            },
            grace: Grace::Auto,
            on_guard_death: OnGuardDeath::Stop,
            baseline: Baseline::default(),
            events: "/tmp/events".into(),
            trace: None,
            reason: None,
            command: vec!["true".into()],
            began: Duration::from_secs(7),
            meta: Map::new(),
        }
    }

    fn said(lines: &[String]) -> Option<Orphaned> {
        wait_for_death(lines.join("\n").as_bytes())
    }

    #[test]
    fn a_pipe_that_closes_without_a_good_bye_is_a_dead_guard() {
        let brief = serde_json::to_string(&brief()).unwrap();
        let member = serde_json::to_string(&ProcessId { pid: 101, start: 2 }).unwrap();
        let orphaned = said(&[brief.clone(), member.clone(), "{\"pid\":1".into()]).unwrap();
        assert_eq!(orphaned.members, [ProcessId { pid: 101, start: 2 }]);
        assert_eq!(orphaned.brief.began, Duration::from_secs(7));
        assert!(said(&[brief, member, GOOD_BYE.into()]).is_none());
    }

    #[test]
    fn a_guard_that_died_before_it_had_a_job_left_nothing_to_guard() {
        assert!(said(&[]).is_none());
        assert!(said(&["{\"leader\":".into()]).is_none());
    }
}
