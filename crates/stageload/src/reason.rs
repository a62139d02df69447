//! `reason.json`: why a job was stopped or never started, for whoever started the guard.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::job::Stop;
use crate::notice::signal_name;
use crate::trace_file::create;
use crate::{Error, Job, Notice, Observer, Outcome};

#[derive(Serialize)]
struct ReasonFile<'a> {
    exit: i32,
    /// The one sentence for a person.
    why: String,
    command: Vec<String>,
    #[serde(flatten)]
    stop: Option<&'a Stop>,
    #[serde(flatten)]
    rule: Map<String, Value>,
}

/// Makes sure now that the reason can be written later, and that none of an older run is left.
pub(crate) fn clear_reason(job: &Job) -> Result<(), Error> {
    let Some(path) = &job.reason else { return Ok(()) };
    if job.trace.as_ref().is_some_and(|trace| is_same_file(trace, path)) {
        return Err(Error::SameFile { path: path.clone() });
    }
    let file = create("reason", path)?;
    // Never a device: root could remove `/dev/null`.
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Ok(());
    }
    // What a link leads to and not the link, through which the reason is written.
    let target = path.canonicalize();
    let removed = target.and_then(std::fs::remove_file);
    removed.map_err(|source| Error::unwritable("reason", path, source))
}

/// By whatever names. Both may be `/dev/null`.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let known = |path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    known(a).zip(known(b)).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Writes why the job was stopped or never started, where that is wanted.
pub(crate) fn write_reason(job: &Job, outcome: &Outcome, observer: &mut dyn Observer) {
    let Some(path) = &job.reason else { return };
    let Some(reason) = reason_json(job, outcome) else { return };
    if let Err(error) = std::fs::write(path, reason) {
        let error = Error::unwritable("reason", path, error);
        observer.notice(&Notice::Warning(error.to_string()));
    }
}

/// The text of the file; None for a job that ended by itself.
fn reason_json(job: &Job, outcome: &Outcome) -> Option<String> {
    let (why, rule, stop) = match outcome {
        Outcome::Exited(_) | Outcome::Signaled(_) => return None,
        Outcome::Stopped(stop) => (stop.reason.to_string(), None, Some(&**stop)),
        Outcome::Interrupted(libc::SIGKILL) => {
            ("its guard was killed".to_owned(), Some("guard-death"), None)
        }
        Outcome::Interrupted(signal) => (signal_name(*signal), Some("signal"), None),
        Outcome::NoRoom(why) => (why.clone(), Some("no-room"), None),
        Outcome::CannotStart(why) => (why.clone(), Some("cannot-start"), None),
    };
    let file = ReasonFile {
        exit: outcome.exit_code(),
        why,
        command: job.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        stop,
        rule: rule.map(|rule| ("rule".to_owned(), rule.into())).into_iter().collect(),
    };
    serde_json::to_string_pretty(&file).ok().map(|text| text + "\n")
}
