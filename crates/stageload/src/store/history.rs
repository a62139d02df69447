//! What is learned from attempts that ended: how much the next of the same key will hold, and how long
//! its stages will take.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction, params};
use stageload_core::Bytes;
use stageload_core::queue::{Ending, Expected, JobId};

use super::Store;
use super::attempts::StageTime;
use super::columns::{Json, read_size};
use crate::Error;

/// How many of a key's last attempts count: what ran before them, ran on another version or with
/// another driver.
const LAST: usize = 5;

/// How many are kept of a key.
const KEPT: usize = 50;

/// From how many on times are told: one may have been the exception.
const ENOUGH: usize = 2;

/// What was measured of an attempt that was done, or stopped by the guard.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// When it ended, in seconds since 1970.
    pub ended_utc: f64,
    /// The guard stopped it: its peak is the least that it needs, and its times say nothing.
    pub was_killed: bool,
    /// The most that it held.
    pub peak: Option<Bytes>,
    /// Its stages in order.
    pub stages: Vec<StageTime>,
}

/// What is expected from experience.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    /// The peak, from one attempt on.
    pub expected: Option<Expected>,
    /// Seconds for each stage, in the order of the last run; from two runs on.
    pub times: Vec<(String, f64)>,
}

/// What these runs, the newest first, teach. The peak is the most of the last five; the times are
/// the medians of those of them that were done.
pub fn learn(runs: &[Run]) -> Learned {
    let runs = &runs[..runs.len().min(LAST)];
    let highest = runs.iter().filter(|run| run.peak.is_some()).max_by_key(|run| run.peak);
    let expected = highest.and_then(|run| {
        let peak = run.peak?;
        let stage = run.stages.iter().filter(|stage| stage.peak.is_some());
        let stage = stage.max_by_key(|stage| stage.peak).map(|stage| stage.stage.clone());
        Some(Expected { peak, stage })
    });
    Learned { expected, times: times(runs) }
}

fn times(runs: &[Run]) -> Vec<(String, f64)> {
    let mut seconds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let done: Vec<&Run> = runs.iter().filter(|run| !run.was_killed).collect();
    for run in &done {
        for (stage, took) in of_each_stage(run) {
            seconds.entry(stage).or_default().push(took);
        }
    }
    let order = done.first().map(|run| of_each_stage(run)).unwrap_or_default();
    let time = |(stage, _): &(&str, f64)| {
        let all = seconds.remove(*stage).filter(|all| all.len() >= ENOUGH)?;
        Some(((*stage).to_owned(), median(all)))
    };
    order.iter().filter_map(time).collect()
}

/// A stage that comes again and again is one, with all its time.
fn of_each_stage(run: &Run) -> Vec<(&str, f64)> {
    let mut each: Vec<(&str, f64)> = Vec::new();
    for stage in &run.stages {
        match each.iter_mut().find(|(name, _)| *name == stage.stage) {
            Some((_, seconds)) => *seconds += stage.seconds,
            None => each.push((&stage.stage, stage.seconds)),
        }
    }
    each
}

/// Of at least one.
fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    if all.len() % 2 == 1 { all[middle] } else { f64::midpoint(all[middle - 1], all[middle]) }
}

impl Store {
    /// The last `n` attempts of this key that were done or stopped by the guard, the newest first.
    /// They are kept when their jobs are cleared away.
    pub fn history(&self, key: &str, n: usize) -> Result<Vec<Run>, Error> {
        self.read(|connection| runs(connection, key, n))
    }

    /// What they teach.
    pub fn learned(&self, key: &str) -> Result<Learned, Error> {
        self.read(|connection| learned(connection, key))
    }
}

pub(super) fn learned(connection: &Connection, key: &str) -> rusqlite::Result<Learned> {
    Ok(learn(&runs(connection, key, LAST)?))
}

fn runs(connection: &Connection, key: &str, n: usize) -> rusqlite::Result<Vec<Run>> {
    let sql = "SELECT * FROM runs WHERE key = ?1 ORDER BY id DESC LIMIT ?2";
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        let Json(stages) = row.get("stages")?;
        Ok(Run {
            ended_utc: row.get("ended_utc")?,
            was_killed: row.get("was_killed")?,
            peak: read_size(row, "peak")?,
            stages,
        })
    };
    connection.prepare(sql)?.query_map(params![key, n], read)?.collect()
}

/// Takes in an attempt that has just ended, if it teaches anything.
pub(super) fn note(
    transaction: &Transaction<'_>,
    id: JobId,
    attempt: u32,
    ending: &Ending,
) -> rusqlite::Result<()> {
    let was_killed = match ending {
        Ending::Exited { code: 0, .. } => false,
        Ending::Killed { .. } => true,
        _ => return Ok(()),
    };
    let sql = "INSERT INTO runs (key, ended_utc, was_killed, peak, stages)
        SELECT key, ended_utc, ?3, peak, stages FROM attempts WHERE job = ?1 AND number = ?2";
    transaction.execute(sql, params![id.0, attempt, was_killed])?;
    let sql = "DELETE FROM runs WHERE id <= (SELECT id FROM runs
        WHERE key = (SELECT key FROM attempts WHERE job = ?1 AND number = ?2)
        ORDER BY id DESC LIMIT 1 OFFSET ?3)
        AND key = (SELECT key FROM attempts WHERE job = ?1 AND number = ?2)";
    transaction.execute(sql, params![id.0, attempt, KEPT as i64])?;
    Ok(())
}
