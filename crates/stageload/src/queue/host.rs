//! A job that runs in the terminal of whoever queued it: the wait for its turn. Its engine drops it from
//! the queue when its host is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use stageload_core::queue::{JobId, JobState};

use super::place::{hold, host_lock, is_held};
use crate::store::{JobRow, Store};
use crate::wake::{Wake, Wakes};
use crate::{Error, sys};

/// Between two looks at the queue.
const TURN: Duration = Duration::from_millis(100);
/// Whoever asks whether the host is there holds its lock for an instant.
const PATIENCE: Duration = Duration::from_secs(1);

/// From a job's place in the queue to its host's lock, on a machine that is short of everything.
const HOST_COMES: Duration = Duration::from_secs(2);

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

/// Whether whoever a job runs with is there: anybody, for a job that runs behind the scenes.
pub(super) fn has_host(home: &Path, row: &JobRow) -> bool {
    !row.spec.in_terminal || is_held(&host_lock(home, row.id))
}

/// Since when jobs wait whose host is not there.
#[derive(Debug, Default)]
pub(super) struct Hostless(BTreeMap<JobId, Duration>);

impl Hostless {
    /// Those whose host does not come any more: it is in the queue first and has its lock then.
    pub(super) fn find<'a>(
        &mut self,
        home: &Path,
        rows: impl Iterator<Item = &'a JobRow>,
        now: Duration,
    ) -> Vec<JobId> {
        let without = rows.filter(|row| row.state.is_queued() && !has_host(home, row));
        let without: BTreeSet<JobId> = without.map(|row| row.id).collect();
        self.0.retain(|job, _| without.contains(job));
        for job in without {
            self.0.entry(job).or_insert(now);
        }
        let is_late = |since: &Duration| now.saturating_sub(*since) >= HOST_COMES;
        self.0.iter().filter(|(_, since)| is_late(since)).map(|(job, _)| *job).collect()
    }
}

/// A level that moves by a percent is no news.
fn without_numbers(words: &[String]) -> Vec<String> {
    let strip = |word: &String| word.chars().filter(|c| !c.is_ascii_digit()).collect();
    words.iter().map(strip).collect()
}
