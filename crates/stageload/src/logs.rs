//! What a job prints. It goes straight into a file, so that nobody has to live for the job to print on;
//! when the file gets too long, its middle is given back to the disk and reads as a hole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use stageload_core::Bytes;

use crate::sys;

/// What is kept of the beginning, where programs say what they were started with.
const HEAD: u64 = 4 << 20;
/// What is kept of the end, where they say why they failed.
const TAIL: u64 = 16 << 20;
/// A hole is made only for so much, and on borders of this size.
const STEP: u64 = 1 << 20;

/// Holds a growing file to a size on disk. What a disk that cannot have holes makes of it is told once.
#[derive(Debug)]
pub(crate) struct Bounded {
    file: File,
    given_back: u64,
}

impl Bounded {
    /// The file at `path`, which others write.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().read(true).write(true).open(path)?, given_back: HEAD })
    }

    /// Gives back what lies between the beginning and the end that are kept.
    pub(crate) fn trim(&mut self) -> io::Result<()> {
        let end = self.file.metadata()?.len().saturating_sub(TAIL) / STEP * STEP;
        if end <= self.given_back {
            return Ok(());
        }
        sys::punch_hole(&self.file, self.given_back, end - self.given_back)?;
        self.given_back = end;
        Ok(())
    }
}

/// What is left of a job's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// From the beginning.
    pub head: Vec<u8>,
    /// What was left out after it.
    pub left_out: Bytes,
    /// From there to the end; empty if nothing was left out.
    pub tail: Vec<u8>,
}

/// Reads a job's output back: 20 MB at most, and a little more while it grows.
pub fn read_log(path: &Path) -> io::Result<Log> {
    let mut file = File::open(path)?;
    let mut log = Log::default();
    let Some((from, to)) = sys::first_hole(&file).filter(|(from, to)| from < to) else {
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut log.head)?;
        return Ok(log);
    };
    file.seek(SeekFrom::Start(0))?;
    (&file).take(from).read_to_end(&mut log.head)?;
    file.seek(SeekFrom::Start(to))?;
    file.read_to_end(&mut log.tail)?;
    log.left_out = Bytes(to - from);
    Ok(log)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_log_keeps_its_beginning_and_its_end_and_takes_no_more_of_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut job = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        job.write_all(b"started\n").unwrap();
        let mut bounded = Bounded::open(&path).unwrap();
        for _ in 0..10 {
            job.write_all(&vec![b'x'; 5 << 20]).unwrap();
            bounded.trim().unwrap();
        }
        job.write_all(b"\nfailed: out of paper\n").unwrap();
        let log = read_log(&path).unwrap();
        assert!(log.head.starts_with(b"started\n") && log.head.len() == HEAD as usize);
        assert!(log.tail.ends_with(b"x\nfailed: out of paper\n"));
        assert!(log.tail.len() as u64 >= TAIL && log.left_out > Bytes::mib(25), "{}", log.left_out);
        let on_disk = path.metadata().unwrap().blocks() * 512;
        assert!(on_disk <= HEAD + TAIL + 2 * STEP, "{on_disk}");
    }

    #[test]
    fn a_short_log_is_read_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\ntwo\n").unwrap();
        let log = read_log(file.path()).unwrap();
        assert_eq!((&log.head[..], log.left_out), (&b"one\ntwo\n"[..], Bytes::ZERO));
    }
}
