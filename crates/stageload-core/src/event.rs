//! What a job says of itself: one JSON object a line in the file named by `$STAGELOAD_EVENTS`.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The environment variable that names the file a job appends its events to.
pub const EVENTS_ENV: &str = "STAGELOAD_EVENTS";

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
}
