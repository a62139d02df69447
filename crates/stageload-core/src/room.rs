//! When a job may start: there is room, and the machine has been quiet. Who lists the busy
//! processes is the business of the `stageload` crate. When a running job is stopped: `guard.rs`.

use std::fmt;
use std::time::Duration;

use crate::{Bytes, Percent, Reading};

/// What must hold before a job starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomPolicy {
    /// Memory that must be available.
    pub wait_free: Percent,
    /// Swap the job may add later; only counted against `swap_limit`.
    pub swap_budget: Bytes,
    /// The most swap the machine may use.
    pub swap_limit: Option<Bytes>,
    /// For how long no busy process may have been seen. A chain of jobs leaves short gaps: a run
    /// that started in one on 2026-10-05 was past its swap budget 20 s later, when the next video
    /// job came.
    pub quiet_for: Duration,
    /// How long to wait for room.
    pub start_timeout: Duration,
}

/// One thing a start waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    /// Too little memory is available.
    LevelLow {
        /// What is available.
        level: Percent,
        /// What must be.
        wanted: Percent,
    },
    /// A gauge that must be known is not.
    Unknown {
        /// Which.
        gauge: &'static str,
    },
    /// Swap in use and the budget together are over the limit.
    SwapHigh {
        /// Swap in use.
        swap_used: Bytes,
        /// What the job may add.
        budget: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// Processes that match `--busy` are running.
    Busy(Vec<String>),
    /// They are gone, but not for long enough.
    Quiet {
        /// For how long they have been gone.
        so_far: Duration,
        /// For how long they must be.
        wanted: Duration,
    },
}

impl Want {
    /// Whether both are one line to a reader: a level that moves by a percent is no news.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Busy(a), Self::Busy(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LevelLow { level, wanted } => write!(f, "memory available {level} < {wanted}"),
            Self::Unknown { gauge } => write!(f, "{gauge} unknown"),
            Self::SwapHigh { swap_used, budget, limit } => {
                write!(f, "swap {swap_used} + budget {budget} > limit {limit}")
            }
            Self::Busy(commands) => write!(f, "busy: {}", shortened(commands)),
            Self::Quiet { so_far, wanted } => {
                write!(f, "quiet for {} s of {} s", so_far.as_secs(), wanted.as_secs())
            }
        }
    }
}

fn shortened(commands: &[String]) -> String {
    let short = |command: &String| command.chars().take(80).collect::<String>();
    commands.iter().take(3).map(short).collect::<Vec<_>>().join("; ")
}

/// Whether the job may start.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// It may.
    Ready,
    /// Not yet.
    Wait(Vec<Want>),
    /// Not within the time it was given.
    TimedOut(Vec<Want>),
}

/// Waits for room for one job.
#[derive(Debug, Clone)]
pub struct Room {
    policy: RoomPolicy,
    watches_busy: bool,
    since: Duration,
    quiet_since: Option<Duration>,
}

impl Room {
    /// A gate that opens at the earliest at `now`. `watches_busy`: whether there are patterns of
    /// busy processes at all; without them no quiet time is waited for.
    pub const fn new(policy: RoomPolicy, watches_busy: bool, now: Duration) -> Self {
        Self { policy, watches_busy, since: now, quiet_since: None }
    }

    /// Judges one look at the machine and the busy processes seen in it.
    pub fn observe(&mut self, reading: &Reading, busy: Vec<String>, now: Duration) -> Entry {
        let wants: Vec<Want> = [self.level_want(reading), self.swap_want(reading)]
            .into_iter()
            .flatten()
            .chain(self.quiet_want(busy, now))
            .collect();
        let waited = now.saturating_sub(self.since);
        match wants {
            wants if wants.is_empty() => Entry::Ready,
            wants if waited >= self.policy.start_timeout => Entry::TimedOut(wants),
            wants => Entry::Wait(wants),
        }
    }

    fn level_want(&self, reading: &Reading) -> Option<Want> {
        let wanted = self.policy.wait_free;
        match reading.level {
            _ if wanted.get() == 0 => None,
            None => Some(Want::Unknown { gauge: "memory available" }),
            Some(level) => (level < wanted).then_some(Want::LevelLow { level, wanted }),
        }
    }

    fn swap_want(&self, reading: &Reading) -> Option<Want> {
        let (limit, budget) = (self.policy.swap_limit?, self.policy.swap_budget);
        let Some(swap_used) = reading.swap_used else {
            return Some(Want::Unknown { gauge: "swap" });
        };
        (swap_used + budget > limit).then_some(Want::SwapHigh { swap_used, budget, limit })
    }

    fn quiet_want(&mut self, busy: Vec<String>, now: Duration) -> Option<Want> {
        if !busy.is_empty() {
            self.quiet_since = None;
            return Some(Want::Busy(busy));
        }
        if !self.watches_busy {
            return None;
        }
        let wanted = self.policy.quiet_for;
        let so_far = now.saturating_sub(*self.quiet_since.get_or_insert(now));
        (so_far < wanted).then_some(Want::Quiet { so_far, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RoomPolicy {
        RoomPolicy {
            wait_free: Percent::new(40).unwrap(),
            swap_budget: Bytes::gib(8),
            swap_limit: None,
            quiet_for: secs(60),
            start_timeout: secs(1800),
        }
    }

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn level(percent: u8) -> Reading {
        Reading { level: Percent::new(percent), ..Reading::default() }
    }

    fn words(entry: &Entry) -> String {
        match entry {
            Entry::Ready => "ready".into(),
            Entry::Wait(wants) | Entry::TimedOut(wants) => {
                wants.iter().map(Want::to_string).collect::<Vec<_>>().join(", ")
            }
        }
    }

    #[test]
    fn a_job_starts_at_once_where_there_is_room() {
        let mut room = Room::new(policy(), false, secs(7));
        assert_eq!(room.observe(&level(40), vec![], secs(7)), Entry::Ready);
    }

    #[test]
    fn it_waits_for_memory_and_gives_up_in_time() {
        let mut room = Room::new(policy(), false, secs(5));
        let waiting = room.observe(&level(35), vec![], secs(5));
        assert_eq!(words(&waiting), "memory available 35% < 40%");
        assert!(matches!(room.observe(&level(39), vec![], secs(1805)), Entry::TimedOut(_)));
    }

    #[test]
    fn it_keeps_the_budget_free_below_an_absolute_limit() {
        let mut room =
            Room::new(RoomPolicy { swap_limit: Some(Bytes::gib(10)), ..policy() }, false, secs(0));
        let used = |gib| Reading { swap_used: Some(Bytes::gib(gib)), ..level(90) };
        assert_eq!(room.observe(&used(2), vec![], secs(0)), Entry::Ready);
        let waiting = room.observe(&used(3), vec![], secs(1));
        assert_eq!(words(&waiting), "swap 3.00 GB + budget 8.00 GB > limit 10.00 GB");
    }

    #[test]
    fn it_waits_until_the_busy_ones_have_been_gone_for_long_enough() {
        let mut room = Room::new(policy(), true, secs(0));
        let busy = || vec!["ffmpeg -i a.mov".to_owned()];
        assert_eq!(words(&room.observe(&level(90), vec![], secs(0))), "quiet for 0 s of 60 s");
        assert_eq!(words(&room.observe(&level(90), busy(), secs(50))), "busy: ffmpeg -i a.mov");
        assert_eq!(words(&room.observe(&level(90), vec![], secs(61))), "quiet for 0 s of 60 s");
        assert_eq!(words(&room.observe(&level(90), vec![], secs(120))), "quiet for 59 s of 60 s");
        assert_eq!(room.observe(&level(90), vec![], secs(121)), Entry::Ready);
    }

    #[test]
    fn an_unknown_level_holds_a_start_unless_nothing_is_asked_of_it() {
        let mut room = Room::new(policy(), false, secs(0));
        let entry = room.observe(&Reading::default(), vec![], secs(0));
        assert_eq!(words(&entry), "memory available unknown");
        let anything = RoomPolicy { wait_free: Percent::default(), ..policy() };
        let mut open = Room::new(anything, false, secs(0));
        assert_eq!(open.observe(&Reading::default(), vec![], secs(0)), Entry::Ready);
    }

    #[test]
    fn a_level_that_moves_by_a_percent_is_no_news() {
        let low = |percent| Want::LevelLow {
            level: Percent::new(percent).unwrap(),
            wanted: Percent::new(40).unwrap(),
        };
        assert!(low(30).is_like(&low(31)));
        assert!(!low(30).is_like(&Want::Busy(vec![])));
        assert!(!Want::Busy(vec!["a".into()]).is_like(&Want::Busy(vec!["b".into()])));
    }
}
