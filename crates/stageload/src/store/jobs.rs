//! Jobs come in, are read, and are cleared away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use stageload_core::queue::{Expected, Job, JobId, JobState, Turns};

use super::columns::{AnyPath, Json};
use super::{Fault, Store, history, now, order, pause_reason};
use crate::Error;
use crate::wire::Spec;

/// A job that somebody queues.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// What it runs.
    pub spec: Spec,
    /// Higher comes first.
    pub priority: i32,
    /// It starts only after these are done.
    pub after: Vec<JobId>,
    /// Why it waits for somebody's word before it comes in line, if it does.
    pub hold: Option<String>,
}

/// A job as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// Its number.
    pub id: JobId,
    /// What it runs.
    pub spec: Spec,
    /// Where it stands.
    pub state: JobState,
    /// Higher comes first.
    pub priority: i32,
    /// Lower comes first among jobs of the same owner and priority. No two have the same.
    pub position: i64,
    /// It starts only after these are done.
    pub after: Vec<JobId>,
    /// How many times it was started.
    pub attempts: u32,
    /// When it was queued, in seconds since 1970.
    pub added_utc: f64,
    /// When it came to stand where it stands, likewise.
    pub changed_utc: f64,
}

/// Which jobs to clear away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clear<'a> {
    /// These, if they are over or held.
    Jobs(&'a [JobId]),
    /// All that are over and wait for nobody's word.
    Finished,
}

/// A job that was cleared away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its number.
    pub id: JobId,
    /// The folders of its attempts, which are still there.
    pub folders: Vec<PathBuf>,
}

const COLUMNS: &str =
    "id, spec, state, priority, position, after, attempts, added_utc, changed_utc";

impl JobRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let Json(spec) = row.get("spec")?;
        let Json(state) = row.get("state")?;
        let Json(after) = row.get("after")?;
        Ok(Self {
            id: JobId(row.get("id")?),
            spec,
            state,
            priority: row.get("priority")?,
            position: row.get("position")?,
            after,
            attempts: row.get("attempts")?,
            added_utc: row.get("added_utc")?,
            changed_utc: row.get("changed_utc")?,
        })
    }

    /// What its turn depends on; `measured` is what it is expected to hold from experience.
    pub fn into_job(self, measured: Option<Expected>) -> Job {
        Job {
            id: self.id,
            priority: self.priority,
            position: self.position,
            after: self.after,
            room: self.spec.room,
            watches_busy: !self.spec.busy.is_empty(),
            expected: measured.or(self.spec.declared),
            attempts: self.attempts,
            lower: self.spec.lower,
            state: self.state,
            lane: self.spec.lane,
            owner: self.spec.owner,
        }
    }
}

impl Store {
    /// Queues a job, last in line. Fails if one that it comes after is not there.
    pub fn add(&mut self, job: &NewJob) -> Result<JobId, Error> {
        let state = match &job.hold {
            None => JobState::queued(),
            Some(why) => JobState::Held { why: why.clone() },
        };
        self.write(|transaction| {
            check_after(transaction, None, &job.after)?;
            let sql = "INSERT INTO jobs
                (spec, state, priority, position, after, added_utc, changed_utc)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)";
            let (spec, state, after) = (Json(&job.spec), Json(&state), Json(&job.after));
            let position = order::behind_all(transaction)?;
            let values = params![spec, state, job.priority, position, after, now()];
            transaction.execute(sql, values)?;
            Ok(JobId(transaction.last_insert_rowid()))
        })
    }

    /// The job with this number.
    pub fn job(&self, id: JobId) -> Result<Option<JobRow>, Error> {
        self.read(|connection| row(connection, id))
    }

    /// Every job that waits, runs or is held, in order.
    pub fn unfinished(&self) -> Result<Vec<JobRow>, Error> {
        self.read(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM jobs WHERE open = 1 ORDER BY position");
            connection.prepare(&sql)?.query_map([], JobRow::read)?.collect()
        })
    }

    /// The `n` jobs that came to their end last, the last first.
    pub fn finished(&self, n: usize) -> Result<Vec<JobRow>, Error> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM jobs WHERE open = 0 ORDER BY changed_utc DESC, id DESC LIMIT ?1"
            );
            let n = i64::try_from(n).unwrap_or(i64::MAX);
            connection.prepare(&sql)?.query_map([n], JobRow::read)?.collect()
        })
    }

    /// What an engine has to know: the jobs that are not over and those that they come after, who was
    /// served when, and why nothing is started, if so.
    pub fn load(&self) -> Result<(Vec<Job>, Turns, Option<String>), Error> {
        self.read(|connection| {
            let turns = turns(connection)?;
            Ok((jobs(connection)?, turns, pause_reason(connection)?))
        })
    }

    /// Removes jobs, with their attempts but not the attempts' folders. A job that one still waits
    /// for, or that is not over, stays.
    pub fn clear(&mut self, which: Clear<'_>) -> Result<Vec<Removed>, Error> {
        self.write(|transaction| {
            let mut ids = clearable(transaction)?;
            match which {
                Clear::Jobs(wanted) => ids.retain(|(id, _)| wanted.contains(id)),
                Clear::Finished => ids.retain(|(_, is_held)| !is_held),
            }
            let needed = needed(transaction)?;
            ids.retain(|(id, _)| !needed.contains(id));
            let removed = ids.into_iter().map(|(id, _)| remove(transaction, id));
            Ok(removed.collect::<rusqlite::Result<_>>()?)
        })
    }
}

pub(super) fn row(connection: &Connection, id: JobId) -> rusqlite::Result<Option<JobRow>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1");
    connection.query_row(&sql, [id.0], JobRow::read).optional()
}

/// Refuses jobs that are not there, and those that come after `job` themselves.
pub(super) fn check_after(
    transaction: &Transaction<'_>,
    job: Option<JobId>,
    after: &[JobId],
) -> Result<(), Fault> {
    for id in after {
        let sql = "SELECT 1 FROM jobs WHERE id = ?1";
        if !transaction.prepare(sql)?.exists([id.0])? {
            return Err(Fault::Refused(Error::NoJob { id: *id }));
        }
    }
    let Some(job) = job else { return Ok(()) };
    let sql = "WITH RECURSIVE before(id) AS (
        SELECT value FROM json_each(?1)
        UNION SELECT value FROM before JOIN jobs USING (id), json_each(jobs.after))
        SELECT 1 FROM before WHERE id = ?2";
    if transaction.prepare(sql)?.exists(params![Json(after), job.0])? {
        return Err(Fault::Refused(Error::AfterItself { id: job }));
    }
    Ok(())
}

fn jobs(connection: &Connection) -> rusqlite::Result<Vec<Job>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM jobs WHERE open = 1 AND name <> 'held' UNION ALL
        SELECT {COLUMNS} FROM jobs WHERE (open = 0 OR name = 'held') AND id IN (
            SELECT value FROM jobs AS waiting, json_each(waiting.after)
            WHERE waiting.open = 1 AND waiting.name <> 'held')"
    );
    let mut rows = connection.prepare(&sql)?;
    let rows = rows.query_map([], JobRow::read)?;
    let mut known = BTreeMap::new();
    rows.map(|row| {
        let row = row?;
        if !known.contains_key(&row.spec.key) {
            known.insert(row.spec.key.clone(), history::learned(connection, &row.spec.key)?);
        }
        let measured = known.get(&row.spec.key).and_then(|it| it.expected.clone());
        Ok(row.into_job(measured))
    })
    .collect()
}

fn turns(connection: &Connection) -> rusqlite::Result<Turns> {
    let mut turns = Turns::default();
    let mut rows = connection.prepare("SELECT lane, owner, served FROM turns")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (lane, owner): (String, String) = (row.get(0)?, row.get(1)?);
        turns.serve(&lane, &owner, row.get(2)?);
    }
    Ok(turns)
}

/// Those that are over, and whether they are held.
fn clearable(connection: &Connection) -> rusqlite::Result<Vec<(JobId, bool)>> {
    let sql = "SELECT id, 0 FROM jobs WHERE open = 0
        UNION ALL SELECT id, 1 FROM jobs WHERE open = 1 AND name = 'held' ORDER BY id";
    let read = |row: &Row<'_>| Ok((JobId(row.get(0)?), row.get(1)?));
    connection.prepare(sql)?.query_map([], read)?.collect()
}

/// Those that one comes after which may still run.
fn needed(connection: &Connection) -> rusqlite::Result<BTreeSet<JobId>> {
    let sql = "SELECT value FROM jobs, json_each(jobs.after) WHERE jobs.open = 1";
    connection.prepare(sql)?.query_map([], |row| Ok(JobId(row.get(0)?)))?.collect()
}

fn remove(transaction: &Transaction<'_>, id: JobId) -> rusqlite::Result<Removed> {
    let sql = "SELECT folder FROM attempts WHERE job = ?1 AND folder IS NOT NULL ORDER BY number";
    let read = |row: &Row<'_>| row.get(0).map(|AnyPath(path)| path);
    let folders = transaction.prepare(sql)?.query_map([id.0], read)?.collect::<Result<_, _>>()?;
    transaction.execute("DELETE FROM jobs WHERE id = ?1", [id.0])?;
    Ok(Removed { id, folders })
}
