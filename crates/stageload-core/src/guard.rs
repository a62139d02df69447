//! When a running job is stopped. Looks go in, a verdict comes out; who takes the looks and sends
//! the signals is the business of the `stageload` crate. When a job may start: `room.rs`; how hard
//! it is stopped: `escalation.rs`.
//!
//! `policy` holds the lines, `breach` the words, `trend` and `blame` what several looks say
//! together, `streak` how long a line has been crossed, `pace` when to look again.

mod blame;
mod breach;
mod pace;
mod policy;
mod streak;
mod trend;
mod warnings;

use std::time::Duration;

pub use blame::Blame;
pub use breach::{Breach, Forecast, Reason, Warning};
pub use policy::{Baseline, Policy};

use crate::{Bytes, Event, EventKind, Moment, Percent, Reading};
use streak::Streak;
use trend::Trend;

/// How long the level must stay low. The seed waited for two looks 5 s apart; in the Pixal3D trace
/// the level fell from 17 to 6 % within 2.8 s, so 5 s is late, and it jumped from 33 to 46 % within
/// 1 s while little happened, so a single look is early.
const LOW_FOR: Duration = Duration::from_secs(3);
/// Still at the floor after this long is no flicker of one look. Looks can be closer together than
/// this, where somebody polls that fast, and then two of them say no more than one.
const STILL_AT_FLOOR: Duration = Duration::from_millis(100);
/// A footprint over the limit that does not rise is a peak that may pass.
const OVER_FOR: Duration = Duration::from_millis(300);
/// One that rises is stopped after this: at the 1.7 GB/s of the seed's burst it costs 85 MB.
const RISING_FOR: Duration = Duration::from_millis(50);
/// Swap falls late and rises in steps.
const SWAP_OVER_FOR: Duration = Duration::from_secs(1);
/// A footprint follows a release only this much later: 26.7 GB were read where 21.2 GB were left,
/// 0.25 to 0.5 s after a model was unloaded (omlx#1833).
const RELEASE_LAG: Duration = Duration::from_millis(500);
/// What stopping a job takes, from the signal to the memory: 0.1 s at 1 GB, 1.6 s at 10 GB; a job
/// stops growing long before.
const TEARDOWN: Duration = Duration::from_secs(1);
/// A job loads what it needs soon after its start, and soon after it enters a stage.
const LIVELY_AFTER_START: Duration = Duration::from_secs(3);
const LIVELY_AFTER_EVENT: Duration = Duration::from_secs(1);
/// After a sleep everything is paged and timed differently for a while; only the floor counts.
/// A session was killed at its resume where this was not seen to (systemd#35270).
const AFTER_SLEEP: Duration = Duration::from_secs(10);
/// Clocks that differ by less have not slept but were read one after the other.
const SLEEP: Duration = Duration::from_secs(1);
/// One warning of a kind in this time; one each second was too many (exelban/stats#2208).
const WARN_EVERY: Duration = Duration::from_secs(60);
/// A gauge that fails for so long is worth a warning.
const BLIND_FOR: Duration = Duration::from_secs(3);
/// Values older than this many seconds decide nothing.
const STALE: f64 = 3.0;
/// A line is close from here.
const CLOSE_PERCENT: u64 = 80;

/// macOS's thresholds of available over available and compressed pages (XNU `vm_compressor.c`,
/// divisors 20, 25, 35, 50): it warns, it swaps, it is critical; below the last it is catching up.
const WARN_BELOW: f64 = 0.50;
const NEAR_SWAP: f64 = 0.42;
const SWAPS_BELOW: f64 = 0.40;
const CRITICAL_BELOW: f64 = 0.343;
const RATIO_FLOOR: f64 = 0.22;

/// What to do with the job.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Let it run.
    Continue,
    /// Let it run, and tell somebody. At most one a minute of each kind.
    Warn(Warning),
    /// Stop it.
    Stop(Reason),
}

/// What the rules read of a reading.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    footprint: Option<Bytes>,
    swap_used: Option<Bytes>,
    level: Option<Percent>,
    claimable: Option<Bytes>,
    r: Option<f64>,
    demand: Option<Bytes>,
}

impl Look {
    /// Without what is too old to decide on.
    fn of(reading: &Reading) -> Self {
        let is_fresh = reading.age.is_none_or(|age| age <= STALE);
        Self {
            footprint: reading.footprint,
            swap_used: reading.swap_used,
            level: reading.level,
            claimable: reading.claimable,
            r: reading.r.filter(|_| is_fresh),
            demand: reading.demand.filter(|_| is_fresh),
        }
    }
}

/// A broken rule, and by how fast a move if it is not broken yet.
type Found = (Breach, Option<Forecast>);

/// Watches one job against one policy.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: Policy,
    baseline: Baseline,
    stage: Option<String>,
    trend: Trend,
    before_last: Option<Look>,
    last: Option<Look>,
    last_at: Option<Moment>,
    /// Until then the job is looked at often, whatever it does.
    lively_until: Option<Duration>,
    /// How the footprint moved between the last two looks, and in what time.
    step: i64,
    step_time: Duration,
    woke: Option<Duration>,
    released: Vec<(Duration, Bytes)>,
    over: Streak,
    over_swap: Streak,
    low: Streak,
    far_below: Streak,
    at_floor: Streak,
    near_swap: Streak,
    blind: [Streak; 3],
    warned: [Option<Duration>; 12],
}

impl Guard {
    /// A guard for a job that starts on a machine like `baseline`.
    pub fn new(policy: Policy, baseline: Baseline) -> Self {
        Self {
            policy,
            baseline,
            stage: None,
            trend: Trend::new(),
            before_last: None,
            last: None,
            last_at: None,
            lively_until: None,
            step: 0,
            step_time: Duration::ZERO,
            woke: None,
            released: Vec::with_capacity(16),
            over: Streak::Broken,
            over_swap: Streak::Broken,
            low: Streak::Broken,
            far_below: Streak::Broken,
            at_floor: Streak::Broken,
            near_swap: Streak::Broken,
            blind: [Streak::Broken; 3],
            warned: [None; 12],
        }
    }

    /// What the machine was like at the start, as far as it is known by now.
    pub const fn baseline(&self) -> &Baseline {
        &self.baseline
    }

    /// Takes in what the job says of itself: the stage, so that a reason can name it, and releases,
    /// because the footprint follows them late.
    pub fn hear(&mut self, event: &Event, now: Moment) {
        self.lively_until = self.lively_until.max(Some(now.awake + LIVELY_AFTER_EVENT));
        match event.kind {
            EventKind::Stage if event.stage.is_some() => self.stage.clone_from(&event.stage),
            EventKind::Release if self.released.len() < self.released.capacity() => {
                self.released.push((now.awake, event.nbytes.unwrap_or_default()));
            }
            _ => {}
        }
    }

    /// Judges one look. Durations are counted on the clock that stops in sleep.
    pub fn observe(&mut self, reading: &Reading, now: Moment) -> Verdict {
        let look = Look::of(reading);
        self.lively_until.get_or_insert(now.awake + LIVELY_AFTER_START);
        self.take_in(look, now);
        let now = now.awake;
        let floor = self.floor_breach(&look, now);
        let limit = self.limit_breach(&look, now).map(|breach| (breach, None));
        let machine = self.machine_breach(&look, now);
        if let Some(found) = floor {
            return self.stop(found, &look, now);
        }
        if self.has_just_woken(now) {
            return Verdict::Continue;
        }
        if let Some(found) = limit {
            return self.stop(found, &look, now);
        }
        let blamed = machine.map(|found| (found, self.blame(&look, now)));
        match blamed {
            Some(((breach, _), Blame::Others(share))) => {
                self.warn(Warning::NotOurs { breach, share }, now)
            }
            Some((found, _)) => self.stop(found, &look, now),
            None => self.warning(&look, now),
        }
    }

    fn take_in(&mut self, look: Look, now: Moment) {
        if self.last_at.is_some_and(|last| now.slept_since(last) > SLEEP) {
            self.woke = Some(now.awake);
            self.trend.clear();
            for streak in [&mut self.over, &mut self.over_swap, &mut self.low, &mut self.near_swap]
            {
                *streak = Streak::Broken;
            }
        }
        self.released.retain(|(t, _)| now.awake.saturating_sub(*t) <= RELEASE_LAG);
        self.step = match (self.last.and_then(|last| last.footprint), look.footprint) {
            (Some(before), Some(held)) => (held - before) as i64,
            _ => 0,
        };
        self.step_time = self.last_at.map_or(Duration::ZERO, |last| now.since(last));
        (self.before_last, self.last, self.last_at) = (self.last, Some(look), Some(now));
        self.baseline.swap_used = self.baseline.swap_used.or(look.swap_used);
        self.baseline.demand = self.baseline.demand.or(look.demand);
        self.trend.push(look, now.awake);
    }

    fn has_just_woken(&self, now: Duration) -> bool {
        self.woke.is_some_and(|woke| now.saturating_sub(woke) < AFTER_SLEEP)
    }

    fn stop(&self, (breach, forecast): Found, look: &Look, now: Duration) -> Verdict {
        let share = self.blame(look, now).share();
        Verdict::Stop(Reason { breach, forecast, share, stage: self.stage.clone() })
    }

    fn blame(&self, look: &Look, now: Duration) -> Blame {
        Blame::of(&self.trend, look, &self.baseline, now)
    }

    /// There is no forecast for the job's own limit: going up to 95 % of it as fast as one likes
    /// is what a limit is for.
    fn limit_breach(&mut self, look: &Look, now: Duration) -> Option<Breach> {
        let (footprint, limit) = look.footprint.zip(self.policy.limit)?;
        let released = self.released.iter().map(|(_, bytes)| *bytes).sum();
        let streak = self.over.look(footprint > limit + released, now, self.policy.gap());
        let rises = self.step > 0 && streak.held_for(RISING_FOR, now);
        (rises || streak.held_for(OVER_FOR, now)).then_some(Breach::Limit { footprint, limit })
    }

    /// What is left over for anybody, whoever took it.
    fn floor_breach(&mut self, look: &Look, now: Duration) -> Option<Found> {
        let (found, is_at) = self.floor_now(look);
        let at = self.at_floor.look(is_at, now, self.policy.gap());
        let low = self.far_below_level(look, now);
        if at.held_for(STILL_AT_FLOOR, now) {
            return found.map(|breach| (breach, None));
        }
        low.map(|breach| (breach, None)).or_else(|| self.floor_ahead(look, now))
    }

    fn floor_now(&self, look: &Look) -> (Option<Breach>, bool) {
        let floor = self.baseline.memory.map(|memory| self.policy.floor(memory));
        let claimable = look.claimable.zip(floor).map(|(claimable, floor)| {
            // macOS keeps little free as long as it can compress: there its ratio must agree.
            let is_at = claimable < floor && look.r.is_none_or(|r| r < CRITICAL_BELOW);
            (Breach::Floor { claimable, floor }, is_at)
        });
        let ratio = look.r.map(|r| (Breach::FloorRatio { r, floor: RATIO_FLOOR }, r < RATIO_FLOOR));
        let broken = [ratio, claimable].into_iter().flatten().find(|(_, is_at)| *is_at);
        (broken.map(|(breach, _)| breach), broken.is_some())
    }

    /// The level is a whole percent and never a forecast's equal, but every system has it.
    fn far_below_level(&mut self, look: &Look, now: Duration) -> Option<Breach> {
        let (level, floor) = (look.level?, self.policy.kill_free);
        let is_far_below = u32::from(level.get()) * 3 < u32::from(floor.get());
        let streak = self.far_below.look(is_far_below, now, self.policy.gap());
        let seconds = streak.lasted(now).as_secs_f64();
        streak.held_for(STILL_AT_FLOOR, now).then_some(Breach::LevelLow { level, floor, seconds })
    }

    /// Only for a job that is known to be what takes the memory: a forecast is no fact.
    fn floor_ahead(&self, look: &Look, now: Duration) -> Option<Found> {
        if !matches!(self.blame(look, now), Blame::Ours(_)) {
            return None;
        }
        if let Some(r) = look.r {
            let forecast = self.ahead(self.trend.rate(now, |look| look.r)?);
            let is_ahead = r + forecast.per_second * forecast.seconds < RATIO_FLOOR;
            return is_ahead
                .then_some((Breach::FloorRatio { r, floor: RATIO_FLOOR }, Some(forecast)));
        }
        let claimable = look.claimable?;
        let floor = self.policy.floor(self.baseline.memory?);
        let rate = self.trend.rate(now, |look| look.claimable.map(|left| left.0 as f64))?;
        let forecast = self.ahead(rate);
        let left = claimable.0 as f64 + rate * forecast.seconds;
        let is_ahead = rate < 0.0 && left < floor.0 as f64;
        is_ahead.then_some((Breach::Floor { claimable, floor }, Some(forecast)))
    }

    /// At this rate, until something could have been done.
    fn ahead(&self, per_second: f64) -> Forecast {
        let seconds = (self.next_look() + TEARDOWN).as_secs_f64();
        Forecast { per_second, seconds }
    }

    /// The rules on what the job shares with everybody else.
    fn machine_breach(&mut self, look: &Look, now: Duration) -> Option<Found> {
        let swap = self.swap_breach(look, now);
        let level = self.low_level(look, now).map(|breach| (breach, None));
        let near = self.near_swap_breach(look, now);
        swap.or(level).or(near)
    }

    fn swap_breach(&mut self, look: &Look, now: Duration) -> Option<Found> {
        let swap_used = look.swap_used?;
        let baseline = self.baseline.swap_used?;
        let budget = self.policy.swap_budget;
        let by_budget = (Breach::SwapBudget { swap_used, baseline, budget }, baseline + budget);
        let by_limit =
            self.policy.swap_limit.map(|limit| (Breach::SwapLimit { swap_used, limit }, limit));
        let nearest = [Some(by_budget), by_limit].into_iter().flatten();
        let (breach, line) = nearest.min_by_key(|(_, line)| *line)?;
        let rate = self.trend.rate(now, |look| look.swap_used.map(|used| used.0 as f64));
        let streak = self.over_swap.look(swap_used > line, now, self.policy.gap());
        // Swap that is given back is over its line only on paper.
        let is_over = streak.held_for(SWAP_OVER_FOR, now) && rate.is_none_or(|rate| rate > 0.0);
        if is_over {
            return Some((breach, None));
        }
        let forecast = rate.filter(|rate| *rate > 0.0).map(|rate| self.ahead(rate))?;
        let then = swap_used.0 as f64 + forecast.per_second * forecast.seconds;
        let is_ahead = then > line.0 as f64;
        is_ahead.then_some((breach, Some(forecast)))
    }

    fn low_level(&mut self, look: &Look, now: Duration) -> Option<Breach> {
        let (level, floor) = (look.level?, self.policy.kill_free);
        let low = self.low.look(level < floor, now, self.policy.gap());
        let seconds = low.lasted(now).as_secs_f64();
        low.held_for(LOW_FOR, now).then_some(Breach::LevelLow { level, floor, seconds })
    }

    /// A rule only for a job that may add no swap at all.
    fn near_swap_breach(&mut self, look: &Look, now: Duration) -> Option<Found> {
        let r = look.r.filter(|_| self.policy.swap_budget == Bytes::ZERO)?;
        let streak = self.near_swap.look(r < NEAR_SWAP, now, self.policy.gap());
        let breach = Breach::NearSwap { r, swaps_below: SWAPS_BELOW };
        if r < SWAPS_BELOW && streak.held_for(SWAP_OVER_FOR, now) {
            return Some((breach, None));
        }
        let falling = self.trend.rate(now, |look| look.r).filter(|_| r < NEAR_SWAP);
        let forecast = falling.map(|rate| self.ahead(rate))?;
        let is_ahead = r + forecast.per_second * forecast.seconds < SWAPS_BELOW;
        is_ahead.then_some((breach, Some(forecast)))
    }
}

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
