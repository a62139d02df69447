//! A job that runs in the terminal of whoever queued it: the wait for its turn. Its engine drops it from
//! the queue when its host is gone.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use stageload_core::queue::{JobId, JobState};

use super::place::{hold, host_lock};
use crate::store::Store;
use crate::wake::{Wake, Wakes};
use crate::{Error, sys};

/// Between two looks at the queue.
const TURN: Duration = Duration::from_millis(100);
/// Whoever asks whether the host is there holds its lock for an instant.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the wait came to.
#[derive(Debug)]
pub enum Turn {
    /// It is time for this attempt.
    Now {
        /// Which.
        attempt: u32,
        /// Keep it until the job is over.
        place: HostPlace,
    },
    /// It will not be: this is where the job stands now.
    Never(JobState),
    /// A signal ended the wait, and the job is out of the queue.
    Signaled(i32),
}

/// As long as it lives, the job keeps its place in the queue.
#[derive(Debug)]
pub struct HostPlace {
    _lock: File,
}

impl HostPlace {
    /// For a job that was just queued.
    pub fn take(home: &Path, id: JobId) -> Result<Self, Error> {
        let path = host_lock(home, id);
        let held =
            hold(&path, PATIENCE).map_err(|source| Error::unwritable("lock", &path, source))?;
        Ok(Self { _lock: held.ok_or(Error::NoJob { id })? })
    }

    /// Waits until it is the job's turn; `tell` hears what it waits for, once per change.
    pub fn wait_for_turn(
        self,
        store: &mut Store,
        id: JobId,
        tell: &mut dyn FnMut(&[String]),
    ) -> Result<Turn, Error> {
        let wakes = Wakes::listen()?;
        let mut told = None;
        loop {
            let state = store.job(id)?.ok_or(Error::NoJob { id })?.state;
            match state {
                JobState::Starting { attempt } => return Ok(Turn::Now { attempt, place: self }),
                JobState::Queued { waits_for } => {
                    let news = without_numbers(&waits_for);
                    if told.as_ref() != Some(&news) {
                        tell(&waits_for);
                        told = Some(news);
                    }
                }
                state if state.is_over() => return Ok(Turn::Never(state)),
                _ => {}
            }
            match wakes.wait(TURN) {
                Some(Wake::Signal(signal)) => {
                    store.stop(id)?;
                    return Ok(Turn::Signaled(signal));
                }
                Some(Wake::CtrlZ) => sys::suspend_self(),
                _ => {}
            }
        }
    }
}

/// A level that moves by a percent is no news.
fn without_numbers(words: &[String]) -> Vec<String> {
    let strip = |word: &String| word.chars().filter(|c| !c.is_ascii_digit()).collect();
    words.iter().map(strip).collect()
}
