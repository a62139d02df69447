//! A database that is damaged is moved aside, never written over.
//!
//! The whole check reads every page, which takes longer the longer the history is. A process that is
//! killed cannot damage anything, only a machine that goes down can; so the check is made only when
//! nobody has the queue open and the last who had did not close it (its `-wal` is still there), or when
//! a call has met a damaged page ([`Place::suspect`]). Everything else, at every open, is what costs nothing:
//! the header, the length that the header tells, and the tables' names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;
use crate::Error;
use crate::utc::utc_date_time;

/// The start of every log file but for its last bit, which tells the order of bytes; from
/// `SQLite`'s description of its file format, 4.1.
const LOG_MAGIC: u32 = 0x377f_0682;

/// Where the queue is, and what stands beside it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    home: PathBuf,
    /// The database.
    pub(super) file: PathBuf,
}

/// Held for as long as the database is open, shared by all who have it open. Whoever can have it
/// alone knows that nobody else is there.
#[derive(Debug)]
pub(super) struct Presence {
    _file: File,
}

/// Held while somebody looks whether the database is sound.
#[derive(Debug)]
pub(super) struct Gate {
    _file: File,
}

impl Place {
    /// The queue of this folder, which is made if it is not there.
    pub(super) fn in_folder(home: &Path) -> Result<Self, Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
        made.map_err(|source| Error::unwritable("queue", home, source))?;
        Ok(Self { home: home.to_owned(), file: home.join("queue.sqlite") })
    }

    /// Waits until nobody else opens the queue.
    pub(super) fn gate(&self) -> Result<Gate, Error> {
        let path = self.home.join("open.lock");
        let gate = lock_file(&path).and_then(|file| file.lock().map(|()| file));
        let file = gate.map_err(|source| Error::unwritable("queue's lock", &path, source))?;
        Ok(Gate { _file: file })
    }

    fn beside(&self, ending: &str) -> PathBuf {
        with_ending(&self.file, ending)
    }

    fn log(&self) -> PathBuf {
        self.beside("-wal")
    }

    fn mark(&self) -> PathBuf {
        self.beside("-suspect")
    }

    /// Has the next who opens the database check all of it.
    pub(super) fn suspect(&self) {
        File::create(self.mark()).ok();
    }
}

/// What [`secure`] has found.
#[derive(Debug)]
pub(super) struct Secured {
    pub(super) presence: Presence,
    pub(super) moved: Moved,
}

/// What was moved aside, and where to.
#[derive(Debug)]
pub(super) enum Moved {
    Nothing,
    /// What had not been copied into the database yet; the database itself is sound.
    Log(PathBuf),
    /// All of it.
    Database(PathBuf),
}

/// Leaves a sound database in place, which may be a new one.
pub(super) fn secure(place: &Place, _gate: &Gate) -> Result<Secured, Error> {
    let path = place.home.join("present.lock");
    let unwritable = |source| Error::unwritable("queue's lock", &path, source);
    let present = lock_file(&path).map_err(unwritable)?;
    let moved = if present.try_lock().is_ok() {
        let moved = clear_away(place)?;
        fs::remove_file(place.mark()).ok();
        moved
    } else if let Some(why) = damage(place, false)? {
        // Those who have it open would go on with what is moved.
        return Err(Error::DamagedQueue { path: place.file.clone(), why });
    } else {
        Moved::Nothing
    };
    if !place.file.exists() {
        make(place)?;
    }
    present.lock_shared().map_err(unwritable)?;
    Ok(Secured { presence: Presence { _file: present }, moved })
}

/// Moves what is damaged aside. Nobody else has the queue open.
fn clear_away(place: &Place) -> Result<Moved, Error> {
    let was_left_open = holds_anything(&place.log());
    let mut moved = Moved::Nothing;
    if was_left_open && place.file.exists() && !is_log(&place.log()) {
        let aside = move_aside(place, &["-wal", "-shm"])?;
        moved = Moved::Log(with_ending(&aside, "-wal"));
    }
    if damage(place, was_left_open || place.mark().exists())?.is_some() {
        // The database first: what is left of a move that was cut short must not pass for sound.
        moved = Moved::Database(move_aside(place, &["", "-wal", "-shm"])?);
    }
    Ok(moved)
}

fn lock_file(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// What is wrong with the database, in words.
fn damage(place: &Place, look_wholly: bool) -> Result<Option<String>, Error> {
    let length = match fs::metadata(&place.file) {
        Ok(found) => found.len(),
        // A log without its database is what is left of one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(place.log().exists().then(|| "only its log is left".to_owned()));
        }
        Err(source) => return Err(Error::unwritable("queue", &place.file, source)),
    };
    if length == 0 {
        return Ok(Some("it is empty".to_owned()));
    }
    match look(&place.file, look_wholly) {
        Ok(found) => Ok(found),
        // No code of its own means a format that there has never been: the statements are sound.
        Err(error)
            if is_damage(&error) || error.sqlite_error_code() == Some(ErrorCode::Unknown) =>
        {
            Ok(Some(error.to_string()))
        }
        Err(error) => Err(Error::queue(&place.file, error)),
    }
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

fn look(file: &Path, wholly: bool) -> rusqlite::Result<Option<String>> {
    let connection = connect(file)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if schema::version(&connection)? <= 0 || tables == 0 {
        return Ok(Some("it is not a queue".to_owned()));
    }
    if !wholly {
        return Ok(None);
    }
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((found != "ok").then_some(found))
}

/// Opens what is there, and never makes anything. To look at it changes nothing either: without the
/// setting, closing it would copy the log into a database that may be damaged or of a newer version.
pub(super) fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(super::PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn holds_anything(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// Whether `SQLite` will take it for a log: one that it does not, it writes over without a word.
fn is_log(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && u32::from_be_bytes(magic) & !1 == LOG_MAGIC
}

/// Moves the database's files with these endings to a name that is free; tells the name.
fn move_aside(place: &Place, endings: &[&str]) -> Result<PathBuf, Error> {
    let utc = utc_date_time().replace("+00:00", "Z").replace(':', "");
    let names = (1..).map(|n| match n {
        1 => format!("queue.damaged-{utc}.sqlite"),
        n => format!("queue.damaged-{utc}-{n}.sqlite"),
    });
    let is_free = |path: &PathBuf| {
        ["", "-wal", "-shm"].iter().all(|ending| !with_ending(path, ending).exists())
    };
    let mut paths = names.map(|name| place.home.join(name)).filter(is_free);
    let aside = paths.next().unwrap_or_else(|| place.home.join("queue.damaged.sqlite"));
    for ending in endings {
        let (from, to) = (place.beside(ending), with_ending(&aside, ending));
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::unwritable("damaged queue", &to, error));
            }
            _ => {}
        }
    }
    Ok(aside)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(ending);
    path.into()
}

/// A new database appears whole or not at all, so that an empty file is always damage.
fn make(place: &Place) -> Result<(), Error> {
    let new = place.home.join("queue.new.sqlite");
    for ending in ["", "-journal"] {
        fs::remove_file(with_ending(&new, ending)).ok();
    }
    let unwritable = |source| Error::unwritable("queue", &place.file, source);
    create_private(&new).map_err(unwritable)?;
    let made = connect(&new).and_then(|mut connection| {
        schema::migrate(&mut connection)?;
        connection.close().map_err(|(_, error)| error)
    });
    made.map_err(|error| Error::queue(&place.file, error))?;
    fs::rename(&new, &place.file).map_err(unwritable)?;
    // The name must be on disk before the first job is said to be.
    File::open(&place.home).and_then(|folder| folder.sync_all()).map_err(unwritable)
}

/// What is queued is nobody else's business: commands can have secrets in them.
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}
