//! Which rule a reading broke, with every number the decision was made on, and in words.

use std::fmt;

use serde::Serialize;

use super::Blame;
use crate::{Bytes, Percent};

/// A rule and the reading that broke it, or is about to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum Breach {
    /// The job holds more than its limit.
    Limit {
        /// What it holds.
        footprint: Bytes,
        /// What it may hold.
        limit: Bytes,
    },
    /// Swap grew more than the job's budget.
    SwapBudget {
        /// Swap in use now.
        swap_used: Bytes,
        /// Swap in use when the job started.
        baseline: Bytes,
        /// How much it may grow.
        budget: Bytes,
    },
    /// Swap is over its absolute limit.
    SwapLimit {
        /// Swap in use now.
        swap_used: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// Too little memory is available.
    LevelLow {
        /// What is available.
        level: Percent,
        /// What must be.
        floor: Percent,
        /// For how many seconds it has been too little.
        seconds: f64,
    },
    /// The machine is about to swap, and the job may add none.
    NearSwap {
        /// Available pages over available and compressed ones.
        r: f64,
        /// Below this the system swaps.
        swaps_below: f64,
    },
    /// So little is left that nobody asks any more who took it.
    Floor {
        /// What can still be taken.
        claimable: Bytes,
        /// What must stay.
        floor: Bytes,
    },
    /// The same, by the system's own pages.
    FloorRatio {
        /// Available pages over available and compressed ones.
        r: f64,
        /// The least it may be.
        floor: f64,
    },
}

impl Breach {
    /// The name of the rule, as in `reason.json`.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Limit { .. } => "limit",
            Self::SwapBudget { .. } => "swap-budget",
            Self::SwapLimit { .. } => "swap-limit",
            Self::LevelLow { .. } => "level-low",
            Self::NearSwap { .. } => "near-swap",
            Self::Floor { .. } => "floor",
            Self::FloorRatio { .. } => "floor-ratio",
        }
    }

    /// Whether it is so late that a job gets no more grace.
    pub const fn is_floor(&self) -> bool {
        matches!(self, Self::Floor { .. } | Self::FloorRatio { .. })
    }

    /// In words, for a breach that is still to come.
    fn ahead(&self, f: &mut fmt::Formatter<'_>, forecast: Forecast) -> fmt::Result {
        let Forecast { per_second, seconds } = forecast;
        let pace = Bytes(per_second.abs() as u64);
        match self {
            Self::SwapBudget { swap_used, baseline, budget } => write!(
                f,
                "swap {swap_used} grows {pace}/s, over {} ({baseline} at start + budget {budget}) \
                 within {seconds:.1} s",
                *baseline + *budget
            ),
            Self::SwapLimit { swap_used, limit } => write!(
                f,
                "swap {swap_used} grows {pace}/s, over the swap limit {limit} within {seconds:.1} s"
            ),
            Self::Floor { claimable, floor } => write!(
                f,
                "{claimable} left, falling {pace}/s, under the floor of {floor} within {seconds:.1} s"
            ),
            _ => write!(f, "{self} within {seconds:.1} s"),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { footprint, limit } => write!(f, "footprint {footprint} > limit {limit}"),
            Self::SwapBudget { swap_used, baseline, budget } => write!(
                f,
                "swap {swap_used} > {} ({baseline} at start + budget {budget})",
                *baseline + *budget
            ),
            Self::SwapLimit { swap_used, limit } => {
                write!(f, "swap {swap_used} > swap limit {limit}")
            }
            Self::LevelLow { level, floor, seconds } => {
                write!(f, "memory available {level} < {floor} for {seconds:.1} s")
            }
            Self::NearSwap { r, swaps_below } => {
                write!(f, "distance to swap {r:.2}, the system swaps below {swaps_below:.2}")
            }
            Self::Floor { claimable, floor } => write!(f, "{claimable} left < floor {floor}"),
            Self::FloorRatio { r, floor } => {
                write!(f, "distance to swap {r:.2} < floor {floor:.2}")
            }
        }
    }
}

/// A breach that has not happened yet: at this rate it would before anything could be done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// How fast the value moves: bytes, or parts of a ratio, per second.
    pub per_second: f64,
    /// How far ahead that was looked: until the next look, and the time that stopping a job takes.
    pub seconds: f64,
}

/// Why a job is stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The rule and the numbers.
    #[serde(flatten)]
    pub breach: Breach,
    /// Set if the rule is not broken yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// The job's share of what the machine's demand grew by lately, 0 to 1, where that is known.
    pub share: Option<f64>,
    /// The stage the job was in, if it said.
    pub stage: Option<String>,
}

impl Reason {
    /// Who is to blame. A footprint over its limit is the job's own doing.
    pub fn blame(&self) -> Blame {
        match (self.breach, Blame::of_share(self.share)) {
            (Breach::Limit { .. }, Blame::Unknown | Blame::Others(_)) => Blame::Ours(1.0),
            (_, blame) => blame,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.forecast {
            Some(forecast) => self.breach.ahead(f, forecast)?,
            None => write!(f, "{}", self.breach)?,
        }
        match &self.stage {
            Some(stage) => write!(f, " in stage {stage}"),
            None => Ok(()),
        }
    }
}

/// Something a person should know, while the job runs on.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// A rule is broken or about to be, but it was not the job that grew.
    NotOurs {
        /// The rule and the numbers.
        breach: Breach,
        /// The job's share of the growth, 0 to 1.
        share: f64,
    },
    /// A line is near.
    Close {
        /// The rule and the numbers, not broken yet.
        breach: Breach,
        /// How much of the way is done.
        percent: u8,
    },
    /// The machine may start to swap, which the budget allows.
    NearSwap {
        /// Available pages over available and compressed ones.
        r: f64,
    },
    /// A gauge that a rule needs has told nothing for a while.
    Blind {
        /// Which.
        gauge: &'static str,
        /// For how many seconds.
        seconds: f64,
    },
}

impl Warning {
    /// The name of the rule that is broken or near, or of what else is wrong.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::NotOurs { breach, .. } | Self::Close { breach, .. } => breach.rule(),
            Self::NearSwap { .. } => "near-swap",
            Self::Blind { .. } => "blind",
        }
    }

    /// Whether the name of whoever grew belongs to it.
    pub const fn blames_others(&self) -> bool {
        matches!(self, Self::NotOurs { .. })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs { breach, share } => {
                write!(f, "{breach}; the job made {:.0} % of the growth and runs on", share * 100.0)
            }
            Self::Close { breach, percent } => match breach {
                Breach::Limit { footprint, limit } => {
                    write!(f, "footprint {footprint} is {percent} % of the limit {limit}")
                }
                Breach::SwapBudget { swap_used, baseline, budget } => write!(
                    f,
                    "swap {swap_used}: {percent} % of the budget {budget} over {baseline} at start"
                ),
                other => write!(f, "{percent} % of the way to: {other}"),
            },
            Self::NearSwap { r } => {
                write!(f, "the machine is about to swap (distance {r:.2}, it swaps below 0.40)")
            }
            Self::Blind { gauge, seconds } => write!(
                f,
                "{gauge} unknown for {seconds:.0} s; rules that need it stop nothing meanwhile"
            ),
        }
    }
}
