//! Where the queue keeps its files, and the locks that say who is there. The system frees a lock when
//! its last holder is gone, however it went; nothing is ever concluded from a number in a file.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stageload_core::queue::JobId;

use crate::store::Removed;
use crate::{Error, sys};

/// The queue's folder: `$STAGELOAD_HOME`, or the platform's own place for such things.
pub fn queue_home() -> Result<PathBuf, Error> {
    sys::state_folder().map_err(|source| Error::System {
        doing: "find a home for the queue; set HOME or STAGELOAD_HOME",
        source,
    })
}

/// Where one attempt's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFiles {
    /// The folder of all of them.
    pub folder: PathBuf,
}

impl AttemptFiles {
    /// Of this attempt, in the queue's folder.
    pub fn of(home: &Path, job: JobId, attempt: u32) -> Self {
        Self { folder: job_folder(home, job).join(attempt.to_string()) }
    }

    /// Every look and event.
    pub fn trace(&self) -> PathBuf {
        self.folder.join("trace.jsonl")
    }

    /// What the job printed.
    pub fn output(&self) -> PathBuf {
        self.folder.join("output.log")
    }

    /// Why the guard stopped it.
    pub fn reason(&self) -> PathBuf {
        self.folder.join("reason.json")
    }

    /// While this is there, the job pauses where a stage begins.
    pub fn pause(&self) -> PathBuf {
        self.folder.join("pause")
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.folder.join("events.jsonl")
    }

    /// How it ended, if the queue could not be written then.
    pub(crate) fn ending(&self) -> PathBuf {
        self.folder.join("ending.json")
    }

    /// Held by the supervisor, its warden and the job.
    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// An empty folder. Numbers begin anew after a queue was damaged, and what lies there then is
    /// another job's: it is set aside.
    pub(crate) fn create(&self) -> io::Result<()> {
        if self.folder.exists() {
            let aside =
                format!("{}.of-another-queue-{}", self.folder.display(), sys::now().as_nanos());
            fs::rename(&self.folder, aside)?;
        }
        create_private(&self.folder)
    }
}

/// Held by the one who waits in a terminal for its job to have its turn.
pub(crate) fn host_lock(home: &Path, job: JobId) -> PathBuf {
    job_folder(home, job).join("host.lock")
}

fn job_folder(home: &Path, job: JobId) -> PathBuf {
    home.join("jobs").join(job.to_string())
}

/// Held by the engine.
pub(crate) fn engine_lock(home: &Path) -> PathBuf {
    home.join("engine.lock")
}

/// A folder that is nobody else's business: it has command lines and their output in it.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Takes a lock; None if somebody else keeps it for longer than `patience`.
pub(crate) fn hold(path: &Path, patience: Duration) -> io::Result<Option<File>> {
    path.parent().map_or(Ok(()), create_private)?;
    let file = File::options().create(true).read(true).append(true).open(path)?;
    let deadline = sys::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if sys::now() >= deadline => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Whether somebody holds a lock. Whoever asks holds it shared for an instant, so takers try twice.
pub(crate) fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Writes a file that is whole or not there, also after a power cut.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut new, text)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    File::open(folder)?.sync_all()
}

/// Removes the folders of a job that was cleared away, also those of attempts that never began.
pub fn remove_attempts(home: &Path, removed: &Removed) {
    for folder in &removed.folders {
        fs::remove_dir_all(folder).ok();
    }
    fs::remove_dir_all(job_folder(home, removed.id)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_freed_by_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/lock");
        assert!(!is_held(&path));
        let held = hold(&path, Duration::ZERO).unwrap().unwrap();
        assert!(is_held(&path));
        assert!(hold(&path, Duration::ZERO).unwrap().is_none());
        drop(held);
        assert!(!is_held(&path) && hold(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn the_files_of_an_attempt_of_another_queue_are_set_aside() {
        let home = tempfile::tempdir().unwrap();
        let files = AttemptFiles::of(home.path(), JobId(1), 1);
        files.create().unwrap();
        fs::write(files.ending(), "{}").unwrap();
        files.create().unwrap();
        assert!(files.folder.exists() && !files.ending().exists());
        let kept = fs::read_dir(home.path().join("jobs/1")).unwrap().count();
        assert_eq!(kept, 2);
    }

    #[test]
    fn what_is_written_whole_replaces_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ending.json");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
