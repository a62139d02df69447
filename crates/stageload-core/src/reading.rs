//! One look at the job and the machine. How it is taken is the business of the `stageload` crate.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Percent};

/// One sample. A value that could not be read is None, never 0: zero bytes available would stop
/// a job that is doing no harm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Seconds since the trace began, on a clock that stops while the machine sleeps.
    pub t: f64,
    /// Seconds since 1970, as the wall clock has it; no decision reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc: Option<f64>,
    /// What the whole job holds, compressed and swapped-out pages included.
    #[serde(default)]
    pub footprint: Option<Bytes>,
    /// The most it held at any moment since the look before, as far as the system counts along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Bytes>,
    /// Its largest processes, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Swap in use by the whole machine.
    #[serde(default)]
    pub swap_used: Option<Bytes>,
    /// Swap there is. Elastic on macOS, so no rule divides by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_total: Option<Bytes>,
    /// Memory available, as the system's own gauge has it.
    #[serde(default)]
    pub level: Option<Percent>,
    /// How short of memory the system says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// Memory that compressed pages take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<Bytes>,
    /// How close the machine is to swapping: available pages over available and compressed ones.
    /// macOS swaps below 0.40 and warns below 0.50 (XNU `vm_compressor.c`); no other system has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r: Option<f64>,
    /// About how much can be taken before the machine swaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_swap: Option<Bytes>,
    /// What must live somewhere, in memory, compressed or in swap. It moves only when somebody
    /// takes or gives back memory, so its growth says who is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<Bytes>,
    /// What a new job can take without pushing anybody's pages out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimable: Option<Bytes>,
    /// Seconds since the machine's oldest value above was really measured; absent where all are fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<f64>,
}

/// One process of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number.
    pub pid: i32,
    /// What it holds.
    pub footprint: Bytes,
}

/// The system's own word for how short memory is: macOS's pressure level; on Linux, how long
/// tasks stalled for memory lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Pressure {
    /// Enough.
    Normal,
    /// Getting short.
    Warn,
    /// Short.
    Critical,
}

impl TryFrom<u8> for Pressure {
    type Error = String;

    /// By the numbers macOS gives them.
    fn try_from(level: u8) -> Result<Self, String> {
        match level {
            1 => Ok(Self::Normal),
            2 => Ok(Self::Warn),
            4 => Ok(Self::Critical),
            other => Err(format!("no pressure level: {other}")),
        }
    }
}

impl From<Pressure> for u8 {
    fn from(pressure: Pressure) -> Self {
        match pressure {
            Pressure::Normal => 1,
            Pressure::Warn => 2,
            Pressure::Critical => 4,
        }
    }
}
