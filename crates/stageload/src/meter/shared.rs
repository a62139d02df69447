//! What the plain sum over a job counts more than once: pages shared since a fork.
//!
//! The exact count takes the kernel 23 ms for each GB, during which the guard looks at nothing. So it
//! is asked for only near the limit, where a wrong sum would stop a job, and so seldom that most of
//! the time is left for looks. Members that write to shared pages get their own, so an old count
//! makes the job look smaller than it is, never larger, unless somebody was forked since.

use std::time::Duration;

use stageload_core::Bytes;

use crate::sys;

/// Below this part of the limit no sum can be so wrong that it matters soon.
const NEAR: f64 = 0.8;
/// A count serves at least this long.
const FRESH: Duration = Duration::from_millis(250);

/// What was counted last.
#[derive(Debug)]
pub(super) struct Shared {
    /// Counting takes at most one part in this of the time.
    time_share: u32,
    excess: Bytes,
    /// The members that were counted.
    pids: Vec<i32>,
    counted: Option<Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    at: Duration,
    took: Duration,
}

impl Shared {
    /// For a guard, which needs a fresh count to stop nobody unjustly.
    pub(super) const fn for_guard() -> Self {
        Self::within(5)
    }

    /// For one who only looks on, and does so all day.
    pub(super) const fn for_onlooker() -> Self {
        Self::within(20)
    }

    const fn within(time_share: u32) -> Self {
        Self { time_share, excess: Bytes::ZERO, pids: Vec::new(), counted: None }
    }

    /// What the job holds, if the plain sum over `pids` is `plain`.
    pub(super) fn correct(
        &mut self,
        plain: Bytes,
        limit: Bytes,
        pids: Vec<i32>,
        count: impl FnOnce(&[i32]) -> Bytes,
    ) -> Bytes {
        if plain.as_gb() < limit.as_gb() * NEAR {
            return plain;
        }
        let now = sys::now();
        if self.is_stale(&pids, now) {
            self.excess = count(&pids);
            self.pids = pids;
            self.counted = Some(Count { at: now, took: sys::now().saturating_sub(now) });
        }
        plain.saturating_sub(self.excess)
    }

    fn is_stale(&self, pids: &[i32], now: Duration) -> bool {
        let Some(count) = self.counted else { return true };
        let age = now.saturating_sub(count.at);
        if self.pids == pids {
            age >= FRESH.max(count.took * self.time_share)
        } else {
            age >= count.took * (self.time_share / 2)
        }
    }
}
