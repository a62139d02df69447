//! What a job says of itself: one JSON object a line in the file named by `$STAGELOAD_EVENTS`.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Longer names and notes are cut: they stand in tables, charts and live lines.
const LONGEST_WORDS: usize = 200;

/// The environment variable that names the file a job appends its events to.
pub const EVENTS_ENV: &str = "STAGELOAD_EVENTS";

/// Names a file in the job's environment: while it is there, a job that can pause stands still where a
/// stage begins, with nothing loaded for it yet.
pub const PAUSE_ENV: &str = "STAGELOAD_PAUSE";
/// The note of the mark with which a job says that it stands still.
pub const PAUSED: &str = "paused";
/// And that it goes on.
pub const RESUMED: &str = "resumed";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A stage began.
    Stage,
    /// A model was loaded for the first time.
    Load,
    /// A model was loaded again after a release.
    Reload,
    /// A model's memory was given back.
    Release,
    /// Anything else worth a line in the trace.
    Mark,
}

/// One event. In the job's file `t` is the system's monotonic clock in seconds (`CLOCK_MONOTONIC`,
/// on macOS `CLOCK_UPTIME_RAW`), or absent; in a trace it is seconds since the trace began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The model it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The stage the job was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Bytes loaded or released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbytes: Option<Bytes>,
    /// How long the load took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Words for the reader; `outside_stage` marks a load that its stage did not list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When, in seconds; see the type's own text for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
}

impl Event {
    /// An event of this kind with nothing else said.
    pub const fn new(kind: EventKind) -> Self {
        Self { kind, name: None, stage: None, nbytes: None, seconds: None, note: None, t: None }
    }

    /// The same event with words that a terminal can be given: a job may say anything.
    #[must_use]
    pub fn fit_to_show(mut self) -> Self {
        for words in [&mut self.name, &mut self.stage, &mut self.note] {
            *words = words.take().map(|words| printable(&words).take(LONGEST_WORDS).collect());
        }
        self
    }
}

/// The text without what moves a terminal's cursor, colours it or turns its direction.
pub fn printable(text: &str) -> impl Iterator<Item = char> {
    let is_bidi = |c| {
        let marks = '\u{200e}'..='\u{200f}';
        let embeddings = '\u{202a}'..='\u{202e}';
        let isolates = '\u{2066}'..='\u{2069}';
        marks.contains(&c) || embeddings.contains(&c) || isolates.contains(&c)
    };
    let is_break = |c| matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().filter(move |c| !c.is_control() && !is_bidi(*c) && !is_break(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_says_cannot_move_the_cursor_and_is_not_endless() {
        let said = Event {
            stage: Some("\x1b[2Jshape\r\n\u{9b}1m".into()),
            note: Some("\u{202e}ä".repeat(1000)),
            ..Event::new(EventKind::Stage)
        };
        let shown = said.fit_to_show();
        assert_eq!(shown.stage.as_deref(), Some("[2Jshape1m"));
        assert_eq!(shown.note, Some("ä".repeat(LONGEST_WORDS)));
        assert_eq!(shown.name, None);
    }
}
