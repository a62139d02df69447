//! Trace files: written by a thread of their own, so that a slow or full disk never holds up a
//! look, and read back whole.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use stageload_core::{Record, read_trace};

use crate::{Error, sys};

/// Lines that may wait for the disk: 100 s of looks.
const QUEUE: usize = 1000;
/// No record is longer than this by far.
const LONGEST_LINE: u64 = 64 << 10;
/// How long the end of a run waits for the disk.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// The records of a trace file.
pub fn load_trace(path: &Path) -> Result<Vec<Record>, Error> {
    let raw = read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    // A killed writer can leave half a character.
    let records = read_trace(&String::from_utf8_lossy(&raw))
        .map_err(|source| Error::BadTrace { path: path.to_owned(), source })?;
    if records.is_empty() {
        return Err(Error::EmptyTrace { path: path.to_owned() });
    }
    Ok(records.into_iter().map(fit_to_show).collect())
}

/// Not every trace was written by a guard that saw to it.
fn fit_to_show(record: Record) -> Record {
    match record {
        Record::Event(event) => Record::Event(event.fit_to_show()),
        other => other,
    }
}

/// A device such as `/dev/full` can be written as a trace but never ends when read.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.file_type().is_char_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, not a file"));
    }
    fs::read(path)
}

/// Opens a file for output, its folder included.
pub(crate) fn create(what: &'static str, path: &Path) -> Result<File, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| open_new(path))
        .map_err(|source| Error::unwritable(what, path, source))
}

/// Does not wait for a reader where the path is a pipe, because nobody may ever come.
fn open_new(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("it is a pipe that nobody reads"),
        _ => error,
    })?;
    sys::set_blocking(&file)?;
    Ok(file)
}

/// Writes one trace. A line goes to the thread that writes and comes back to be filled again: what one
/// thread takes from the heap and another gives back makes a guard grow.
#[derive(Debug)]
pub(crate) struct TraceWriter {
    path: PathBuf,
    lines: SyncSender<Vec<u8>>,
    written: Receiver<Vec<u8>>,
    failed: Receiver<io::Error>,
    dropped: u64,
}

impl TraceWriter {
    /// Creates the file now, so that a bad path is refused before anything starts.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Self::onto(create("trace", path)?, path)
    }

    /// Goes on with the trace of a guard that is dead.
    pub(crate) fn append(path: &Path) -> Result<Self, Error> {
        let file = open_after_last_line(path)
            .map_err(|source| Error::unwritable("trace", path, source))?;
        Self::onto(file, path)
    }

    fn onto(file: File, path: &Path) -> Result<Self, Error> {
        let (lines, queue) = warm_channel();
        let (back, written) = warm_channel();
        let (report, failed) = sync_channel(1);
        std::thread::Builder::new()
            .name("stageload-trace".into())
            .spawn(move || {
                if let Err(error) = write_all(file, &queue, &back) {
                    // The receiver is gone only if nobody wants to know.
                    report.send(error).ok();
                }
            })
            .map_err(|source| Error::System { doing: "start the trace's thread", source })?;
        Ok(Self { path: path.to_owned(), lines, written, failed, dropped: 0 })
    }

    /// Hands a record over; drops and counts it where the disk is too slow or has failed.
    pub(crate) fn write(&mut self, record: &Record) {
        let mut line = self.written.try_recv().unwrap_or_default();
        line.clear();
        // Plain data with string keys always serializes.
        let is_lost = serde_json::to_writer(&mut line, record).is_err();
        line.push(b'\n');
        self.dropped += u64::from(is_lost || self.lines.try_send(line).is_err());
    }

    /// Says once what went wrong since the last call.
    pub(crate) fn complaint(&self) -> Option<String> {
        let error = self.failed.try_recv().ok()?;
        Some(self.words(&error))
    }

    /// Waits for the last writes and says what went wrong.
    pub(crate) fn finish(self) -> Option<String> {
        let path = self.path.display().to_string();
        let Self { lines, failed, dropped, .. } = self;
        drop(lines);
        match failed.recv_timeout(LAST_WRITES) {
            Ok(error) => Some(trouble(&path, &error)),
            // The thread has ended; whether it lost something before is in `dropped`.
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) if dropped == 0 => None,
            Err(_) => Some(format!("the trace {path} lacks {dropped} records")),
        }
    }

    fn words(&self, error: &io::Error) -> String {
        trouble(&self.path.display().to_string(), error)
    }
}

/// A guard that was killed while it wrote has left half a line, which would be a bad one in the
/// middle of the trace.
fn open_after_last_line(path: &Path) -> io::Result<File> {
    let mut file = File::options().read(true).write(true).open(path)?;
    if file.metadata()?.is_file() {
        let length = file.seek(SeekFrom::End(0))?;
        let tail = length.min(LONGEST_LINE);
        file.seek(SeekFrom::End(-(tail as i64)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let half = end.iter().rev().take_while(|b| **b != b'\n').count() as u64;
        file.set_len(length - half)?;
        file.seek(SeekFrom::End(0))?;
    }
    Ok(file)
}

fn trouble(path: &str, error: &io::Error) -> String {
    format!("cannot write the trace {path}: {error}; the command stays guarded without it")
}

/// A channel all of whose places were used once, so that they do not come into memory one by one.
fn warm_channel() -> (SyncSender<Vec<u8>>, Receiver<Vec<u8>>) {
    let (sender, receiver) = sync_channel(QUEUE);
    while sender.try_send(Vec::new()).is_ok() {}
    while receiver.try_recv().is_ok() {}
    (sender, receiver)
}

fn write_all(
    mut file: File,
    lines: &Receiver<Vec<u8>>,
    back: &SyncSender<Vec<u8>>,
) -> io::Result<()> {
    for line in lines {
        file.write_all(&line)?;
        // Where nobody takes lines back there is no more to write either.
        back.try_send(line).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use stageload_core::{End, Reading};

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/trace.jsonl");
        let mut writer = TraceWriter::create(&path).unwrap();
        let records = [
            Record::Sample(Reading::default()),
            Record::End(End { exit: Some(0), ..End::default() }),
        ];
        for record in &records {
            writer.write(record);
        }
        assert_eq!(writer.finish(), None);
        assert_eq!(load_trace(&path).unwrap(), records);
    }

    #[test]
    fn a_trace_that_is_taken_over_goes_on_after_its_last_whole_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "{\"type\":\"start\"}\n{\"type\":\"sam").unwrap();
        let mut writer = TraceWriter::append(file.path()).unwrap();
        writer.write(&Record::End(End::default()));
        assert_eq!(writer.finish(), None);
        assert_eq!(load_trace(file.path()).unwrap().len(), 2);
    }

    #[test]
    fn a_trace_from_elsewhere_cannot_draw_on_the_terminal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = r#"{"type":"event","kind":"stage","stage":"\u001b[31mred","t":0}"#;
        fs::write(file.path(), line).unwrap();
        let records = load_trace(file.path()).unwrap();
        assert!(
            matches!(&records[..], [Record::Event(e)] if e.stage.as_deref() == Some("[31mred"))
        );
    }

    #[test]
    fn a_bad_path_is_refused_at_once() {
        let error = TraceWriter::create(Path::new("/proc/no/such/trace.jsonl")).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the trace /proc/no/such/trace.jsonl:"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_a_complaint_and_no_more() {
        if !fs::metadata("/dev/full").is_ok_and(|file| file.file_type().is_char_device()) {
            // Past the capture of a test's output, which nobody sees when it passes.
            return io::stderr().write_all(b"skipped: this system has no /dev/full\n").unwrap();
        }
        let mut writer = TraceWriter::create(Path::new("/dev/full")).unwrap();
        writer.write(&Record::Sample(Reading::default()));
        let complaint = writer.finish().unwrap();
        assert!(complaint.contains("/dev/full") && complaint.contains("stays guarded"));
    }
}
