//! Whether an attempt that the queue believes to be active is. Nobody is called dead who holds the
//! attempt's lock or carries its mark; nobody is called done who has not said how it ended.

use std::fs;
use std::path::Path;
use std::time::Duration;

use stageload_core::queue::{Ending, Life};

use super::last_seen::last_words;
use super::place::{AttemptFiles, host_lock, is_held};
use crate::store::{AttemptRow, Store, Supervisor};
use crate::sys::{self, Machine};
use crate::{Error, wire::Spec};

/// From the start of a supervisor to its first step. One that comes later finds that its attempt is not
/// its own any more, and does nothing.
const BEGINNING: Duration = Duration::from_secs(5);

/// What became of an attempt. `since` is for how long the caller has known that it was started.
pub(super) fn life_of(
    home: &Path,
    store: &Store,
    spec: &Spec,
    row: &AttemptRow,
    since: Duration,
) -> Result<Life, Error> {
    let files = AttemptFiles::of(home, row.job, row.number);
    if is_held(&files.lock()) {
        return Ok(Life::Alive);
    }
    // It may have ended between the two looks, but never begun after the second.
    let Some(row) = store.attempt(row.job, row.number)? else { return Ok(Life::NeverBegan) };
    let Some(supervisor) = &row.supervisor else {
        let is_coming = if spec.in_terminal { is_held(&host_lock(home, row.job)) } else { true };
        let is_due = since < BEGINNING && is_coming;
        return Ok(if is_due { Life::Alive } else { Life::NeverBegan });
    };
    if let Some(ending) = row.ending.clone().or_else(|| ending_beside(&files)) {
        return Ok(Life::Over(ending));
    }
    let rebooted = sys::boot_id().is_some_and(|boot| boot != supervisor.boot);
    if !rebooted && is_anybody_left(supervisor) {
        return Ok(Life::Alive);
    }
    // The lock may have been taken between the two questions.
    if is_held(&files.lock()) {
        return Ok(Life::Alive);
    }
    Ok(Life::Vanished { rebooted, last: last_words(&files.trace()) })
}

/// What a supervisor wrote that could not write into the queue.
fn ending_beside(files: &AttemptFiles) -> Option<Ending> {
    serde_json::from_slice(&fs::read(files.ending()).ok()?).ok()
}

/// A job may have closed all its files and outlived its supervisor.
fn is_anybody_left(supervisor: &Supervisor) -> bool {
    let machine = Machine::here();
    machine.pids().into_iter().any(|pid| machine.is_marked(pid, &supervisor.token))
}
