//! When a job may start: there is room, and the machine has been quiet. Who lists the busy
//! processes is the business of the `stageload` crate. When a running job is stopped: `guard.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Moment, Percent, Pressure, Reading};

/// What must hold before a job starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomPolicy {
    /// Memory that must be available.
    pub wait_free: Percent,
    /// Swap the job may add later; only counted against `swap_limit`.
    pub swap_budget: Bytes,
    /// The most swap the machine may use.
    pub swap_limit: Option<Bytes>,
    /// The expected peak of the job, which must fit before it starts.
    pub need: Option<Bytes>,
    /// For how long no busy process may have been seen. A chain of jobs leaves short gaps: a run
    /// that started in one on 2026-10-05 was past its swap budget 20 s later, when the next video
    /// job came.
    pub quiet_for: Duration,
    /// How long to wait for room.
    pub start_timeout: Duration,
}

/// Clocks that differ by less have not slept but were read one after the other.
const SLEEP: Duration = Duration::from_secs(1);
/// Names of busy processes that are counted; a hostile machine has more.
const MOST_NAMES: usize = 64;

/// What other guarded jobs take before this one has its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crowd {
    /// What jobs that have just started are still going to take.
    pub reserved: Bytes,
    /// The guard that has waited for memory for longer.
    pub ahead: Option<i32>,
    /// Another guard is at the gate just now, and two must not pass it into the same memory.
    pub at_gate: bool,
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
    /// The system says that memory is critically short.
    Pressure,
    /// The job's expected peak does not fit now.
    NoFit {
        /// The expected peak.
        need: Bytes,
        /// What a new job can take.
        claimable: Bytes,
        /// What jobs that have just started will take of that.
        reserved: Bytes,
    },
    /// It does not fit into this machine at all.
    NeverFits {
        /// The expected peak.
        need: Bytes,
        /// All of the machine's memory.
        memory: Bytes,
    },
    /// The budget alone is over the limit.
    NeverSwap {
        /// What the job may add.
        budget: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// Another guard has waited for memory for longer.
    Ahead(i32),
    /// Another guard looks whether it may start.
    Gate,
    /// Busy processes that went and came back, and how often; told when the time is over.
    CameBack(Vec<(String, u32)>),
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
            (Self::Ahead(a), Self::Ahead(b)) => a == b,
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
            Self::Pressure => f.write_str("memory pressure critical"),
            Self::NoFit { need, claimable, reserved } => {
                write!(f, "needs {need}, {claimable} can be had")?;
                if *reserved > Bytes::ZERO {
                    write!(f, " and jobs that have just started will take {reserved}")?;
                }
                Ok(())
            }
            Self::NeverFits { need, memory } => {
                write!(f, "needs {need}, this machine has {memory}: it can never fit")
            }
            Self::NeverSwap { budget, limit } => write!(
                f,
                "the swap budget {budget} alone is over the swap limit {limit}: it can never start; \
                 give a smaller --swap-budget"
            ),
            Self::Ahead(pid) => write!(f, "the guard with pid {pid} has waited for longer"),
            Self::Gate => f.write_str("another guard is at the gate and does not pass"),
            Self::CameBack(counts) => {
                f.write_str("came back again and again: ")?;
                let count = |(name, n): &(String, u32)| format!("{name} ({n} times)");
                f.write_str(&counts.iter().map(count).collect::<Vec<_>>().join("; "))
            }
            Self::Busy(commands) => write!(f, "busy: {}", shortened(commands)),
            Self::Quiet { so_far, wanted } => {
                write!(f, "quiet for {} s of {} s", so_far.as_secs(), wanted.as_secs())
            }
        }
    }
}

fn shortened(commands: &[String]) -> String {
    commands.iter().take(3).map(|command| short(command)).collect::<Vec<_>>().join("; ")
}

fn short(command: &str) -> String {
    command.chars().take(80).collect()
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

/// Waits for room for one job. Time that the machine sleeps is no quiet time and no waiting.
#[derive(Debug, Clone)]
pub struct Room {
    policy: RoomPolicy,
    memory: Option<Bytes>,
    watches_busy: bool,
    since: Moment,
    last: Moment,
    quiet_since: Option<Moment>,
    busy_now: Vec<String>,
    came: BTreeMap<String, u32>,
}

impl Room {
    /// A gate that opens at the earliest at `now`. `watches_busy`: whether there are patterns of
    /// busy processes at all; without them no quiet time is waited for. `memory`: all there is.
    pub fn new(policy: RoomPolicy, memory: Option<Bytes>, watches_busy: bool, now: Moment) -> Self {
        let (busy_now, came) = (Vec::new(), BTreeMap::new());
        Self {
            policy,
            memory,
            watches_busy,
            since: now,
            last: now,
            quiet_since: None,
            busy_now,
            came,
        }
    }

    /// Judges one look at the machine, the busy processes seen in it, and the other guards.
    pub fn observe(
        &mut self,
        reading: &Reading,
        busy: Vec<String>,
        crowd: Crowd,
        now: Moment,
    ) -> Entry {
        if now.slept_since(self.last) > SLEEP {
            self.quiet_since = None;
        }
        self.last = now;
        if let Some(never) = self.never_fits() {
            return Entry::TimedOut(vec![never]);
        }
        let is_critical = reading.pressure == Some(Pressure::Critical);
        let wants: Vec<Want> = [
            self.level_want(reading),
            is_critical.then_some(Want::Pressure).filter(|_| self.policy.wait_free.get() > 0),
            self.swap_want(reading),
            self.need_want(reading, crowd),
        ]
        .into_iter()
        .flatten()
        .chain(self.quiet_want(busy, now))
        .collect();
        match wants {
            wants if wants.is_empty() => {
                let gate = crowd.at_gate.then_some(Want::Gate);
                match crowd.ahead.map(Want::Ahead).or(gate) {
                    Some(want) => self.in_time(vec![want], now),
                    None => Entry::Ready,
                }
            }
            wants => self.in_time(wants, now),
        }
    }

    fn in_time(&self, mut wants: Vec<Want>, now: Moment) -> Entry {
        if now.since(self.since) < self.policy.start_timeout {
            return Entry::Wait(wants);
        }
        let mut came: Vec<(String, u32)> =
            self.came.iter().filter(|(_, n)| **n > 1).map(|(name, n)| (name.clone(), *n)).collect();
        came.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        came.truncate(3);
        if !came.is_empty() {
            wants.push(Want::CameBack(came));
        }
        Entry::TimedOut(wants)
    }

    fn never_fits(&self) -> Option<Want> {
        let swap = self.policy.swap_limit.map(|limit| (self.policy.swap_budget, limit));
        if let Some((budget, limit)) = swap.filter(|(budget, limit)| budget > limit) {
            return Some(Want::NeverSwap { budget, limit });
        }
        let (need, memory) = self.policy.need.zip(self.memory)?;
        (need > memory).then_some(Want::NeverFits { need, memory })
    }

    fn need_want(&self, reading: &Reading, crowd: Crowd) -> Option<Want> {
        let need = self.policy.need?;
        let Some(claimable) = reading.claimable else {
            return Some(Want::Unknown { gauge: "memory that can be had" });
        };
        let reserved = crowd.reserved;
        let fits = need + reserved <= claimable;
        (!fits).then_some(Want::NoFit { need, claimable, reserved })
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

    fn quiet_want(&mut self, busy: Vec<String>, now: Moment) -> Option<Want> {
        self.count_comings(&busy);
        if !busy.is_empty() {
            self.quiet_since = None;
            return Some(Want::Busy(busy));
        }
        if !self.watches_busy {
            return None;
        }
        let wanted = self.policy.quiet_for;
        let so_far = now.since(*self.quiet_since.get_or_insert(now));
        (so_far < wanted).then_some(Want::Quiet { so_far, wanted })
    }

    /// A process that was not busy at the look before has come.
    fn count_comings(&mut self, busy: &[String]) {
        for command in busy.iter().filter(|command| !self.busy_now.contains(command)) {
            if self.came.len() < MOST_NAMES || self.came.contains_key(&short(command)) {
                *self.came.entry(short(command)).or_default() += 1;
            }
        }
        self.busy_now = busy.to_vec();
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
            need: None,
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

    fn gate(policy: RoomPolicy, watches_busy: bool, now: Duration) -> Room {
        Room::new(policy, Some(Bytes::gib(48)), watches_busy, Moment::awake(now))
    }

    fn look(room: &mut Room, reading: &Reading, busy: Vec<String>, now: Duration) -> Entry {
        room.observe(reading, busy, Crowd::default(), Moment::awake(now))
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
        let mut room = gate(policy(), false, secs(7));
        assert_eq!(look(&mut room, &level(40), vec![], secs(7)), Entry::Ready);
    }

    #[test]
    fn it_waits_for_memory_and_gives_up_in_time() {
        let mut room = gate(policy(), false, secs(5));
        let waiting = look(&mut room, &level(35), vec![], secs(5));
        assert_eq!(words(&waiting), "memory available 35% < 40%");
        assert!(matches!(look(&mut room, &level(39), vec![], secs(1805)), Entry::TimedOut(_)));
    }

    #[test]
    fn it_keeps_the_budget_free_below_an_absolute_limit() {
        let mut room =
            gate(RoomPolicy { swap_limit: Some(Bytes::gib(10)), ..policy() }, false, secs(0));
        let used = |gib| Reading { swap_used: Some(Bytes::gib(gib)), ..level(90) };
        assert_eq!(look(&mut room, &used(2), vec![], secs(0)), Entry::Ready);
        let waiting = look(&mut room, &used(3), vec![], secs(1));
        assert_eq!(words(&waiting), "swap 3.00 GB + budget 8.00 GB > limit 10.00 GB");
    }

    #[test]
    fn a_budget_over_the_limit_is_refused_at_once_and_not_waited_for() {
        let mut room =
            gate(RoomPolicy { swap_limit: Some(Bytes::gib(1)), ..policy() }, false, secs(0));
        let refused = look(&mut room, &level(90), vec![], secs(0));
        assert!(matches!(refused, Entry::TimedOut(_)));
        assert!(
            words(&refused).starts_with("the swap budget 8.00 GB alone is over"),
            "{refused:?}"
        );
    }

    #[test]
    fn it_waits_until_the_busy_ones_have_been_gone_for_long_enough() {
        let mut room = gate(policy(), true, secs(0));
        let busy = || vec!["ffmpeg -i a.mov".to_owned()];
        assert_eq!(words(&look(&mut room, &level(90), vec![], secs(0))), "quiet for 0 s of 60 s");
        assert_eq!(words(&look(&mut room, &level(90), busy(), secs(50))), "busy: ffmpeg -i a.mov");
        assert_eq!(words(&look(&mut room, &level(90), vec![], secs(61))), "quiet for 0 s of 60 s");
        assert_eq!(
            words(&look(&mut room, &level(90), vec![], secs(120))),
            "quiet for 59 s of 60 s"
        );
        assert_eq!(look(&mut room, &level(90), vec![], secs(121)), Entry::Ready);
    }

    #[test]
    fn an_unknown_level_holds_a_start_unless_nothing_is_asked_of_it() {
        let mut room = gate(policy(), false, secs(0));
        let entry = look(&mut room, &Reading::default(), vec![], secs(0));
        assert_eq!(words(&entry), "memory available unknown");
        let anything = RoomPolicy { wait_free: Percent::default(), ..policy() };
        let mut open = gate(anything, false, secs(0));
        assert_eq!(look(&mut open, &Reading::default(), vec![], secs(0)), Entry::Ready);
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

    #[test]
    fn row_24_critical_pressure_at_the_start_is_waited_out_with_its_reason() {
        let mut room = gate(policy(), false, secs(0));
        let critical = Reading { pressure: Some(Pressure::Critical), ..level(60) };
        assert_eq!(words(&look(&mut room, &critical, vec![], secs(0))), "memory pressure critical");
        assert!(matches!(look(&mut room, &critical, vec![], secs(1800)), Entry::TimedOut(_)));
    }

    #[test]
    fn row_25_a_process_that_comes_and_goes_holds_the_start_and_is_named_with_how_often() {
        let mut room = gate(policy(), true, secs(0));
        let mut last = Entry::Ready;
        for s in 0..=1800 {
            let busy = if s % 60 < 40 { vec!["ltx-2-mlx --video".to_owned()] } else { vec![] };
            last = look(&mut room, &level(90), busy, secs(s));
            assert_ne!(last, Entry::Ready, "{s}");
        }
        assert!(matches!(last, Entry::TimedOut(_)));
        let said = words(&last);
        assert!(said.contains("ltx-2-mlx --video (31 times)"), "{said}");
    }

    #[test]
    fn row_19_a_sleeping_machine_is_not_a_quiet_one() {
        let mut room = gate(policy(), true, secs(0));
        let mut at = |awake, slept| {
            let now = Moment { awake: secs(awake), total: secs(awake + slept) };
            words(&room.observe(&level(90), vec![], Crowd::default(), now))
        };
        assert_eq!(at(0, 0), "quiet for 0 s of 60 s");
        assert_eq!(at(59, 0), "quiet for 59 s of 60 s");
        assert_eq!(at(60, 30_000), "quiet for 0 s of 60 s");
        assert_eq!(at(120, 30_000), "ready");
    }

    #[test]
    fn row_26_what_a_job_that_has_just_started_will_take_is_not_promised_twice() {
        let needs = RoomPolicy { need: Some(Bytes::gib(20)), ..policy() };
        let mut room = gate(needs, false, secs(0));
        let free = Reading { claimable: Some(Bytes::gib(30)), ..level(60) };
        let mut with = |reserved, ahead| {
            words(&room.observe(
                &free,
                vec![],
                Crowd { reserved, ahead, at_gate: false },
                Moment::default(),
            ))
        };
        assert_eq!(
            with(Bytes::gib(20), None),
            "needs 20.00 GB, 30.00 GB can be had and jobs that have just started will take 20.00 GB"
        );
        assert_eq!(with(Bytes::gib(10), Some(77)), "the guard with pid 77 has waited for longer");
        assert_eq!(with(Bytes::gib(10), None), "ready");
    }

    #[test]
    fn what_can_never_fit_is_said_at_once() {
        let needs = RoomPolicy { need: Some(Bytes::gib(64)), ..policy() };
        let mut room = gate(needs, false, secs(0));
        let entry = look(&mut room, &level(90), vec![], secs(0));
        assert!(matches!(entry, Entry::TimedOut(_)));
        assert_eq!(words(&entry), "needs 64.00 GB, this machine has 48.00 GB: it can never fit");
    }
}
