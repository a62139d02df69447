//! How hard a job is stopped: it is asked to end, has a grace to do it in, and is killed when that
//! is over. Who sends the signals is the business of the `stageload` crate.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Span, UnitError};

/// The grace of a small job, as the seed's.
const SHORTEST: Duration = Duration::from_secs(5);
/// And of the largest. Giving 424 GB of wired memory back took 2.7 to 4.1 s (omlx#2184), but a
/// SIGKILL in that time left it wired until the next reboot.
const LONGEST: Duration = Duration::from_secs(30);
/// What a gigabyte adds.
const PER_GB: Duration = Duration::from_millis(500);
/// A job that has been told to end and still grows by this much, and a hundredth of what it held,
/// is killed at once: at 1.7 GB/s a grace of 5 s would cost 8.5 GB.
const STILL_GROWS: Bytes = Bytes::mib(64);
/// How long even SIGKILL may take: returning 10 GB took up to 1.6 s, a process in uninterruptible
/// sleep takes as long as its disk does.
const DEATH: Duration = Duration::from_secs(10);

/// How long a job that is being stopped may take to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grace {
    /// This long.
    Fixed(Duration),
    /// By the job's size: 5 s and half a second for each GB it holds, at most 30 s.
    Auto,
}

impl Grace {
    /// For a job that holds `footprint`.
    pub fn of(self, footprint: Option<Bytes>) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Auto => {
                let by_size = PER_GB.mul_f64(footprint.unwrap_or_default().as_gb());
                (SHORTEST + by_size).min(LONGEST)
            }
        }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::Fixed(SHORTEST)
    }
}

impl FromStr for Grace {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "auto" {
            Ok(Self::Auto)
        } else {
            Ok(Self::Fixed(text.parse::<Span>()?.0))
        }
    }
}

impl fmt::Display for Grace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "{}", Span(*time)),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// What to do next with a job that is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Wait for it.
    Wait,
    /// Send SIGKILL, again in each step: a fork can have been missed by the step before.
    Kill,
    /// Give it up: some of it cannot be killed.
    GiveUp,
}

/// One stopping in progress.
#[derive(Debug, Clone)]
pub struct Escalation {
    grace_ends: Duration,
    /// The least it held since it was told to end.
    least: Option<Bytes>,
    killing_since: Option<Duration>,
}

impl Escalation {
    /// The job has just been told to end. `now` is any clock that only runs forward and stops in sleep.
    pub fn begin(grace: Grace, footprint: Option<Bytes>, now: Duration) -> Self {
        Self { grace_ends: now + grace.of(footprint), least: footprint, killing_since: None }
    }

    /// The next step. `is_urgent`: the machine is at its floor, or somebody insists.
    pub fn step(&mut self, footprint: Option<Bytes>, is_urgent: bool, now: Duration) -> Step {
        let is_out_of_grace = now >= self.grace_ends || is_urgent || self.grows(footprint);
        if is_out_of_grace {
            self.killing_since.get_or_insert(now);
        }
        match self.killing_since {
            None => Step::Wait,
            Some(since) if now.saturating_sub(since) < DEATH => Step::Kill,
            Some(_) => Step::GiveUp,
        }
    }

    fn grows(&mut self, footprint: Option<Bytes>) -> bool {
        let Some(now) = footprint else { return false };
        let least = *self.least.insert(self.least.map_or(now, |least| least.min(now)));
        now > least + STILL_GROWS + Bytes(least.0 / 100)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn begin(gib: u64) -> Escalation {
        Escalation::begin(Grace::default(), Some(Bytes::gib(gib)), secs(100))
    }

    #[test]
    fn a_job_that_ends_within_its_grace_is_not_killed() {
        let mut escalation = begin(5);
        for s in 100..105 {
            assert_eq!(escalation.step(Some(Bytes::gib(5)), false, secs(s)), Step::Wait);
        }
        assert_eq!(escalation.step(Some(Bytes::gib(5)), false, secs(105)), Step::Kill);
    }

    #[test]
    fn growth_cuts_the_grace_even_from_a_low_that_came_after_the_signal() {
        let mut escalation = begin(5);
        assert_eq!(escalation.step(Some(Bytes::gib(2)), false, secs(101)), Step::Wait);
        assert_eq!(escalation.step(Some(Bytes::mib(2100)), false, secs(101)), Step::Wait);
        assert_eq!(escalation.step(Some(Bytes::mib(2200)), false, secs(101)), Step::Kill);
        assert_eq!(escalation.step(Some(Bytes::gib(1)), false, secs(102)), Step::Kill, "for good");
    }

    #[test]
    fn the_floor_or_a_second_signal_cuts_the_grace() {
        assert_eq!(begin(5).step(Some(Bytes::gib(5)), true, secs(100)), Step::Kill);
    }

    #[test]
    fn a_footprint_that_cannot_be_read_neither_cuts_nor_lengthens_the_grace() {
        let mut escalation = begin(5);
        assert_eq!(escalation.step(None, false, secs(104)), Step::Wait);
        assert_eq!(escalation.step(None, false, secs(105)), Step::Kill);
    }

    #[test]
    fn what_does_not_die_in_ten_seconds_is_given_up_and_reported() {
        let mut escalation = begin(5);
        assert_eq!(escalation.step(None, true, secs(101)), Step::Kill);
        assert_eq!(escalation.step(None, false, secs(110)), Step::Kill);
        assert_eq!(escalation.step(None, false, secs(111)), Step::GiveUp);
    }

    #[test]
    fn an_automatic_grace_grows_with_the_job_from_5_to_30_seconds() {
        let of = |gib| Grace::Auto.of(Some(Bytes::gib(gib)));
        assert_eq!(Grace::Auto.of(None), secs(5));
        assert_eq!((of(0), of(10), of(44), of(100)), (secs(5), secs(10), secs(27), secs(30)));
        assert_eq!("auto".parse(), Ok(Grace::Auto));
        assert_eq!("20s".parse(), Ok(Grace::Fixed(secs(20))));
        "automatic".parse::<Grace>().unwrap_err();
    }

    proptest! {
        #[test]
        fn a_job_that_does_not_grow_is_never_killed_before_its_grace_is_over(
            looks in prop::collection::vec((0u64..1500, prop::option::of(0u64..10)), 0..30),
            grace in 0u64..30,
        ) {
            let held = Some(Bytes::gib(10));
            let mut escalation = Escalation::begin(Grace::Fixed(secs(grace)), held, secs(100));
            let (mut now, mut least) = (secs(100), 10);
            for (step, gib) in looks {
                now += Duration::from_millis(step);
                least = gib.map_or(least, |gib| gib.min(least));
                let step = escalation.step(gib.map(|_| Bytes::gib(least)), false, now);
                prop_assert_eq!(step == Step::Wait, now < secs(100 + grace));
            }
        }

        #[test]
        fn once_killed_it_is_asked_no_more_and_waited_for_ten_seconds_at_most(
            looks in prop::collection::vec((0u64..3000, prop::option::of(0u64..64), any::<bool>()), 0..40),
        ) {
            let mut escalation = begin(10);
            let (mut now, mut before, mut killing_since) = (secs(100), Step::Wait, None);
            for (step, gib, is_urgent) in looks {
                now += Duration::from_millis(step);
                let step = escalation.step(gib.map(Bytes::gib), is_urgent, now);
                let rank = |step| [Step::Wait, Step::Kill, Step::GiveUp].iter().position(|s| *s == step);
                prop_assert!(rank(step) >= rank(before), "{before:?} to {step:?}");
                if step != Step::Wait {
                    let since = *killing_since.get_or_insert(now);
                    prop_assert_eq!(step == Step::GiveUp, now >= since + DEATH);
                }
                before = step;
            }
        }
    }
}
