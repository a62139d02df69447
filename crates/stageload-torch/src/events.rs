//! Where a pipeline's events go: to the file the supervisor named, or nowhere.

use std::fs::{File, OpenOptions};
use std::io::Write;

use serde_json::json;
use stageload_core::{EVENTS_ENV, Event};

use crate::monotonic_seconds;

/// Takes events as they happen.
pub type EventSink = Box<dyn FnMut(&Event)>;

/// Appends events to the file that `$STAGELOAD_EVENTS` names, one JSON line each.
#[derive(Debug)]
pub struct EventFile(Option<File>);

impl EventFile {
    /// Opens the file the supervisor named; without one, events are dropped.
    pub fn from_env() -> Self {
        let path = std::env::var_os(EVENTS_ENV);
        Self(path.and_then(|p| OpenOptions::new().create(true).append(true).open(p).ok()))
    }

    /// Appends one event, stamped with the monotonic clock unless it has a time already. A full
    /// disk loses the line and not the job.
    pub fn emit(&mut self, event: &Event) {
        let Some(file) = &mut self.0 else { return };
        let mut line = json!(event);
        line["type"] = json!("event");
        if event.t.is_none() {
            line["t"] = json!((monotonic_seconds() * 1e6).round() / 1e6);
        }
        // One write a line, so that lines of several writers never mix.
        let _lost = file.write_all(format!("{line}\n").as_bytes());
    }
}
