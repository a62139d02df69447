//! Where a job stands, and every step from there. Each is taken only from where it may be taken.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use stageload_core::queue::{JobId, JobState};

use super::columns::Json;
use super::jobs;
use super::{Fault, Store, attempts, now, order};
use crate::Error;
use crate::wire::Spec;

impl Store {
    /// The engine begins an attempt: queued → starting. Ok(false) if the job is not queued any more, or
    /// if `attempt` is not the one after its last.
    pub fn start(&mut self, id: JobId, attempt: u32) -> Result<bool, Error> {
        self.write(|transaction| {
            let Some(job) = jobs::row(transaction, id)? else { return Ok(false) };
            if !job.state.is_queued() || Some(attempt) != job.attempts.checked_add(1) {
                return Ok(false);
            }
            stand(transaction, id, &JobState::Starting { attempt })?;
            let sql = "UPDATE jobs SET attempts = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id.0, attempt])?;
            attempts::insert(transaction, &job, attempt)?;
            Ok(true)
        })
    }

    /// Its program runs: starting → running, by the supervisor that has begun with it. Ok(false) also if
    /// somebody wants it stopped by now: the supervisor stops it then.
    pub fn run(&mut self, id: JobId, attempt: u32) -> Result<bool, Error> {
        self.write(|transaction| {
            let is_begun = attempts::is_begun(transaction, id, attempt)?;
            step(transaction, id, |state| {
                let may = is_begun && *state == JobState::Starting { attempt };
                may.then_some(JobState::Running { attempt })
            })
        })
    }

    /// Somebody wants it to pause at the next stage: running → pausing.
    pub fn pausing(&mut self, id: JobId) -> Result<bool, Error> {
        self.step(id, |state| match *state {
            JobState::Running { attempt } => Some(JobState::Pausing { attempt }),
            _ => None,
        })
    }

    /// It stands still between two stages: pausing → paused, by its supervisor.
    pub fn paused(&mut self, id: JobId, attempt: u32) -> Result<bool, Error> {
        self.step(id, |state| {
            let may = *state == JobState::Pausing { attempt };
            may.then_some(JobState::Paused { attempt })
        })
    }

    /// It goes on, or does not pause after all: paused or pausing → running.
    pub fn resumed(&mut self, id: JobId) -> Result<bool, Error> {
        self.step(id, |state| match *state {
            JobState::Pausing { attempt } | JobState::Paused { attempt } => {
                Some(JobState::Running { attempt })
            }
            _ => None,
        })
    }

    /// Somebody wants it stopped. What is queued or held, or has no supervisor yet, is stopped with
    /// that: none can begin any more. What has one is stopping, and the supervisor must be told.
    /// Returns where the job stands now; None if it is over already or unknown.
    pub fn stop(&mut self, id: JobId) -> Result<Option<JobState>, Error> {
        self.write(|transaction| {
            let Some(state) = state_of(transaction, id)? else { return Ok(None) };
            let next = match state {
                JobState::Queued { .. } | JobState::Held { .. } => JobState::Stopped,
                JobState::Stopping { .. } => return Ok(Some(state)),
                _ => match state.attempt() {
                    None => return Ok(None),
                    Some(attempt) if attempts::is_begun(transaction, id, attempt)? => {
                        JobState::Stopping { attempt }
                    }
                    Some(_) => JobState::Stopped,
                },
            };
            stand(transaction, id, &next)?;
            Ok(Some(next))
        })
    }

    /// Takes it from the queue: queued or held → stopped, and nothing that has been started.
    pub fn stop_queued(&mut self, id: JobId) -> Result<bool, Error> {
        self.step(id, |state| may_be_changed(state).then_some(JobState::Stopped))
    }

    /// Writes down where a job stands after `attempt`, or after it has waited. Ok(false) if that is not
    /// its active attempt, or if it does not wait; and for a `state` in which an attempt is active.
    pub fn settle(
        &mut self,
        id: JobId,
        attempt: Option<u32>,
        state: &JobState,
    ) -> Result<bool, Error> {
        self.step(id, |stands| {
            let may = !state.is_active() && stands_at(stands, attempt);
            may.then(|| state.clone())
        })
    }

    /// Writes down what a waiting job waits for. A power cut may undo it: it is said again, and not
    /// worth a write to the disk each second.
    pub fn tell(&mut self, id: JobId, waits_for: &[String]) -> Result<bool, Error> {
        self.set_durable(false)?;
        let told = self.write(|transaction| {
            let sql = "UPDATE jobs SET state = ?2 WHERE id = ?1 AND name = 'queued'";
            let state = JobState::Queued { waits_for: waits_for.to_vec() };
            Ok(transaction.execute(sql, params![id.0, Json(&state)])? == 1)
        });
        self.set_durable(true)?;
        told
    }

    /// Puts a job that is over or held in line again, last. It keeps the count of its attempts, and
    /// comes no more after jobs that have been cleared away.
    pub fn retry(&mut self, id: JobId) -> Result<bool, Error> {
        self.write(|transaction| {
            let may = state_of(transaction, id)?.is_some_and(|state| state.is_over());
            if may {
                stand(transaction, id, &JobState::queued())?;
                let sql = "UPDATE jobs SET position = ?2, after = (
                    SELECT json_group_array(value) FROM json_each(jobs.after)
                    WHERE value IN (SELECT id FROM jobs)) WHERE id = ?1";
                transaction.execute(sql, params![id.0, order::behind_all(transaction)?])?;
            }
            Ok(may)
        })
    }

    /// Changes what a queued or held job is. Fails if it would come after itself or after a job that is
    /// not there.
    pub fn edit(
        &mut self,
        id: JobId,
        spec: &Spec,
        priority: i32,
        after: &[JobId],
    ) -> Result<bool, Error> {
        self.write(|transaction| {
            let state = state_of(transaction, id)?;
            if !state.is_some_and(|state| may_be_changed(&state)) {
                return Ok(false);
            }
            jobs::check_after(transaction, Some(id), after)?;
            let sql = "UPDATE jobs SET spec = ?2, priority = ?3, after = ?4 WHERE id = ?1";
            transaction.execute(sql, params![id.0, Json(spec), priority, Json(after)])?;
            Ok(true)
        })
    }

    /// Puts a job back in line, where it was, with the setting that is to be tried after `attempt`.
    pub fn lower(&mut self, id: JobId, attempt: u32, spec: &Spec) -> Result<bool, Error> {
        self.write(|transaction| {
            let lowered = step(transaction, id, |state| {
                (state.attempt() == Some(attempt)).then(JobState::queued)
            })?;
            if lowered {
                let sql = "UPDATE jobs SET spec = ?2 WHERE id = ?1";
                transaction.execute(sql, params![id.0, Json(spec)])?;
            }
            Ok(lowered)
        })
    }

    fn step(
        &mut self,
        id: JobId,
        next: impl FnOnce(&JobState) -> Option<JobState>,
    ) -> Result<bool, Error> {
        self.write(|transaction| step(transaction, id, next))
    }

    fn set_durable(&self, is_durable: bool) -> Result<(), Error> {
        let mode = if is_durable { "FULL" } else { "NORMAL" };
        let set = self.connection.pragma_update(None, "synchronous", mode);
        set.map_err(|error| self.failed(error))
    }
}

/// Whether nothing has been started that a change would come too late for.
pub(super) fn may_be_changed(state: &JobState) -> bool {
    matches!(state, JobState::Queued { .. } | JobState::Held { .. })
}

fn stands_at(state: &JobState, attempt: Option<u32>) -> bool {
    match attempt {
        None => state.is_queued(),
        attempt => state.attempt() == attempt,
    }
}

/// Takes a step, if there is one from where the job stands.
pub(super) fn step(
    transaction: &Transaction<'_>,
    id: JobId,
    next: impl FnOnce(&JobState) -> Option<JobState>,
) -> Result<bool, Fault> {
    let next = state_of(transaction, id)?.and_then(|state| next(&state));
    if let Some(next) = &next {
        stand(transaction, id, next)?;
    }
    Ok(next.is_some())
}

pub(super) fn state_of(connection: &Connection, id: JobId) -> rusqlite::Result<Option<JobState>> {
    let sql = "SELECT state FROM jobs WHERE id = ?1";
    let read = |row: &rusqlite::Row<'_>| row.get(0).map(|Json(state)| state);
    connection.query_row(sql, [id.0], read).optional()
}

pub(super) fn stand(
    transaction: &Transaction<'_>,
    id: JobId,
    state: &JobState,
) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET state = ?2, changed_utc = ?3 WHERE id = ?1";
    transaction.execute(sql, params![id.0, Json(state), now()])?;
    Ok(())
}
