//! How long a rule has been broken, over looks that can fail and clocks that can have gaps.

use std::time::Duration;

/// Looks in a row that all broke a rule. A look that could not tell neither adds to the row nor
/// breaks it, but a row does not reach over a gap: nobody knows what was between.
#[derive(Debug, Clone, Copy)]
pub(super) enum Streak {
    Broken,
    Held { since: Duration, last: Duration, looks: u32 },
}

impl Streak {
    pub(super) fn look(&mut self, broke: bool, now: Duration, gap: Duration) -> Self {
        *self = match *self {
            _ if !broke => Self::Broken,
            Self::Held { since, last, looks } if now.saturating_sub(last) <= gap => {
                Self::Held { since, last: now, looks: looks.saturating_add(1) }
            }
            _ => Self::Held { since: now, last: now, looks: 1 },
        };
        *self
    }

    pub(super) const fn looks(self) -> u32 {
        match self {
            Self::Broken => 0,
            Self::Held { looks, .. } => looks,
        }
    }

    /// Over two looks at least.
    pub(super) fn held_for(self, time: Duration, now: Duration) -> bool {
        self.looks() >= 2 && self.lasted(now) >= time
    }

    pub(super) fn lasted(self, now: Duration) -> Duration {
        match self {
            Self::Broken => Duration::ZERO,
            Self::Held { since, .. } => now.saturating_sub(since),
        }
    }
}
