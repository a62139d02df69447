//! How soon to look again: often while memory moves or is short, seldom while nothing happens.

use std::time::Duration;

use super::{Guard, Look};
use crate::Bytes;

/// While memory moves or is short. At the seed's burst of 1.7 GB/s this costs 85 MB.
const BRISK: Duration = Duration::from_millis(50);
/// While a rule waits for a second look, or a limit is a moment away: 34 MB at the same pace.
const URGENT: Duration = Duration::from_millis(20);
/// A level that has been low for a while needs no more than this.
const SECOND_LOOK: Duration = Duration::from_millis(200);
/// A job that is this close to a limit, at the pace it has, may cross it before a brisk look.
const MOMENT: Duration = Duration::from_millis(300);
/// The fastest that memory fills, per second: earlyoom's figure (`main.c`), which no job here has reached.
const FILL: Bytes = Bytes::mib(6000);
/// A move of less is the breathing of an interpreter.
const BREATH: u64 = 16 << 20;

impl Guard {
    /// How long until the next look, and never longer than the policy's poll.
    pub fn next_look(&self) -> Duration {
        let pace = match self.last {
            Some(look) if self.is_urgent(&look) => URGENT,
            Some(look) if self.is_moving(&look) || self.is_short(&look) => BRISK,
            _ if self.is_lively() => BRISK,
            _ if self.low.looks() > 0 => SECOND_LOOK,
            Some(look) => self.time_to_fill(&look).clamp(BRISK, Duration::from_secs(1)),
            None => BRISK,
        };
        pace.min(self.policy.poll)
    }

    /// Whether the job has just started, or just said something: that is when memory is taken, and
    /// what is over within a second would be seen by nobody.
    fn is_lively(&self) -> bool {
        self.last_at.zip(self.lively_until).is_some_and(|(now, until)| now.awake < until)
    }

    fn is_urgent(&self, look: &Look) -> bool {
        if self.over.looks() > 0 || self.far_below.looks() > 0 || self.at_floor.looks() > 0 {
            return true;
        }
        let Some((held, limit)) = look.footprint.zip(self.policy.limit) else { return false };
        let growth = self.step.max(0) as f64 / self.step_time.as_secs_f64().max(0.001);
        limit.saturating_sub(held).0 as f64 <= growth * MOMENT.as_secs_f64()
    }

    fn is_moving(&self, look: &Look) -> bool {
        let swap_moved = |before: Look| {
            let moved = before.swap_used.zip(look.swap_used).map_or(0, |(a, b)| a.0.abs_diff(b.0));
            moved > BREATH
        };
        self.step.unsigned_abs() > BREATH || self.before_last.is_some_and(swap_moved)
    }

    /// Within sight of the level rule, or of swapping.
    fn is_short(&self, look: &Look) -> bool {
        let kill_free = u32::from(self.policy.kill_free.get());
        let level_short =
            look.level.is_some_and(|level| u32::from(level.get()) < kill_free * 3 / 2);
        level_short || look.r.is_some_and(|r| r < super::WARN_BELOW)
    }

    /// Until the nearest line would be reached by the fastest job there could be; half of it, so
    /// that the look comes before.
    fn time_to_fill(&self, look: &Look) -> Duration {
        let to_limit =
            look.footprint.zip(self.policy.limit).map(|(held, limit)| limit.saturating_sub(held));
        let to_floor = look
            .claimable
            .zip(self.baseline.memory)
            .map(|(left, memory)| left.saturating_sub(self.policy.floor(memory)));
        let nearest = to_limit.into_iter().chain(to_floor).min();
        nearest.map_or(Duration::from_secs(1), |room| {
            Duration::from_secs_f64(room.0 as f64 / FILL.0 as f64 / 2.0)
        })
    }
}
