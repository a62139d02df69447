//! The line of guards that wait for memory, and what those that have started are still going to
//! take. Each guard whose job has a `need` keeps a file in the user's state folder and holds a lock
//! on it, which the system frees when the guard ends in whatever way: a file that can be locked is
//! nobody's. Without that two jobs would pass the gate together, each into the same free memory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stageload_core::{Bytes, Crowd};

use crate::meter::Meter;
use crate::sys::{self, Machine, ProcessId};

/// Looks are taken and claims made by one guard at a time.
const GATE: &str = "gate.lock";
/// Several that look one after the other take no longer.
const A_TURN: Duration = Duration::from_millis(300);

/// What a guard says of itself in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Claim {
    pid: i32,
    /// On the clock that counts sleep, which all guards share.
    since: Duration,
    need: Bytes,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum State {
    /// It waits for something else as well, and nobody need wait behind it.
    Elsewhere,
    /// It waits for memory only.
    InLine,
    /// Its job may start now.
    Admitted,
    /// Its job runs.
    Started { leader: ProcessId, token: String },
}

/// A guard's place in the line.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    claim: Claim,
}

/// While it lives, no other guard passes the gate.
#[derive(Debug)]
pub(crate) struct Turn {
    _gate: File,
}

impl Place {
    /// Joins the line in the user's state folder.
    pub(crate) fn take(need: Bytes) -> io::Result<Self> {
        Self::take_in(&sys::state_folder()?.join("line"), need, std::process::id() as i32)
    }

    fn take_in(folder: &Path, need: Bytes, pid: i32) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let since = sys::moment().total;
        let path = folder.join(format!("{}-{pid}.json", since.as_nanos()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.lock()?;
        let claim = Claim { pid, since, need, state: State::Elsewhere };
        let mut place = Self { folder: folder.to_owned(), path, file, claim };
        place.write()?;
        Ok(place)
    }

    /// The moment in which nobody else looks or starts; None if somebody else has it and keeps it. One
    /// that stands still in its turn must not make this guard deaf to whoever wants to end it.
    pub(crate) fn turn(&self) -> io::Result<Option<Turn>> {
        let gate = File::options().create(true).append(true).open(self.folder.join(GATE))?;
        let deadline = sys::now() + A_TURN;
        loop {
            match gate.try_lock() {
                Ok(()) => return Ok(Some(Turn { _gate: gate })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if sys::now() >= deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// What the others take. Files that nobody holds any more are removed on the way.
    pub(crate) fn crowd(&self) -> Crowd {
        let mut crowd = Crowd::default();
        let mut first: Option<(Duration, i32)> = None;
        for claim in self.others() {
            match &claim.state {
                State::Elsewhere => {}
                State::InLine => {
                    let place = (claim.since, claim.pid);
                    if place < (self.claim.since, self.claim.pid) {
                        first = Some(first.map_or(place, |before| before.min(place)));
                    }
                }
                State::Admitted => crowd.reserved += claim.need,
                State::Started { leader, token } => {
                    crowd.reserved += claim.need.saturating_sub(held(*leader, token));
                }
            }
        }
        crowd.ahead = first.map(|(_, pid)| pid);
        crowd
    }

    /// Says whether memory is all that is still waited for.
    pub(crate) fn wait_in_line(&mut self, is_in_line: bool) {
        self.say(if is_in_line { State::InLine } else { State::Elsewhere });
    }

    /// Claims the memory, in this guard's turn.
    pub(crate) fn admit(&mut self) {
        self.say(State::Admitted);
    }

    /// Says whose growing footprint fills the claim from now on.
    pub(crate) fn started(&mut self, leader: ProcessId, token: &str) {
        self.say(State::Started { leader, token: token.to_owned() });
    }

    /// What cannot be said only makes others wait for less than they could know of.
    fn say(&mut self, state: State) {
        if self.claim.state != state {
            self.claim.state = state;
            self.write().ok();
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.claim)?;
        self.file.rewind()?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)
    }

    fn others(&self) -> Vec<Claim> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path()).filter(|path| {
            *path != self.path && path.extension().is_some_and(|extension| extension == "json")
        });
        paths.filter_map(|path| claim_in(&path)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// None for what nobody holds, and for what is only half written.
fn claim_in(path: &Path) -> Option<Claim> {
    // A pipe of that name would have this guard wait for a writer.
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        fs::remove_file(path).ok();
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn held(leader: ProcessId, token: &str) -> Bytes {
    let mut meter = Meter::new(Machine::here(), leader, token.to_owned(), false);
    meter.look(0.0, None).footprint.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path, gib: u64, pid: i32) -> Place {
        Place::take_in(folder, Bytes::gib(gib), pid).unwrap()
    }

    #[test]
    fn an_admitted_job_reserves_what_it_needs_until_its_guard_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = place(folder.path(), 20, 11);
        let second = place(folder.path(), 5, 12);
        assert_eq!(second.crowd(), Crowd::default(), "it only waits");
        first.admit();
        assert_eq!(second.crowd().reserved, Bytes::gib(20));
        drop(first);
        assert_eq!(second.crowd(), Crowd::default());
    }

    #[test]
    fn the_first_in_line_is_waited_for_and_one_that_waits_elsewhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = place(folder.path(), 20, 11);
        let mut second = place(folder.path(), 5, 12);
        second.wait_in_line(true);
        assert_eq!(second.crowd().ahead, None);
        first.wait_in_line(true);
        assert_eq!(second.crowd().ahead, Some(11));
        assert_eq!(first.crowd().ahead, None, "the later one");
        first.wait_in_line(false);
        assert_eq!(second.crowd().ahead, None);
    }

    #[test]
    fn a_file_that_a_killed_guard_left_is_removed_and_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut dead = place(folder.path(), 20, 11);
        dead.admit();
        let left = folder.path().join("0-99.json");
        fs::copy(&dead.path, &left).unwrap();
        drop(dead);
        assert_eq!(place(folder.path(), 5, 12).crowd(), Crowd::default());
        assert!(!left.exists());
    }

    #[test]
    fn what_a_started_job_holds_already_is_not_reserved_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = place(folder.path(), 1, 11);
        let machine = Machine::here();
        let own = machine.process(std::process::id() as i32).unwrap().unwrap();
        // Nobody's token and group: nothing is held, all is still to come.
        first.started(ProcessId { pid: i32::MAX, ..own.id }, "nobody");
        assert_eq!(place(folder.path(), 5, 12).crowd().reserved, Bytes::gib(1));
    }
}
