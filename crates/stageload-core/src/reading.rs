//! One look at the job and the machine. How it is taken is the business of the `stageload` crate.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Percent};

/// One sample. A value that could not be read is None, never 0: zero bytes available would stop
/// a job that is doing no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Seconds since the trace began.
    pub t: f64,
    /// What the whole job holds, compressed and swapped-out pages included.
    #[serde(default)]
    pub footprint: Option<Bytes>,
    /// Swap in use by the whole machine.
    #[serde(default)]
    pub swap_used: Option<Bytes>,
    /// Swap there is. Elastic on macOS, so no rule divides by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_total: Option<Bytes>,
    /// Memory available, as the system's own gauge has it.
    #[serde(default)]
    pub level: Option<Percent>,
}
