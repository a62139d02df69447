//! Attempts: who runs one, and how it ended.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use stageload_core::Bytes;
use stageload_core::queue::{Ending, JobId, JobState};

use super::columns::{AnyPath, Json, read_size, size};
use super::jobs::JobRow;
use super::states::{stand, state_of};
use super::{Store, history, now};
use crate::{Error, ProcessId};

/// Who runs an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// Its process.
    pub process: ProcessId,
    /// Which start of the machine it belongs to.
    pub boot: String,
    /// What marks the job's processes.
    pub token: String,
    /// Where the attempt's files are.
    pub folder: PathBuf,
}

/// What one stage took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// Its name.
    pub stage: String,
    /// How long it took.
    pub seconds: f64,
    /// The most it held, where that was measured.
    pub peak: Option<Bytes>,
}

/// How an attempt ended, by its supervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The token that the supervisor began with: without it, the end of another attempt of the same
    /// number could be written here, from before the queue was damaged and made anew.
    pub token: String,
    /// How.
    pub ending: Ending,
    /// The most that it held, where that was measured.
    pub peak: Option<Bytes>,
    /// By how much swap grew meanwhile, at most.
    pub swap_peak: Option<Bytes>,
    /// Its stages in order.
    pub stages: Vec<StageTime>,
    /// Where the job stands after it.
    pub then: Then,
}

/// Where a job stands after an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Then {
    /// Where the ending says.
    #[default]
    ByEnding,
    /// Here; no attempt is active in it.
    At(JobState),
    /// Where it stands; the engine finds the ending and decides, for instance about a lower setting.
    AsItStands,
}

/// An attempt as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    /// Of which job.
    pub job: JobId,
    /// Counted from 1.
    pub number: u32,
    /// Who runs it; None if nobody has begun with it.
    pub supervisor: Option<Supervisor>,
    /// When the engine started its supervisor, in seconds since 1970.
    pub started_utc: f64,
    /// When the supervisor began, likewise.
    pub began_utc: Option<f64>,
    /// When it ended, likewise.
    pub ended_utc: Option<f64>,
    /// How it ended, if its supervisor has said so.
    pub ending: Option<Ending>,
    /// The most that it held.
    pub peak: Option<Bytes>,
    /// By how much swap grew, at most.
    pub swap_peak: Option<Bytes>,
    /// Its stages in order.
    pub stages: Vec<StageTime>,
}

impl AttemptRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let Json(stages) = row.get("stages")?;
        Ok(Self {
            job: JobId(row.get("job")?),
            number: row.get("number")?,
            supervisor: Supervisor::read(row)?,
            started_utc: row.get("started_utc")?,
            began_utc: row.get("began_utc")?,
            ended_utc: row.get("ended_utc")?,
            ending: row.get::<_, Option<Json<_>>>("ending")?.map(|Json(ending)| ending),
            peak: read_size(row, "peak")?,
            swap_peak: read_size(row, "swap_peak")?,
            stages,
        })
    }
}

impl Supervisor {
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let Some(pid) = row.get("pid")? else { return Ok(None) };
        let AnyPath(folder) = row.get("folder")?;
        let start = row.get::<_, i64>("start")?.cast_unsigned();
        let (boot, token) = (row.get("boot")?, row.get("token")?);
        Ok(Some(Self { process: ProcessId { pid, start }, boot, token, folder }))
    }
}

impl Store {
    /// A supervisor takes an attempt for its own: of all that try, one gets true. It may go on only
    /// then. Ok(false) also if the job has been stopped or put back in line meanwhile.
    pub fn begin(&mut self, id: JobId, attempt: u32, by: &Supervisor) -> Result<bool, Error> {
        self.write(|transaction| {
            let is_due = state_of(transaction, id)? == Some(JobState::Starting { attempt });
            if !is_due || is_begun(transaction, id, attempt)? {
                return Ok(false);
            }
            let sql = "UPDATE attempts
                SET boot = ?3, pid = ?4, start = ?5, token = ?6, folder = ?7, began_utc = ?8
                WHERE job = ?1 AND number = ?2";
            let ProcessId { pid, start } = by.process;
            let folder = AnyPath(by.folder.as_path());
            let start = start.cast_signed();
            let values = params![id.0, attempt, by.boot, pid, start, by.token, folder, now()];
            transaction.execute(sql, values)?;
            serve(transaction, id)?;
            Ok(true)
        })
    }

    /// A supervisor writes how its attempt ended. Ok(false) if the attempt is not the active one, is
    /// another's, or has ended already, and if the job would be active after it.
    pub fn finish(&mut self, id: JobId, attempt: u32, finish: &Finish) -> Result<bool, Error> {
        self.write(|transaction| {
            let state = state_of(transaction, id)?;
            let is_active = state.is_some_and(|state| state.attempt() == Some(attempt));
            let goes_on = matches!(&finish.then, Then::At(state) if state.is_active());
            if !is_active || goes_on || !end(transaction, id, attempt, finish)? {
                return Ok(false);
            }
            history::note(transaction, id, attempt, &finish.ending)?;
            match &finish.then {
                Then::ByEnding => stand(transaction, id, &finish.ending.state())?,
                Then::At(state) => stand(transaction, id, state)?,
                Then::AsItStands => {}
            }
            Ok(true)
        })
    }

    /// One attempt of a job.
    pub fn attempt(&self, id: JobId, number: u32) -> Result<Option<AttemptRow>, Error> {
        self.read(|connection| {
            let sql = "SELECT * FROM attempts WHERE job = ?1 AND number = ?2";
            connection.query_row(sql, params![id.0, number], AttemptRow::read).optional()
        })
    }

    /// All attempts of a job, the first first.
    pub fn attempts(&self, id: JobId) -> Result<Vec<AttemptRow>, Error> {
        self.read(|connection| {
            let sql = "SELECT * FROM attempts WHERE job = ?1 ORDER BY number";
            connection.prepare(sql)?.query_map([id.0], AttemptRow::read)?.collect()
        })
    }
}

/// The key is that of now: the job may be edited before the attempt is learned from.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    job: &JobRow,
    attempt: u32,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO attempts (job, number, key, started_utc) VALUES (?1, ?2, ?3, ?4)";
    transaction.execute(sql, params![job.id.0, attempt, job.spec.key, now()])?;
    Ok(())
}

pub(super) fn is_begun(connection: &Connection, id: JobId, attempt: u32) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM attempts WHERE job = ?1 AND number = ?2 AND pid IS NOT NULL";
    connection.prepare(sql)?.exists(params![id.0, attempt])
}

/// By a count and not by the clock, which may be set back.
fn serve(transaction: &Transaction<'_>, id: JobId) -> rusqlite::Result<()> {
    let sql = "INSERT INTO turns
        SELECT lane, owner, (SELECT coalesce(max(served), 0) + 1 FROM turns) FROM jobs WHERE id = ?1
        ON CONFLICT DO UPDATE SET served = excluded.served";
    transaction.execute(sql, [id.0])?;
    Ok(())
}

fn end(
    transaction: &Transaction<'_>,
    id: JobId,
    attempt: u32,
    finish: &Finish,
) -> rusqlite::Result<bool> {
    let sql = "UPDATE attempts
        SET ending = ?4, ended_utc = ?5, peak = ?6, swap_peak = ?7, stages = ?8
        WHERE job = ?1 AND number = ?2 AND token = ?3 AND ending IS NULL";
    let (ending, stages) = (Json(&finish.ending), Json(&finish.stages));
    let (peak, swap_peak) = (size(finish.peak), size(finish.swap_peak));
    let values = params![id.0, attempt, finish.token, ending, now(), peak, swap_peak, stages];
    Ok(transaction.execute(sql, values)? == 1)
}
