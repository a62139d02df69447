//! Whether the memory of a job that is gone has come back. Returning 10 GB takes up to 1.6 s after
//! the last process has ended, and GPU memory can stay wired until the next reboot; whoever judges
//! or starts something in between judges a machine that is not there.

use std::time::Duration;

use crate::{Bytes, Reading};

/// How long the return may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A job smaller than this drowns in what others do meanwhile: a build beside it takes and gives back
/// hundreds of megabytes.
const TRIFLE: Bytes = Bytes::gib(1);

/// Where the memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// On its way.
    Waiting,
    /// Back, or nobody can tell.
    Back,
    /// Not back: about this much is held by nobody who is alive.
    Stranded(Bytes),
}

/// Watches the memory come back.
#[derive(Debug, Clone, Copy)]
pub struct Recovery {
    held: Bytes,
    demand: Option<Bytes>,
    began: Duration,
}

impl Recovery {
    /// `last` is the last look at the job while it was there.
    pub fn begin(last: &Reading, now: Duration) -> Self {
        let held = last.footprint.unwrap_or_default();
        Self { held, demand: last.demand.filter(|_| held >= TRIFLE), began: now }
    }

    /// Half of it back is back: others may have taken some of the rest.
    pub fn observe(&self, reading: &Reading, now: Duration) -> Return {
        let Some((before, demand)) = self.demand.zip(reading.demand) else { return Return::Back };
        let returned = before.saturating_sub(demand);
        if returned.0 >= self.held.0 / 2 {
            Return::Back
        } else if now.saturating_sub(self.began) < PATIENCE {
            Return::Waiting
        } else {
            Return::Stranded(self.held.saturating_sub(returned))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(footprint: u64, demand: u64) -> Reading {
        Reading {
            footprint: Some(Bytes::gib(footprint)),
            demand: Some(Bytes::gib(demand)),
            ..Reading::default()
        }
    }

    fn after(seconds: u64, demand: u64) -> Return {
        let recovery = Recovery::begin(&reading(20, 40), Duration::ZERO);
        recovery.observe(&reading(0, demand), Duration::from_secs(seconds))
    }

    #[test]
    fn memory_that_returns_after_two_seconds_is_waited_for() {
        assert_eq!(after(0, 40), Return::Waiting);
        assert_eq!(after(1, 35), Return::Waiting);
        assert_eq!(after(2, 21), Return::Back);
    }

    #[test]
    fn gpu_memory_that_stays_wired_is_told_as_stranded() {
        assert_eq!(after(9, 39), Return::Waiting);
        assert_eq!(after(10, 39), Return::Stranded(Bytes::gib(19)));
    }

    #[test]
    fn where_nobody_can_tell_nobody_waits() {
        let unknown = Reading { demand: None, ..reading(20, 0) };
        let recovery = Recovery::begin(&unknown, Duration::ZERO);
        assert_eq!(recovery.observe(&unknown, Duration::ZERO), Return::Back);
        let small = Recovery::begin(&reading(0, 40), Duration::ZERO);
        assert_eq!(small.observe(&reading(0, 40), Duration::ZERO), Return::Back);
    }
}
