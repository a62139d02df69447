//! The order of the jobs in line: numbers with gaps between them, so that a job that is moved changes
//! no other's.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use stageload_core::queue::JobId;

use super::states::may_be_changed;
use super::{Store, jobs};
use crate::Error;

/// Twenty moves into the same gap before the numbers must be given anew.
const GAP: i64 = 1 << 20;

/// Where in line to move a job to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Directly before this one.
    Before(JobId),
    /// Directly after this one.
    After(JobId),
}

impl Store {
    /// Moves a job in line. Ok(false) if it is neither queued nor held, or if the other is over,
    /// unknown or the job itself.
    pub fn move_to(&mut self, id: JobId, spot: Spot) -> Result<bool, Error> {
        self.write(|transaction| {
            let job = jobs::row(transaction, id)?;
            if !job.is_some_and(|job| may_be_changed(&job.state)) {
                return Ok(false);
            }
            let position = match spot {
                Spot::First => Some(before_all(transaction)?),
                Spot::Last => Some(behind_all(transaction)?),
                Spot::Before(other) => beside(transaction, id, other, Side::Before)?,
                Spot::After(other) => beside(transaction, id, other, Side::After)?,
            };
            let Some(position) = position else { return Ok(false) };
            let sql = "UPDATE jobs SET position = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id.0, position])?;
            Ok(true)
        })
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// The position behind every other, also of those that are over.
pub(super) fn behind_all(connection: &Connection) -> rusqlite::Result<i64> {
    let last = "SELECT coalesce(max(position), 0) FROM jobs";
    Ok(connection.query_row(last, [], |row| row.get::<_, i64>(0))? + GAP)
}

fn before_all(connection: &Connection) -> rusqlite::Result<i64> {
    let first = "SELECT coalesce(min(position), 0) FROM jobs";
    Ok(connection.query_row(first, [], |row| row.get::<_, i64>(0))? - GAP)
}

/// A position for `job` next to `other`'s.
fn beside(
    transaction: &Transaction<'_>,
    job: JobId,
    other: JobId,
    side: Side,
) -> rusqlite::Result<Option<i64>> {
    if job == other {
        return Ok(None);
    }
    let sql = "SELECT position FROM jobs WHERE id = ?1 AND open = 1";
    let of_other = || transaction.query_row(sql, [other.0], |row| row.get(0)).optional();
    let Some(at) = of_other()? else { return Ok(None) };
    if let Some(free) = between(transaction, job, at, side)? {
        return Ok(Some(free));
    }
    spread(transaction)?;
    let Some(at) = of_other()? else { return Ok(None) };
    between(transaction, job, at, side)
}

/// The middle between `at` and its neighbour that is not `job`; None if nothing lies between them.
fn between(
    transaction: &Transaction<'_>,
    job: JobId,
    at: i64,
    side: Side,
) -> rusqlite::Result<Option<i64>> {
    let (sql, away) = match side {
        Side::Before => ("SELECT max(position) FROM jobs WHERE position < ?1 AND id <> ?2", -GAP),
        Side::After => ("SELECT min(position) FROM jobs WHERE position > ?1 AND id <> ?2", GAP),
    };
    let neighbour: Option<i64> =
        transaction.query_row(sql, params![at, job.0], |row| row.get(0))?;
    let middle = neighbour.map_or(at + away, |neighbour| at + (neighbour - at) / 2);
    Ok((middle != at).then_some(middle))
}

/// Gives all in line new numbers, in the same order, behind every number there is: so no two are the
/// same on the way.
fn spread(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let sql = "WITH line AS (
            SELECT id, row_number() OVER (ORDER BY position) AS place FROM jobs WHERE open = 1)
        UPDATE jobs SET position = ?1 + ?2 * (line.place - 1) FROM line WHERE jobs.id = line.id";
    transaction.execute(sql, params![behind_all(transaction)?, GAP])?;
    Ok(())
}
