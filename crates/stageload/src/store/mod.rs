//! The queue on disk: one `SQLite` database that the app, the command line, the engine and the
//! supervisors all read and write, and beside which there is no other truth.
//!
//! Every call is one transaction. Calls that change where a job stands do so only if it stands where
//! the caller believes, and say whether they did: of several that race for a step, one gets it.
//!
//! Nobody opens the files by other means while a [`Store`] is open in the same process, not even to copy
//! them: closing one would free the locks of all, for such locks belong to the process.
//!
//! The tables: `schema`. What becomes of a damaged file: `damage`. Adding, reading and clearing jobs:
//! `jobs`; their order: `order`; where they stand: `states`. Who runs an attempt and how it ended:
//! `attempts`. What is learned from the ends: `history`.

mod attempts;
mod columns;
mod damage;
mod history;
mod jobs;
mod order;
mod schema;
mod states;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

pub use attempts::{AttemptRow, Finish, StageTime, Supervisor, Then};
pub use history::{Learned, Run, learn};
pub use jobs::{Clear, JobRow, NewJob, Removed};
pub use order::Spot;

use crate::Error;
use crate::utc::utc_seconds;
use damage::{Moved, Place, Presence};

/// How long a call waits for others who write.
const PATIENCE: Duration = Duration::from_secs(5);

/// An open queue.
#[derive(Debug)]
pub struct Store {
    // Before `presence`, so that it is closed when nobody seems to be there any more.
    connection: Connection,
    place: Place,
    _presence: Presence,
}

/// What [`Store::open`] gives.
#[derive(Debug)]
pub struct Opened {
    /// The queue.
    pub store: Store,
    /// Where the damaged file is that was found in its place. Tell the user: what was in it is not in
    /// the queue. If only the log of the last changes was damaged, it is that, the queue is as it was
    /// before them, and paused.
    pub moved_aside: Option<PathBuf>,
}

/// Why a transaction came to nothing.
enum Fault {
    Sql(rusqlite::Error),
    Refused(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl Store {
    /// Opens the queue of this folder; makes both if they are not there.
    ///
    /// Fails if the folder cannot be written, if a newer version has written the queue (which is left
    /// as it is), or if the queue is damaged and another process has it open.
    pub fn open(home: &Path) -> Result<Opened, Error> {
        let place = Place::in_folder(home)?;
        let gate = place.gate()?;
        let secured = damage::secure(&place, &gate)?;
        let mut store =
            Self { connection: connect(&place.file)?, place, _presence: secured.presence };
        let moved_aside = match secured.moved {
            Moved::Nothing => None,
            Moved::Database(path) => Some(path),
            Moved::Log(path) => {
                store.pause("what happened last is lost; look which jobs have run already")?;
                Some(path)
            }
        };
        Ok(Opened { store, moved_aside })
    }

    /// A number that changes when another process has written, and says nothing else.
    pub fn data_version(&self) -> Result<i64, Error> {
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|error| self.failed(error))
    }

    /// Has nothing more started; `why` in words.
    pub fn pause(&mut self, why: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let sql = "INSERT INTO settings VALUES ('paused', ?1)
                ON CONFLICT DO UPDATE SET value = excluded.value";
            transaction.execute(sql, [why])?;
            Ok(())
        })
    }

    /// Has jobs started again.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM settings WHERE name = 'paused'", [])?;
            Ok(())
        })
    }

    /// Why nothing is started, if so.
    pub fn pause_reason(&self) -> Result<Option<String>, Error> {
        pause_reason(&self.connection).map_err(|error| self.failed(error))
    }

    /// One transaction that no other writer comes into.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = begun.map_err(Fault::Sql).and_then(|transaction| {
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|fault| match fault {
            Fault::Refused(error) => error,
            Fault::Sql(error) => self.failed(error),
        })
    }

    /// Several looks at one and the same state.
    fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let begun = self.connection.unchecked_transaction();
        let seen = begun.and_then(|transaction| look(&transaction));
        seen.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: rusqlite::Error) -> Error {
        if damage::is_damage(&error) {
            self.place.suspect();
        }
        Error::queue(&self.place.file, error)
    }
}

/// Opens a sound database for work.
fn connect(file: &Path) -> Result<Connection, Error> {
    let failed = |error| Error::queue(file, error);
    let mut connection = damage::connect(file).map_err(failed)?;
    let found = schema::version(&connection).map_err(failed)?;
    if found > schema::VERSION {
        return Err(Error::NewerQueue { path: file.to_owned(), found, known: schema::VERSION });
    }
    let set_up = |connection: &mut Connection| {
        // Where the disk cannot have it, it stays off, and all is as safe but slower.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // What macOS calls fsync leaves it to the drive when to write.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(connection)
    };
    set_up(&mut connection).map_err(failed)?;
    Ok(connection)
}

fn pause_reason(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value FROM settings WHERE name = 'paused'";
    connection.query_row(sql, params![], |row| row.get(0)).optional()
}

/// Seconds since 1970. Nothing is decided by it: clocks jump.
fn now() -> f64 {
    utc_seconds().unwrap_or_default()
}
