//! When a running job is stopped. Looks go in, a verdict comes out; who takes the looks and sends
//! the signals is the business of the `stageload` crate. When a job may start: `room.rs`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::{Bytes, Event, EventKind, Percent, Reading};

/// How long the level must stay low. The seed waited for two looks 5 s apart; in the Pixal3D trace
/// the level fell from 17 to 6 % within 2.8 s, so 5 s is late, and it jumped from 33 to 46 % within
/// 1 s while little happened, so a single look is early.
const LOW_FOR: Duration = Duration::from_secs(3);

/// A level under a third of the floor is no dip: in the Pixal3D trace the machine was already
/// adding 1 GB of swap per half second at 6 %.
const FAR_BELOW: u32 = 3;

/// Still that low after this long is no flicker of one look. Looks can be closer together than
/// this, where somebody polls that fast, and then two of them say no more than one.
const STILL_FAR_BELOW: Duration = Duration::from_millis(100);

/// While a rule waits for a second look, the next one comes this soon even if looks are seconds
/// apart: at the 1.7 GB/s of the seed's burst, a poll of 5 s would cost 8.5 GB.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// A job this far over its limit is stopped at the first look. At the 1.7 GB/s of the seed's
/// burst, waiting for a second look costs 170 MB per 100 ms.
const OVERSHOOT_PERCENT: u64 = 10;

/// What a job may do to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The most the whole job may hold.
    pub limit: Option<Bytes>,
    /// How much swap may grow over its use at the job's start. The front ends default to 8G: on a
    /// 48 GB machine the eager Qwen run reached +7.97 GB and the offloaded one +9.58 GB.
    pub swap_budget: Bytes,
    /// The most swap the machine may use, whoever uses it.
    pub swap_limit: Option<Bytes>,
    /// The job is stopped when less than this stays available.
    pub kill_free: Percent,
    /// The longest time between two looks. Looks further apart than a few of these (a sleeping
    /// machine, a sensor that failed) are not looks in a row.
    pub poll: Duration,
}

impl Policy {
    /// Three looks may be late, and at least twice the seed's poll of 5 s is no gap.
    fn gap(&self) -> Duration {
        Duration::from_secs(10).max(self.poll.saturating_mul(3))
    }
}

/// A rule that a reading broke, with every number the decision was made on.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
        }
    }
}

/// Why a job is stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The rule and the numbers.
    #[serde(flatten)]
    pub breach: Breach,
    /// The stage the job was in, if it said.
    pub stage: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Some(stage) => write!(f, "{} in stage {stage}", self.breach),
            None => write!(f, "{}", self.breach),
        }
    }
}

/// What to do with the job.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Let it run.
    Continue,
    /// Stop it.
    Stop(Reason),
}

/// Watches one job against one policy.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: Policy,
    baseline: Option<Bytes>,
    stage: Option<String>,
    over: Streak,
    low: Streak,
    far_below: Streak,
}

impl Guard {
    /// A guard for a job that starts with `baseline` swap in use. An unknown baseline is taken
    /// from the first look that knows.
    pub const fn new(policy: Policy, baseline: Option<Bytes>) -> Self {
        let [over, low, far_below] = [Streak::Broken; 3];
        Self { policy, baseline, stage: None, over, low, far_below }
    }

    /// How long until the next look: the poll, or less while a broken rule waits for a second one.
    pub fn next_look(&self) -> Duration {
        let is_suspect = self.over.looks() > 0 || self.low.looks() > 0;
        if is_suspect { self.policy.poll.min(SECOND_LOOK) } else { self.policy.poll }
    }

    /// Takes in what the job says of itself, so that a reason can name the stage.
    pub fn hear(&mut self, event: &Event) {
        if event.kind == EventKind::Stage && event.stage.is_some() {
            self.stage.clone_from(&event.stage);
        }
    }

    /// Judges one look. `now` is any clock that only runs forward and stops in sleep.
    pub fn observe(&mut self, reading: &Reading, now: Duration) -> Verdict {
        let over = self.over_limit(reading.footprint, now);
        let swap = self.swap_breach(reading.swap_used);
        let low = self.low_level(reading.level, now);
        match over.or(swap).or(low) {
            Some(breach) => Verdict::Stop(Reason { breach, stage: self.stage.clone() }),
            None => Verdict::Continue,
        }
    }

    fn over_limit(&mut self, footprint: Option<Bytes>, now: Duration) -> Option<Breach> {
        let (footprint, limit) = footprint.zip(self.policy.limit)?;
        let streak = self.over.look(footprint > limit, now, self.policy.gap());
        let far_over = limit + Bytes(limit.0 / 100 * OVERSHOOT_PERCENT);
        let stop = streak.looks() >= 2 || footprint > far_over;
        stop.then_some(Breach::Limit { footprint, limit })
    }

    /// Swap is sticky and falls late, so one look is enough: there are no spikes to wait out.
    fn swap_breach(&mut self, swap_used: Option<Bytes>) -> Option<Breach> {
        let swap_used = swap_used?;
        let baseline = *self.baseline.get_or_insert(swap_used);
        let budget = self.policy.swap_budget;
        if let Some(limit) = self.policy.swap_limit.filter(|limit| swap_used > *limit) {
            return Some(Breach::SwapLimit { swap_used, limit });
        }
        (swap_used > baseline + budget).then_some(Breach::SwapBudget {
            swap_used,
            baseline,
            budget,
        })
    }

    fn low_level(&mut self, level: Option<Percent>, now: Duration) -> Option<Breach> {
        let (level, floor) = (level?, self.policy.kill_free);
        let low = self.low.look(level < floor, now, self.policy.gap());
        let is_far_below = u32::from(level.get()) * FAR_BELOW < u32::from(floor.get());
        let far_below = self.far_below.look(is_far_below, now, self.policy.gap());
        let stop = low.held_for(LOW_FOR, now) || far_below.held_for(STILL_FAR_BELOW, now);
        let seconds = low.lasted(now).as_secs_f64();
        stop.then_some(Breach::LevelLow { level, floor, seconds })
    }
}

/// Looks in a row that all broke a rule. A look that could not tell neither adds to the row nor
/// breaks it, but a row does not reach over a gap: nobody knows what was between.
#[derive(Debug, Clone, Copy)]
enum Streak {
    Broken,
    Held { since: Duration, last: Duration, looks: u32 },
}

impl Streak {
    fn look(&mut self, broke: bool, now: Duration, gap: Duration) -> Self {
        *self = match *self {
            _ if !broke => Self::Broken,
            Self::Held { since, last, looks } if now.saturating_sub(last) <= gap => {
                Self::Held { since, last: now, looks: looks.saturating_add(1) }
            }
            _ => Self::Held { since: now, last: now, looks: 1 },
        };
        *self
    }

    const fn looks(self) -> u32 {
        match self {
            Self::Broken => 0,
            Self::Held { looks, .. } => looks,
        }
    }

    /// Over two looks at least.
    fn held_for(self, time: Duration, now: Duration) -> bool {
        self.looks() >= 2 && self.lasted(now) >= time
    }

    fn lasted(self, now: Duration) -> Duration {
        match self {
            Self::Broken => Duration::ZERO,
            Self::Held { since, .. } => now.saturating_sub(since),
        }
    }
}

#[cfg(test)]
mod tests;
