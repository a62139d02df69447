//! Reads a job's event file as it grows. A job may write anything into it: what is no event is
//! counted and left out, and nothing it writes can stop the guard or fill its memory.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use stageload_core::{Event, printable};

/// The most that is read at one look; the rest waits for the next.
const PER_LOOK: u64 = 1 << 20;
/// A line longer than this is no event.
const LONGEST_LINE: usize = 64 << 10;

/// The growing end of one event file.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    file: File,
    offset: u64,
    partial: Vec<u8>,
    /// Lines that were no events.
    pub(crate) bad_lines: u64,
    /// The first of them, and why it is none.
    pub(crate) first_bad: Option<String>,
}

impl Tail {
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let (path, file) = (path.to_owned(), File::open(path)?);
        Ok(Self { path, file, offset: 0, partial: Vec::new(), bad_lines: 0, first_bad: None })
    }

    /// Only what the job says from now on.
    pub(crate) fn open_at_end(path: &Path) -> std::io::Result<Self> {
        let mut tail = Self::open(path)?;
        tail.offset = tail.file.metadata()?.len();
        Ok(tail)
    }

    /// The events whose lines were completed since the last call, and whether there is more.
    pub(crate) fn read(&mut self) -> (Vec<Event>, bool) {
        let mut fresh = Vec::new();
        let more = self.fill(&mut fresh).unwrap_or(false);
        self.partial.extend_from_slice(&fresh);
        let complete = self.partial.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let rest = self.partial.split_off(complete);
        let lines = std::mem::replace(&mut self.partial, rest);
        let events = lines.split(|b| *b == b'\n').filter_map(|line| self.event(line)).collect();
        if self.partial.len() > LONGEST_LINE {
            self.partial.clear();
            self.bad_lines += 1;
        }
        (events, more)
    }

    /// Whether the file has grown since it was last read, or was written anew.
    pub(crate) fn has_news(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.len() != self.offset)
            || self.successor().is_some()
    }

    /// The file that now has this one's name: a job may remove its events and begin anew.
    fn successor(&self) -> Option<File> {
        let identity = |meta: &Metadata| (meta.dev(), meta.ino());
        let named = fs::symlink_metadata(&self.path).ok().filter(Metadata::is_file)?;
        let own = self.file.metadata().ok()?;
        if identity(&named) == identity(&own) {
            return None;
        }
        // What was a file just now could be a pipe by now, and nobody at its other end.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        File::options().read(true).custom_flags(flags).open(&self.path).ok()
    }

    /// The last line of a job that is gone, complete or not.
    pub(crate) fn finish(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.partial);
        self.event(&line)
    }

    fn fill(&mut self, fresh: &mut Vec<u8>) -> std::io::Result<bool> {
        let length = self.file.metadata()?.len();
        if length < self.offset {
            // The job wrote with `>` where it should append.
            self.offset = 0;
            self.partial.clear();
        }
        if length == self.offset {
            let Some(file) = self.successor() else { return Ok(false) };
            self.partial.clear();
            (self.file, self.offset) = (file, 0);
            return Ok(true);
        }
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.offset += (&self.file).take(PER_LOOK).read_to_end(fresh)? as u64;
        Ok(self.offset < length)
    }

    fn event(&mut self, line: &[u8]) -> Option<Event> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(event) => Some(event),
            Err(error) => {
                self.bad_lines += 1;
                self.first_bad.get_or_insert_with(|| why_bad(line, &error));
                None
            }
        }
    }
}

/// The line, as much of it as fits on a terminal, and what the parser says.
fn why_bad(line: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String = printable(&text).take(60).collect();
    format!("`{shown}`: {error}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tail() -> (tempfile::NamedTempFile, Tail) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let tail = Tail::open(file.path()).unwrap();
        (file, tail)
    }

    fn stages(events: &[Event]) -> Vec<&str> {
        events.iter().filter_map(|e| e.stage.as_deref()).collect()
    }

    #[test]
    fn events_that_were_removed_and_begun_anew_are_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        fs::write(&path, "{\"kind\":\"stage\",\"stage\":\"a\"}\n").unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(stages(&tail.read().0), ["a"]);
        fs::remove_file(&path).unwrap();
        assert!(!tail.has_news());
        // It may get the number that the old one had, if that is closed.
        fs::write(&path, "{\"kind\":\"stage\",\"stage\":\"b\"}\n").unwrap();
        assert!(tail.has_news());
        assert!(tail.read().1, "there is more");
        assert_eq!(stages(&tail.read().0), ["b"]);
        assert!(!tail.has_news());
    }

    #[test]
    fn a_line_counts_once_it_is_complete() {
        let (mut file, mut tail) = tail();
        write!(file, "{{\"kind\":\"stage\",\"sta").unwrap();
        assert!(tail.has_news());
        assert_eq!(tail.read().0, []);
        assert!(!tail.has_news());
        writeln!(file, "ge\":\"a\"}}").unwrap();
        assert_eq!(stages(&tail.read().0), ["a"]);
        assert_eq!(tail.read(), (vec![], false));
    }

    #[test]
    fn what_is_no_event_is_left_out_and_counted() {
        let (mut file, mut tail) = tail();
        file.write_all(
            b"hello\n\xff\xfe\n\n{\"kind\":\"dance\"}\n{\"kind\":\"stage\",\"stage\":\"b\"}\n",
        )
        .unwrap();
        assert_eq!(stages(&tail.read().0), ["b"]);
        assert_eq!(tail.bad_lines, 3);
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let (mut file, mut tail) = tail();
        file.write_all(&vec![b'x'; 3 << 20]).unwrap();
        assert!(tail.read().1);
        while tail.read().1 {}
        assert!(tail.partial.len() <= LONGEST_LINE);
        file.write_all(b"\n{\"kind\":\"mark\"}\n").unwrap();
        assert_eq!(tail.read().0.len(), 1);
    }

    #[test]
    fn a_file_that_starts_over_is_read_again() {
        let (mut file, mut tail) = tail();
        writeln!(file, "{{\"kind\":\"stage\",\"stage\":\"first\"}}").unwrap();
        tail.read();
        std::fs::write(file.path(), "{\"kind\":\"stage\",\"stage\":\"b\"}\n").unwrap();
        assert_eq!(stages(&tail.read().0), ["b"]);
    }

    #[test]
    fn the_last_line_of_a_dead_job_needs_no_end() {
        let (mut file, mut tail) = tail();
        write!(file, "{{\"kind\":\"mark\",\"note\":\"bye\"}}").unwrap();
        tail.read();
        assert_eq!(tail.finish().unwrap().note.as_deref(), Some("bye"));
    }
}
