//! A moment on two clocks, so that a night with the lid closed is not taken for eight quiet hours.

use std::time::Duration;

/// Now, as no wall clock says it: neither clock jumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Time the machine was awake. Durations of rules are counted on this clock.
    pub awake: Duration,
    /// Time that counts sleep as well.
    pub total: Duration,
}

impl Moment {
    /// A moment of a machine that has not slept.
    pub const fn awake(time: Duration) -> Self {
        Self { awake: time, total: time }
    }

    /// Waking time from `earlier` to here; zero if it is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.awake.saturating_sub(earlier.awake)
    }

    /// How long the machine slept from `earlier` to here.
    #[must_use]
    pub const fn slept_since(self, earlier: Self) -> Duration {
        let total = self.total.saturating_sub(earlier.total);
        total.saturating_sub(self.since(earlier))
    }
}
