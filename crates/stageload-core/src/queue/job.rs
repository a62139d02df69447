//! A queued job: what the queue must know of it, where it stands, and how it can end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, RoomPolicy};

/// The number of a job, from 1 on and never given twice.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is expected of a job before it has run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The most it will hold.
    pub peak: Bytes,
    /// The stage in which it holds that, where it is known.
    pub stage: Option<String>,
}

/// What a job can be tried with after the guard has stopped it: the next lower setting, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lower {
    /// There is none.
    #[default]
    Nothing,
    /// Somebody has to say so.
    Ask(String),
    /// It was allowed when the job was queued.
    Allowed(String),
}

/// One job, as far as its turn depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Jobs of one lane run one at a time; lanes do not wait for each other.
    pub lane: String,
    /// Whose turn it takes.
    pub owner: String,
    /// Higher comes first, whoever owns it.
    pub priority: i32,
    /// Lower comes first among jobs of the same owner and priority.
    pub position: i64,
    /// It starts only after these are done.
    pub after: Vec<JobId>,
    /// What must hold before it starts. `need` is in `expected`.
    pub room: RoomPolicy,
    /// Whether it waits for other processes to go.
    pub watches_busy: bool,
    /// What it will hold, if that is known.
    pub expected: Option<Expected>,
    /// How many times it was started.
    pub attempts: u32,
    /// What may be tried after the guard has stopped it.
    pub lower: Lower,
    /// Where it stands.
    pub state: JobState,
}

/// Where a job stands. `attempt` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum JobState {
    /// It waits for its turn, for room or for quiet: in words, or for nothing that is known yet.
    Queued {
        /// What it waits for.
        waits_for: Vec<String>,
    },
    /// Its supervisor was started, and perhaps its program.
    Starting {
        /// Which.
        attempt: u32,
    },
    /// Its program runs.
    Running {
        /// Which.
        attempt: u32,
    },
    /// It runs until the next stage begins, and then pauses.
    Pausing {
        /// Which.
        attempt: u32,
    },
    /// It stands still between two stages, with nothing loaded for the one to come.
    Paused {
        /// Which.
        attempt: u32,
    },
    /// It is being stopped, because somebody asked for it.
    Stopping {
        /// Which.
        attempt: u32,
    },
    /// It ended well.
    Done,
    /// It ended otherwise, by itself.
    Failed {
        /// How, in words.
        why: String,
    },
    /// Somebody stopped it, or took it from the queue.
    Stopped,
    /// The guard stopped it.
    Killed {
        /// Why, in words.
        why: String,
    },
    /// The machine or its supervisor went down under it.
    Interrupted {
        /// What is known of it, in words.
        why: String,
    },
    /// It waits for somebody to decide.
    Held {
        /// What about, in words.
        why: String,
    },
}

impl JobState {
    /// A job that has just come.
    pub const fn queued() -> Self {
        Self::Queued { waits_for: Vec::new() }
    }

    /// The attempt that may have a process now.
    pub const fn attempt(&self) -> Option<u32> {
        match self {
            Self::Starting { attempt }
            | Self::Running { attempt }
            | Self::Pausing { attempt }
            | Self::Paused { attempt }
            | Self::Stopping { attempt } => Some(*attempt),
            _ => None,
        }
    }

    /// Whether it takes its lane's place.
    pub const fn is_active(&self) -> bool {
        self.attempt().is_some()
    }

    /// Whether it waits for its turn.
    pub const fn is_queued(&self) -> bool {
        matches!(self, Self::Queued { .. })
    }

    /// Whether nothing more happens to it unless somebody asks.
    pub const fn is_over(&self) -> bool {
        !self.is_active() && !self.is_queued()
    }

    /// The name of the state, as in JSON and in the store.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Starting { .. } => "starting",
            Self::Running { .. } => "running",
            Self::Pausing { .. } => "pausing",
            Self::Paused { .. } => "paused",
            Self::Stopping { .. } => "stopping",
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
            Self::Killed { .. } => "killed",
            Self::Interrupted { .. } => "interrupted",
            Self::Held { .. } => "held",
        }
    }

    /// Why it stands where it stands, in words.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Queued { waits_for } if !waits_for.is_empty() => Some(waits_for.join("; ")),
            Self::Failed { why }
            | Self::Killed { why }
            | Self::Interrupted { why }
            | Self::Held { why } => Some(why.clone()),
            _ => None,
        }
    }
}

/// How one attempt ended, by its supervisor's own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "kebab-case")]
pub enum Ending {
    /// By itself.
    Exited {
        /// Its exit code.
        code: i32,
        /// What the preset says that this code means.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        means: Option<String>,
    },
    /// By a signal from elsewhere.
    Signaled {
        /// Its number.
        signal: i32,
        /// Its name.
        name: String,
    },
    /// The guard stopped it.
    Killed {
        /// The name of the rule.
        rule: String,
        /// In words, with the stage.
        why: String,
    },
    /// The supervisor was told to stop it.
    Stopped,
    /// There was no room for it in time.
    NoRoom {
        /// What was missing, in words.
        why: String,
    },
    /// The system could not start it.
    CannotStart {
        /// Why, in words.
        why: String,
    },
}

impl Ending {
    /// Where a job stands after it.
    pub fn state(&self) -> JobState {
        match self {
            Self::Exited { code: 0, .. } => JobState::Done,
            Self::Exited { code, means: None } => {
                JobState::Failed { why: format!("exit code {code}") }
            }
            Self::Exited { code, means: Some(means) } => {
                JobState::Failed { why: format!("exit code {code}: {means}") }
            }
            Self::Signaled { name, .. } => JobState::Failed { why: format!("ended by {name}") },
            Self::Killed { why, .. } => JobState::Killed { why: why.clone() },
            Self::Stopped => JobState::Stopped,
            Self::NoRoom { why } => JobState::Failed { why: format!("no room in time: {why}") },
            Self::CannotStart { why } => JobState::Failed { why: format!("cannot start: {why}") },
        }
    }
}

/// What is found out about an attempt that the queue believes to be active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// Its supervisor or its processes are there.
    Alive,
    /// It is over, and its supervisor wrote how it ended.
    Over(Ending),
    /// Nobody is there, and no supervisor has ever begun with it.
    NeverBegan,
    /// Nobody is there and nobody wrote how it ended.
    Vanished {
        /// The machine was started anew since.
        rebooted: bool,
        /// What the last line of its trace says, in words.
        last: Option<String>,
    },
}
