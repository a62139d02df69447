//! The queue's promises, whatever is killed and whenever: no job is lost, none runs twice, none is
//! called dead while it is alive, none is called done that was not. The store, the processes and the
//! one who kills them are played by a [`World`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Bytes, Moment, Percent, Reading, RoomPolicy};

type Attempt = (JobId, u32);

/// One thing that happens.
#[derive(Debug, Clone)]
enum Happening {
    /// Somebody adds a job; every third comes after the one before.
    Add { lane: u8, owner: u8 },
    /// The engine looks, and is killed after so many of its effects, if at all.
    Look { killed_after: Option<usize> },
    /// The engine asks what became of its attempts; killed likewise.
    Find { killed_after: Option<usize> },
    /// A supervisor that was started comes to its first step.
    Begin { which: usize },
    /// A job ends by itself, with this code.
    End { which: usize, code: i32 },
    /// The guard stops a job.
    Kill { which: usize },
    /// A supervisor is killed; its warden ends the job.
    KillSupervisor { which: usize },
    /// The machine goes down.
    Reboot,
    /// Somebody lets the queue run again.
    Resume,
}

fn happening() -> impl Strategy<Value = Happening> {
    let killed = || prop::option::weighted(0.2, 0..4usize);
    prop_oneof![
        3 => (0..2u8, 0..3u8).prop_map(|(lane, owner)| Happening::Add { lane, owner }),
        6 => killed().prop_map(|killed_after| Happening::Look { killed_after }),
        6 => killed().prop_map(|killed_after| Happening::Find { killed_after }),
        5 => any::<usize>().prop_map(|which| Happening::Begin { which }),
        4 => (any::<usize>(), 0..2).prop_map(|(which, code)| Happening::End { which, code }),
        1 => any::<usize>().prop_map(|which| Happening::Kill { which }),
        1 => any::<usize>().prop_map(|which| Happening::KillSupervisor { which }),
        1 => Just(Happening::Reboot),
        1 => Just(Happening::Resume),
    ]
}

#[derive(Default)]
struct World {
    /// The disk.
    jobs: BTreeMap<JobId, Job>,
    paused: Option<String>,
    began: BTreeSet<Attempt>,
    endings: BTreeMap<Attempt, Ending>,
    before_reboot: BTreeSet<Attempt>,
    /// The processes.
    engine: Engine,
    starting: Vec<Attempt>,
    running: BTreeSet<Attempt>,
    /// What was ever run, to find what ran twice.
    ran: Vec<Attempt>,
    clock: u64,
}

impl World {
    fn now(&mut self) -> Moment {
        self.clock += 1;
        Moment::awake(Duration::from_secs(self.clock))
    }

    fn let_happen(&mut self, what: &Happening) {
        match *what {
            Happening::Add { lane, owner } => self.add(lane, owner),
            Happening::Look { killed_after } => {
                let looked = Event::Looked {
                    reading: Box::new(Reading {
                        level: Percent::new(90),
                        claimable: Some(Bytes::gib(40)),
                        ..Reading::default()
                    }),
                    held: BTreeMap::new(),
                    busy: BTreeMap::new(),
                };
                self.tell(looked, killed_after);
            }
            Happening::Find { killed_after } => {
                for (job, attempt) in self.engine.active().collect::<Vec<_>>() {
                    let life = self.life((job, attempt));
                    self.tell(Event::Found { job, attempt, life }, killed_after);
                }
            }
            Happening::Begin { which } => self.begin(which),
            Happening::End { which, code } => self.end(which, Ending::Exited { code, means: None }),
            Happening::Kill { which } => {
                self.end(which, Ending::Killed { rule: "limit".into(), why: "too much".into() });
            }
            Happening::KillSupervisor { which } => {
                if let Some(attempt) = nth(&self.running, which) {
                    self.running.remove(&attempt);
                }
            }
            Happening::Reboot => {
                self.before_reboot.extend(self.began.iter().copied());
                self.running.clear();
                self.starting.clear();
                self.restart_engine();
            }
            Happening::Resume => self.paused = None,
        }
    }

    fn add(&mut self, lane: u8, owner: u8) {
        let id = JobId(self.jobs.len() as i64 + 1);
        let after = if id.0 % 3 == 0 { vec![JobId(id.0 - 1)] } else { Vec::new() };
        let room = RoomPolicy {
            wait_free: Percent::default(),
            swap_budget: Bytes::ZERO,
            swap_limit: None,
            need: None,
            quiet_for: Duration::ZERO,
            start_timeout: Duration::MAX,
        };
        let job = Job {
            id,
            lane: lane.to_string(),
            owner: owner.to_string(),
            priority: 0,
            position: id.0,
            after,
            room,
            watches_busy: false,
            expected: None,
            attempts: 0,
            lower: Lower::Nothing,
            state: JobState::queued(),
        };
        self.jobs.insert(id, job);
    }

    fn restart_engine(&mut self) {
        self.engine = Engine::new(Some(Bytes::gib(48)));
        self.load();
    }

    fn load(&mut self) {
        let (jobs, paused) = (self.jobs.values().cloned().collect(), self.paused.clone());
        let now = self.now();
        self.engine.on(Event::Loaded { jobs, turns: Turns::default(), paused }, now);
    }

    fn tell(&mut self, event: Event, killed_after: Option<usize>) {
        self.load();
        let now = self.now();
        let effects = self.engine.on(event, now);
        for effect in effects.iter().take(killed_after.unwrap_or(usize::MAX)) {
            self.carry_out(effect);
        }
        if killed_after.is_some_and(|after| after < effects.len()) {
            self.restart_engine();
        }
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Start { job, attempt } => {
                let job = self.jobs.get_mut(job).unwrap();
                assert!(job.state.is_queued());
                job.state = JobState::Starting { attempt: *attempt };
                job.attempts = *attempt;
                self.starting.push((job.id, *attempt));
            }
            Effect::Settle { job, attempt, state } => {
                let job = self.jobs.get_mut(job).unwrap();
                if job.state.attempt() == *attempt {
                    job.state = state.clone();
                }
            }
            Effect::Lower { .. } => panic!("no job here has a ladder"),
            Effect::Tell { job, waits_for } => {
                let job = self.jobs.get_mut(job).unwrap();
                if job.state.is_queued() {
                    job.state = JobState::Queued { waits_for: waits_for.clone() };
                }
            }
            Effect::Pause { why } => self.paused = Some(why.clone()),
        }
    }

    /// Its first step: the job is its own only if it still stands where the engine left it.
    fn begin(&mut self, which: usize) {
        if self.starting.is_empty() {
            return;
        }
        let attempt = self.starting.remove(which % self.starting.len());
        let job = self.jobs.get_mut(&attempt.0).unwrap();
        if job.state != (JobState::Starting { attempt: attempt.1 }) {
            return;
        }
        job.state = JobState::Running { attempt: attempt.1 };
        self.began.insert(attempt);
        self.running.insert(attempt);
        self.ran.push(attempt);
    }

    fn end(&mut self, which: usize, ending: Ending) {
        if let Some(attempt) = nth(&self.running, which) {
            self.running.remove(&attempt);
            self.endings.insert(attempt, ending);
        }
    }

    fn life(&self, attempt: Attempt) -> Life {
        if self.running.contains(&attempt) {
            return Life::Alive;
        }
        if let Some(ending) = self.endings.get(&attempt) {
            return Life::Over(ending.clone());
        }
        if !self.began.contains(&attempt) {
            return Life::NeverBegan;
        }
        Life::Vanished { rebooted: self.before_reboot.contains(&attempt), last: None }
    }

    fn check(&self) {
        for lane in ["0", "1"] {
            let in_lane = |(id, _): &&Attempt| self.jobs[id].lane == lane;
            assert!(self.running.iter().filter(in_lane).count() <= 1, "two at once in {lane}");
        }
        for (id, attempt) in &self.running {
            let state = &self.jobs[id].state;
            assert_eq!(state.attempt(), Some(*attempt), "job {id} runs and is {}", state.name());
        }
        let ran: BTreeSet<Attempt> = self.ran.iter().copied().collect();
        assert_eq!(ran.len(), self.ran.len(), "an attempt ran twice");
        for job in self.jobs.values().filter(|job| job.state == JobState::Done) {
            let ended = self.endings.get(&(job.id, job.attempts));
            assert_eq!(ended, Some(&Ending::Exited { code: 0, means: None }), "job {}", job.id);
        }
    }

    /// From here on nothing is killed: everything that can come to an end does.
    fn settle(&mut self) {
        for _ in 0..self.jobs.len() * 4 + 4 {
            self.paused = None;
            self.let_happen(&Happening::Look { killed_after: None });
            while !self.starting.is_empty() {
                self.begin(0);
            }
            self.let_happen(&Happening::End { which: 0, code: 0 });
            self.let_happen(&Happening::Find { killed_after: None });
            self.check();
        }
    }
}

fn nth(attempts: &BTreeSet<Attempt>, which: usize) -> Option<Attempt> {
    attempts.iter().nth(which % attempts.len().max(1)).copied()
}

proptest! {
    #[test]
    fn no_job_is_lost_or_run_twice_or_called_what_it_is_not_whatever_is_killed(
        happenings in prop::collection::vec(happening(), 1..120),
    ) {
        let mut world = World::default();
        world.restart_engine();
        let mut added = 0;
        for what in &happenings {
            world.let_happen(what);
            added += usize::from(matches!(what, Happening::Add { .. }));
            world.check();
        }
        world.settle();
        prop_assert_eq!(world.jobs.len(), added);
        let waiting: Vec<_> = world.jobs.values().filter(|job| !job.state.is_over()).collect();
        prop_assert!(waiting.is_empty(), "{waiting:?}");
        // Only a job whose supervisor nobody heard of again is interrupted, and it ran once.
        for job in world.jobs.values() {
            let runs = world.ran.iter().filter(|(id, _)| *id == job.id).count();
            prop_assert!(runs <= 1, "job {} ran {runs} times and nobody asked for it", job.id);
        }
    }
}
