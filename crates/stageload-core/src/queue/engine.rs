//! The decisions: what starts, what has ended and how, what each waits for.
//!
//! What is on disk is the truth, and all that is remembered here is how long it has been quiet, since
//! when a job waits for room, and what has not come back of the job before. An engine that is killed
//! at any point is replaced by a new one that knows as much.

use std::collections::{BTreeMap, BTreeSet};

use super::turn::{Bound, Turns, bound};
use super::{Ending, Job, JobId, JobState, Life, Lower};
use crate::{Bytes, Crowd, Entry, Moment, Reading, Recovery, Return, Room, Want};

/// Something that has become known.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// All there is of the queue on disk: at the start, and whenever anybody has changed it.
    Loaded {
        /// Every job that is not over, and those that they come after.
        jobs: Vec<Job>,
        /// Who was served when.
        turns: Turns,
        /// Why nothing is started, if so.
        paused: Option<String>,
    },
    /// What became of an attempt.
    Found {
        /// Of which job.
        job: JobId,
        /// Which.
        attempt: u32,
        /// What.
        life: Life,
    },
    /// One look at the machine.
    Looked {
        /// Its gauges; the footprint is of no job.
        reading: Box<Reading>,
        /// What each active job holds.
        held: BTreeMap<JobId, Bytes>,
        /// The processes that a waiting job takes for busy.
        busy: BTreeMap<JobId, Vec<String>>,
    },
}

/// Something that shall be done. All of it is done only if the job still stands where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Begin an attempt.
    Start {
        /// Which job.
        job: JobId,
        /// The attempt's number.
        attempt: u32,
    },
    /// Write down where a job stands now.
    Settle {
        /// Which.
        job: JobId,
        /// The attempt that is over; None for a job that waits.
        attempt: Option<u32>,
        /// Where it stands.
        state: JobState,
    },
    /// Put it back in line with the next lower setting.
    Lower {
        /// Which.
        job: JobId,
        /// The attempt that was too much.
        attempt: u32,
    },
    /// Write down what a waiting job waits for.
    Tell {
        /// Which.
        job: JobId,
        /// What it waits for, in words.
        waits_for: Vec<String>,
    },
    /// Start nothing more until somebody says so.
    Pause {
        /// Why, in words.
        why: String,
    },
}

/// Runs the queue.
#[derive(Debug, Default)]
pub struct Engine {
    jobs: BTreeMap<JobId, Job>,
    turns: Turns,
    paused: Option<String>,
    /// Of the jobs whose turn it is.
    rooms: BTreeMap<JobId, Room>,
    memory: Option<Bytes>,
    last: Option<(Reading, BTreeMap<JobId, Bytes>)>,
    recovery: Option<(JobId, Recovery)>,
}

impl Engine {
    /// An engine on a machine with this much memory.
    pub fn new(memory: Option<Bytes>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Takes in what has become known, and says what shall be done.
    pub fn on(&mut self, event: Event, now: Moment) -> Vec<Effect> {
        match event {
            Event::Loaded { jobs, turns, paused } => {
                self.load(jobs, turns, paused, now);
                Vec::new()
            }
            Event::Found { job, attempt, life } => self.found(job, attempt, life, now),
            Event::Looked { reading, held, busy } => {
                let effects = self.look(&reading, &held, &busy, now);
                self.last = Some((*reading, held));
                effects
            }
        }
    }

    /// The attempts whose end would have to be noticed.
    pub fn active(&self) -> impl Iterator<Item = (JobId, u32)> {
        self.jobs.values().filter_map(|job| Some((job.id, job.state.attempt()?)))
    }

    /// The waiting jobs that look out for busy processes now.
    pub fn looking_out(&self) -> impl Iterator<Item = JobId> {
        let heads: BTreeSet<JobId> = self.heads().into_iter().map(|(_, id)| id).collect();
        self.jobs
            .values()
            .filter(|job| job.watches_busy)
            .map(|job| job.id)
            .filter(move |id| heads.contains(id))
    }

    /// Whether a look at the machine can change anything.
    pub fn needs_looks(&self) -> bool {
        self.paused.is_none() && self.jobs.values().any(|job| job.state.is_queued())
    }

    fn load(&mut self, jobs: Vec<Job>, turns: Turns, paused: Option<String>, now: Moment) {
        let active: Vec<JobId> = self.active().map(|(id, _)| id).collect();
        self.jobs = jobs.into_iter().map(|job| (job.id, job)).collect();
        // Their supervisors have written the end themselves.
        let is_over = |id: &JobId| self.jobs.get(id).is_none_or(|job| !job.state.is_active());
        if let Some(id) = active.into_iter().find(is_over) {
            self.expect_memory_of(id, now);
        }
        self.turns = turns;
        self.paused = paused;
        let jobs = &self.jobs;
        self.rooms.retain(|id, _| jobs.get(id).is_some_and(|job| job.state.is_queued()));
    }

    fn found(&mut self, id: JobId, attempt: u32, life: Life, now: Moment) -> Vec<Effect> {
        let Some(job) = self.jobs.get(&id).filter(|job| job.state.attempt() == Some(attempt))
        else {
            return Vec::new();
        };
        let settle = |state| Effect::Settle { job: id, attempt: Some(attempt), state };
        let effects = match life {
            Life::Alive => return Vec::new(),
            // Also if the signal came before its supervisor could hear it, and ended it.
            Life::NeverBegan | Life::Vanished { rebooted: false, .. }
                if matches!(job.state, JobState::Stopping { .. }) =>
            {
                vec![settle(JobState::Stopped)]
            }
            Life::NeverBegan => vec![settle(JobState::queued())],
            Life::Over(ending) => vec![after(job, attempt, &ending)],
            Life::Vanished { rebooted, last } => {
                let why = vanished(rebooted, last.as_deref());
                let pause = Effect::Pause { why: format!("job {id} was interrupted: {why}") };
                let settled = settle(JobState::Interrupted { why });
                if rebooted { vec![settled, pause] } else { vec![settled] }
            }
        };
        self.expect_memory_of(id, now);
        self.take_in(&effects);
        effects
    }

    /// The next job must not be judged on a machine that this one has not left yet.
    fn expect_memory_of(&mut self, id: JobId, now: Moment) {
        let Some((reading, held)) = &self.last else { return };
        let Some(footprint) = held.get(&id) else { return };
        let last = Reading { footprint: Some(*footprint), ..reading.clone() };
        self.recovery = Some((id, Recovery::begin(&last, now.awake)));
    }

    /// Until the store says so again.
    fn take_in(&mut self, effects: &[Effect]) {
        for effect in effects {
            let (id, state) = match effect {
                Effect::Start { job, attempt } => (job, JobState::Starting { attempt: *attempt }),
                Effect::Settle { job, state, .. } => (job, state.clone()),
                Effect::Lower { job, .. } => (job, JobState::queued()),
                Effect::Tell { job, waits_for } => {
                    (job, JobState::Queued { waits_for: waits_for.clone() })
                }
                Effect::Pause { why } => {
                    self.paused = Some(why.clone());
                    continue;
                }
            };
            if let Some(job) = self.jobs.get_mut(id) {
                job.state = state;
            }
        }
    }

    fn look(
        &mut self,
        reading: &Reading,
        held: &BTreeMap<JobId, Bytes>,
        busy: &BTreeMap<JobId, Vec<String>>,
        now: Moment,
    ) -> Vec<Effect> {
        let mut effects = self.broken();
        self.take_in(&effects);
        let heads = self.heads();
        let mut told = BTreeMap::new();
        let mut has_started = false;
        for (lane, id) in &heads {
            let words = match self.hindrance(lane, reading, now) {
                Some(words) => Err(vec![words]),
                // One a look: the next is judged when this one's memory is counted.
                None if has_started => Err(vec!["another lane starts a job".to_owned()]),
                None => self.enter(*id, reading, held, busy.get(id), now),
            };
            match words {
                Ok(effect) => {
                    has_started |= matches!(effect, Effect::Start { .. });
                    effects.push(effect);
                }
                Err(waits_for) => {
                    told.insert(*id, waits_for);
                }
            }
        }
        self.rooms.retain(|id, _| told.contains_key(id));
        self.take_in(&effects);
        let tell = self.news(&told);
        self.take_in(&tell);
        effects.extend(tell);
        effects
    }

    /// Jobs that wait for one that will not be done.
    fn broken(&self) -> Vec<Effect> {
        let broken = |job: &Job| match bound(job, |id| self.state_of(id)) {
            Bound::Broken(on, state) if job.state.is_queued() => {
                let why = format!("job {on}, after which it comes, is {state}");
                Some(Effect::Settle { job: job.id, attempt: None, state: JobState::Held { why } })
            }
            _ => None,
        };
        self.jobs.values().filter_map(broken).collect()
    }

    fn state_of(&self, id: JobId) -> Option<JobState> {
        self.jobs.get(&id).map(|job| job.state.clone())
    }

    /// The first in each lane of those that wait for no other job.
    fn heads(&self) -> Vec<(String, JobId)> {
        let lanes: BTreeSet<&str> = self.queued().map(|job| job.lane.as_str()).collect();
        let is_free = |job: &&Job| bound(job, |id| self.state_of(id)) == Bound::Free;
        let head = |lane: &str| {
            let of_lane = self.queued().filter(|job| job.lane == lane).filter(is_free);
            let first = self.turns.next(of_lane)?.id;
            Some((lane.to_owned(), first))
        };
        lanes.into_iter().filter_map(head).collect()
    }

    fn queued(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| job.state.is_queued())
    }

    /// Why the lane cannot have a start now, whatever its first job asks for.
    fn hindrance(&mut self, lane: &str, reading: &Reading, now: Moment) -> Option<String> {
        if let Some(why) = &self.paused {
            return Some(format!("the queue is paused: {why}"));
        }
        let active = self.jobs.values().find(|job| job.lane == lane && job.state.is_active());
        if let Some(job) = active {
            return Some(format!("job {} is {}", job.id, job.state.name()));
        }
        let (id, recovery) = self.recovery?;
        match recovery.observe(reading, now.awake) {
            Return::Waiting => Some(format!("the memory of job {id} is coming back")),
            Return::Back | Return::Stranded(_) => {
                self.recovery = None;
                None
            }
        }
    }

    /// The start of a job whose turn it is; what it waits for otherwise.
    fn enter(
        &mut self,
        id: JobId,
        reading: &Reading,
        held: &BTreeMap<JobId, Bytes>,
        busy: Option<&Vec<String>>,
        now: Moment,
    ) -> Result<Effect, Vec<String>> {
        let crowd = Crowd { reserved: self.reserved(held), ..Crowd::default() };
        let Some(job) = self.jobs.get(&id) else { return Err(Vec::new()) };
        let memory = self.memory;
        let room = self.rooms.entry(id).or_insert_with(|| {
            let mut policy = job.room;
            policy.need = job.expected.as_ref().map(|expected| expected.peak).or(policy.need);
            Room::new(policy, memory, job.watches_busy, now)
        });
        let busy = busy.cloned().unwrap_or_default();
        match room.observe(reading, busy, crowd, now) {
            Entry::Ready => Ok(Effect::Start { job: id, attempt: job.attempts + 1 }),
            Entry::Wait(wants) => Err(wants.iter().map(|want| in_words(job, want)).collect()),
            Entry::TimedOut(wants) => {
                Ok(Effect::Settle { job: id, attempt: None, state: turned_away(job, &wants) })
            }
        }
    }

    /// What jobs that run are still going to take.
    fn reserved(&self, held: &BTreeMap<JobId, Bytes>) -> Bytes {
        let still = |job: &Job| {
            let expected = job.expected.as_ref().map_or(job.room.need, |it| Some(it.peak))?;
            Some(expected.saturating_sub(held.get(&job.id).copied().unwrap_or_default()))
        };
        self.jobs.values().filter(|job| job.state.is_active()).filter_map(still).sum()
    }

    /// What the first of each lane wait for, where it has changed; the others wait for their turn.
    fn news(&self, told: &BTreeMap<JobId, Vec<String>>) -> Vec<Effect> {
        let news = |job: &Job| {
            let JobState::Queued { waits_for } = &job.state else { return None };
            let now = told.get(&job.id).cloned().unwrap_or_default();
            (*waits_for != now).then_some(Effect::Tell { job: job.id, waits_for: now })
        };
        self.jobs.values().filter_map(news).collect()
    }
}

/// What follows from the end of an attempt.
fn after(job: &Job, attempt: u32, ending: &Ending) -> Effect {
    let state = match (ending, &job.lower) {
        (Ending::Killed { .. }, Lower::Allowed(_)) => {
            return Effect::Lower { job: job.id, attempt };
        }
        (Ending::Killed { why, .. }, Lower::Ask(lower)) => {
            JobState::Held { why: format!("stopped by the guard ({why}); next lower: {lower}") }
        }
        _ => ending.state(),
    };
    Effect::Settle { job: job.id, attempt: Some(attempt), state }
}

fn vanished(rebooted: bool, last: Option<&str>) -> String {
    let what = if rebooted { "the machine went down" } else { "its supervisor was killed" };
    match last {
        Some(last) => format!("{what} {last}"),
        None => what.to_owned(),
    }
}

/// With the stage that needs the most, where it is known.
fn in_words(job: &Job, want: &Want) -> String {
    match (want, job.expected.as_ref().and_then(|expected| expected.stage.as_ref())) {
        (Want::NoFit { need, claimable, reserved }, Some(stage)) => {
            let free = format!("{claimable} free, needs {need} in {stage}");
            match *reserved {
                Bytes::ZERO => free,
                reserved => format!("{free}; {reserved} of it are for jobs that run"),
            }
        }
        _ => want.to_string(),
    }
}

fn turned_away(job: &Job, wants: &[Want]) -> JobState {
    let why = wants.iter().map(|want| in_words(job, want)).collect::<Vec<_>>().join("; ");
    if wants.iter().any(|want| matches!(want, Want::NeverFits { .. } | Want::NeverSwap { .. })) {
        return JobState::Held { why };
    }
    Ending::NoRoom { why }.state()
}
