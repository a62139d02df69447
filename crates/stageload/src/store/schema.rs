//! The tables, and how a database of an older version becomes one of this. A step that was once
//! released is never changed: what is new is a step at the end.

use rusqlite::{Connection, TransactionBehavior};

/// Each leads from the version that is its place in the list to the next one.
const STEPS: [&str; 1] = [VERSION_1];

/// The version that is written here.
pub(super) const VERSION: i64 = STEPS.len() as i64;

/// What can be told from a job's JSON is computed from it, so that it can never say something else.
/// `open` are the jobs that somebody or something still waits for. Positions are unique among all.
///
/// `runs` is what was measured of attempts that ended by themselves or by the guard. It outlives the
/// jobs: whoever clears the list does not want to measure everything anew. `turns` likewise.
const VERSION_1: &str = "
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    spec TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    after TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    added_utc REAL NOT NULL,
    changed_utc REAL NOT NULL,
    name TEXT NOT NULL AS (state ->> '$.state') STORED CHECK (name IN (
        'queued', 'starting', 'running', 'pausing', 'paused', 'stopping',
        'done', 'failed', 'stopped', 'killed', 'interrupted', 'held')),
    open INTEGER NOT NULL AS (
        name NOT IN ('done', 'failed', 'stopped', 'killed', 'interrupted')) STORED,
    lane TEXT NOT NULL AS (spec ->> '$.lane') VIRTUAL,
    owner TEXT NOT NULL AS (spec ->> '$.owner') VIRTUAL,
    key TEXT NOT NULL AS (spec ->> '$.key') VIRTUAL
) STRICT;
CREATE UNIQUE INDEX jobs_in_line ON jobs (position);
CREATE INDEX jobs_open ON jobs (position) WHERE open = 1;
CREATE INDEX jobs_over ON jobs (changed_utc) WHERE open = 0;

CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    started_utc REAL NOT NULL,
    boot TEXT,
    pid INTEGER,
    start INTEGER,
    token TEXT,
    folder ANY,
    began_utc REAL,
    ended_utc REAL,
    ending TEXT,
    peak INTEGER,
    swap_peak INTEGER,
    stages TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    ended_utc REAL NOT NULL,
    was_killed INTEGER NOT NULL,
    peak INTEGER,
    stages TEXT NOT NULL
) STRICT;
CREATE INDEX runs_of_key ON runs (key, id);

CREATE TABLE turns (
    lane TEXT NOT NULL,
    owner TEXT NOT NULL,
    served INTEGER NOT NULL,
    PRIMARY KEY (lane, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The version of what is in a database; 0 for an empty one.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes the steps that are missing, all or none.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? >= VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = usize::try_from(version(&transaction)?).unwrap_or_default();
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
