//! What a job may do to the machine, and what the machine was like when it started.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Percent};

/// What a job may do to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The most the whole job may hold.
    pub limit: Option<Bytes>,
    /// How much swap may grow over its use at the job's start. The front ends default to 8G: on a
    /// 48 GB machine the eager Qwen run reached +7.97 GB and the offloaded one +9.58 GB. Zero means
    /// no swap at all, and then the distance to swap is a rule as well.
    pub swap_budget: Bytes,
    /// The most swap the machine may use, whoever uses it.
    pub swap_limit: Option<Bytes>,
    /// The job is stopped when less than this stays available.
    pub kill_free: Percent,
    /// The longest time between two looks. Looks further apart than a few of these (a sensor that
    /// failed) are not looks in a row.
    pub poll: Duration,
}

impl Policy {
    /// Three looks may be late, and at least twice the seed's poll of 5 s is no gap.
    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs(10).max(self.poll.saturating_mul(3))
    }

    /// Below this nobody asks any more who is to blame: three tenths of `kill_free`, which is 3 %
    /// of the machine by default. In the Pixal3D trace it still added 1 GB of swap per half second
    /// at a level of 6 %.
    pub(crate) fn floor(&self, memory: Bytes) -> Bytes {
        Bytes(memory.0 / 1000 * 3 * u64::from(self.kill_free.get()))
    }
}

/// The machine when the job started; what is unknown is taken from the first look that knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Swap in use.
    pub swap_used: Option<Bytes>,
    /// What had to live somewhere.
    pub demand: Option<Bytes>,
    /// All of the machine's memory.
    pub memory: Option<Bytes>,
}
