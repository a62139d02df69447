//! Who made the machine's memory grow. Demand moves only when somebody takes or gives back memory,
//! so the job's part of its growth is the job's part of the blame.

use std::fmt;
use std::time::Duration;

use super::trend::Trend;
use super::{Baseline, Look};
use crate::Bytes;

/// What happened last counts first.
const LATELY: Duration = Duration::from_secs(3);
/// Then what happened a little earlier.
const EARLIER: Duration = Duration::from_secs(10);
/// Less growth than this is anybody's.
const TRIFLE: Bytes = Bytes::mib(64);
/// From this share on the job is to blame.
const HALF: f64 = 0.5;

/// Whose growth it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blame {
    /// Nobody can tell: a rule then takes it for the job's, as the seed did.
    Unknown,
    /// The job made this share of the growth, at least half.
    Ours(f64),
    /// The job made this share of the growth, less than half.
    Others(f64),
}

impl Blame {
    /// Of a job that made this share of the growth, 0 to 1, where that is known.
    pub fn of_share(share: Option<f64>) -> Self {
        match share {
            None => Self::Unknown,
            Some(share) if share >= HALF => Self::Ours(share),
            Some(share) => Self::Others(share),
        }
    }

    /// The name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ours(_) => "job",
            Self::Others(_) => "others",
        }
    }

    /// The job's share of the growth, 0 to 1, where that is known.
    pub const fn share(self) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Ours(share) | Self::Others(share) => Some(share),
        }
    }

    /// Over the last three seconds, or where nothing grew in them the last ten, or else since the
    /// job's start, when it held nothing.
    pub(super) fn of(trend: &Trend, look: &Look, start: &Baseline, now: Duration) -> Self {
        let Some((held, demand)) = look.footprint.zip(look.demand) else { return Self::Unknown };
        let growth_since = |ago| {
            let (held_then, demand_then) =
                trend.before(now, ago, |look| look.footprint.zip(look.demand))?;
            Some((held - held_then, demand - demand_then))
        };
        let since_start = start.demand.map(|then| (held - Bytes::ZERO, demand - then));
        let growths = [growth_since(LATELY), growth_since(EARLIER), since_start];
        let mut known = growths.into_iter().flatten().peekable();
        if known.peek().is_none() {
            return Self::Unknown;
        }
        match known.find_map(|(ours, all)| share(ours, all)) {
            // The machine as a whole did not grow, and neither did the job.
            None => Self::Others(0.0),
            share => Self::of_share(share),
        }
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Ours(share) => write!(f, "the job, {:.0} % of the growth", share * 100.0),
            Self::Others(share) => {
                write!(f, "others, the job made {:.0} % of the growth", share * 100.0)
            }
        }
    }
}

/// None where nothing grew. A job that grew while others gave memory back made all of the growth.
fn share(ours: i128, all: i128) -> Option<f64> {
    let largest = ours.max(all);
    if largest < i128::from(TRIFLE.0) {
        return None;
    }
    Some((ours.max(0) as f64 / all.max(ours).max(1) as f64).clamp(0.0, 1.0))
}
