//! The engine's loop: it looks at the queue and at the machine, asks `stageload_core::queue` what is
//! due, and does that. It can be killed at any point: what runs goes on, and the next engine finds it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use regex::Regex;
use stageload_core::Bytes;
use stageload_core::queue::{Effect, Engine, Event, JobId, JobState, Life};

use super::attempt::tell_supervisor;
use super::host::{Hostless, has_host};
use super::last_seen::LastSeen;
use super::life::life_of;
use super::lowered::lowered;
use super::notice::EngineNotice;
use super::place::{AttemptFiles, create_private, engine_lock, hold, is_held};
use super::stops::Stops;
use crate::Error;
use crate::busy::busy_commands;
use crate::meter::reading;
use crate::store::{JobRow, Store};
use crate::sys::{self, Machine};
use crate::wake::{Wake, Wakes};

/// Between two questions whether anybody has changed the queue: 10 µs each.
const TURN: Duration = Duration::from_millis(200);
/// Between two looks at the machine while jobs wait.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After something that could not be done.
const PAUSE: Duration = Duration::from_secs(2);

/// What an engine needs to know.
#[derive(Debug, Clone)]
pub struct EngineSetup {
    /// The queue's folder.
    pub home: PathBuf,
    /// The command line of a supervisor, to which the job's number and the attempt's are added.
    pub supervisor: Vec<OsString>,
    /// How long there may be nothing to do before it ends; None for ever.
    pub idle: Option<Duration>,
}

/// Whether an engine runs for this queue.
pub fn is_engine_there(home: &Path) -> bool {
    is_held(&engine_lock(home))
}

/// Starts an engine that does not end with this process, if none is there. `command` is its command
/// line; what it says goes into `engine.log`.
pub fn call_engine(home: &Path, command: &[OsString]) -> Result<(), Error> {
    if is_engine_there(home) {
        return Ok(());
    }
    let failed = |source| Error::System { doing: "start the engine", source };
    let log = home.join("engine.log");
    let log = File::options().create(true).append(true).open(log).map_err(failed)?;
    let (program, words) = command.split_first().ok_or(Error::System {
        doing: "start the engine",
        source: io::ErrorKind::InvalidInput.into(),
    })?;
    let mut engine = Command::new(program);
    engine.args(words).env("STAGELOAD_HOME", home).current_dir("/");
    engine.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    sys::lead_session(&mut engine);
    // Whoever was first of two is the engine, and the other one ends by itself.
    engine.spawn().map(drop).map_err(failed)
}

/// Runs the queue until this process is told to end, or there has been nothing to do for
/// `setup.idle`. Jobs that run go on without it.
///
/// Fails if another engine runs already, or if the queue cannot be opened.
pub fn run_engine(setup: &EngineSetup, tell: &mut dyn FnMut(&EngineNotice)) -> Result<(), Error> {
    let unwritable = |source| Error::unwritable("queue", &setup.home, source);
    create_private(&setup.home).map_err(unwritable)?;
    let _lock = take_engine_lock(&setup.home)?;
    let wakes = Wakes::listen()?;
    let opened = Store::open(&setup.home)?;
    if let Some(path) = opened.moved_aside {
        tell(&EngineNotice::MovedAside(path));
    }
    let mut work = Work::new(setup, opened.store);
    let mut quiet_since = sys::now();
    let mut last_trouble = None;
    loop {
        let wait = match work.turn(tell) {
            Ok(()) => TURN,
            Err(error) => {
                let what = error.to_string();
                if last_trouble.as_ref() != Some(&what) {
                    tell(&EngineNotice::Trouble(what.clone()));
                }
                last_trouble = Some(what);
                work.is_stale = true;
                PAUSE
            }
        };
        if work.has_work() {
            quiet_since = sys::now();
        }
        if setup.idle.is_some_and(|idle| sys::now().saturating_sub(quiet_since) >= idle) {
            return Ok(());
        }
        if let Some(Wake::Signal(_)) = wakes.wait(wait) {
            return Ok(());
        }
    }
}

/// The lock is what counts; the number in the file is for a person.
fn take_engine_lock(home: &Path) -> Result<File, Error> {
    let path = engine_lock(home);
    let failed = |source| Error::unwritable("lock", &path, source);
    let Some(mut lock) = hold(&path, Duration::from_millis(200)).map_err(failed)? else {
        let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        return Err(Error::EngineRuns { pid });
    };
    lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(failed)?;
    Ok(lock)
}

/// What the loop remembers.
struct Work<'a> {
    setup: &'a EngineSetup,
    store: Store,
    engine: Engine,
    machine: Machine,
    /// What is on disk of the jobs that are not over.
    rows: BTreeMap<JobId, JobRow>,
    version: i64,
    /// This process has changed the queue itself, or does not know what it has done.
    is_stale: bool,
    /// Since when an attempt is known here.
    known: BTreeMap<(JobId, u32), Duration>,
    hostless: Hostless,
    stops: Stops,
    children: Vec<Child>,
    looked: Option<Duration>,
    patterns: BTreeMap<String, Option<Regex>>,
}

impl<'a> Work<'a> {
    fn new(setup: &'a EngineSetup, store: Store) -> Self {
        let mut machine = Machine::here();
        let memory = machine.gauges().memory;
        Self {
            setup,
            store,
            engine: Engine::new(memory),
            machine,
            rows: BTreeMap::new(),
            version: 0,
            is_stale: true,
            known: BTreeMap::new(),
            hostless: Hostless::default(),
            stops: Stops::default(),
            children: Vec::new(),
            looked: None,
            patterns: BTreeMap::new(),
        }
    }

    fn has_work(&self) -> bool {
        self.rows.values().any(|row| row.state.is_active() || row.state.is_queued())
    }

    fn turn(&mut self, tell: &mut dyn FnMut(&EngineNotice)) -> Result<(), Error> {
        // Whoever is not asked stays a zombie.
        self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let version = self.store.data_version()?;
        if self.is_stale || version != self.version {
            self.version = version;
            self.load(tell)?;
        }
        self.drop_jobs_without_terminal(tell)?;
        self.find(tell)?;
        let is_due = self.looked.is_none_or(|then| sys::now().saturating_sub(then) >= LOOK_EVERY);
        if is_due && self.engine.needs_looks() {
            self.looked = Some(sys::now());
            self.look(tell)?;
        }
        Ok(())
    }

    fn load(&mut self, tell: &mut dyn FnMut(&EngineNotice)) -> Result<(), Error> {
        let rows: BTreeMap<JobId, JobRow> =
            self.store.unfinished()?.into_iter().map(|row| (row.id, row)).collect();
        for (id, before) in &self.rows {
            // Its supervisor has written its end, or somebody has stopped it.
            if before.state.is_active()
                && rows.get(id).is_none_or(|now| now.state.is_over())
                && let Some(now) = self.store.job(*id)?
            {
                tell(&EngineNotice::Settled { job: *id, state: now.state });
            }
        }
        self.rows = rows;
        let (jobs, turns, paused) = self.store.load()?;
        self.known.retain(|(id, attempt), _| {
            self.rows.get(id).is_some_and(|row| row.state.attempt() == Some(*attempt))
        });
        self.stops.keep(&self.rows);
        self.engine.on(Event::Loaded { jobs, turns, paused }, sys::moment());
        self.is_stale = false;
        Ok(())
    }

    /// A job that was to run in a terminal ends with it, also while it waits.
    fn drop_jobs_without_terminal(
        &mut self,
        tell: &mut dyn FnMut(&EngineNotice),
    ) -> Result<(), Error> {
        for job in self.hostless.find(&self.setup.home, self.rows.values(), sys::now()) {
            if self.store.stop_queued(job)? {
                tell(&EngineNotice::Settled { job, state: JobState::Stopped });
            }
            self.is_stale = true;
        }
        Ok(())
    }

    fn find(&mut self, tell: &mut dyn FnMut(&EngineNotice)) -> Result<(), Error> {
        for (job, attempt) in self.engine.active().collect::<Vec<_>>() {
            let now = sys::now();
            let since = now.saturating_sub(*self.known.entry((job, attempt)).or_insert(now));
            let Some(row) = self.rows.get(&job) else { continue };
            let Some(kept) = self.store.attempt(job, attempt)? else { continue };
            let life = life_of(&self.setup.home, &self.store, &row.spec, &kept, since)?;
            if life == Life::Alive {
                if self.stops.is_due(row, sys::now()) {
                    tell_supervisor(&self.store, job, attempt)?;
                }
            } else {
                let effects = self.engine.on(Event::Found { job, attempt, life }, sys::moment());
                self.carry_out(effects, tell)?;
            }
        }
        Ok(())
    }

    fn look(&mut self, tell: &mut dyn FnMut(&EngineNotice)) -> Result<(), Error> {
        let held = self.engine.active().filter_map(|(job, attempt)| {
            let trace = AttemptFiles::of(&self.setup.home, job, attempt).trace();
            Some((job, LastSeen::in_trace(&trace).reading?.footprint?))
        });
        let held: BTreeMap<JobId, Bytes> = held.collect();
        let looking_out: Vec<JobId> = self.engine.looking_out().collect();
        let busy = looking_out.into_iter().map(|job| (job, self.busy(job))).collect();
        let reading = Box::new(reading(&self.machine.gauges()));
        let effects = self.engine.on(Event::Looked { reading, held, busy }, sys::moment());
        self.carry_out(effects, tell)
    }

    fn busy(&mut self, job: JobId) -> Vec<String> {
        let Some(row) = self.rows.get(&job) else { return Vec::new() };
        let mut patterns = Vec::new();
        for text in &row.spec.busy {
            let known = self.patterns.entry(text.clone()).or_insert_with(|| Regex::new(text).ok());
            patterns.extend(known.clone());
        }
        busy_commands(&self.machine, &patterns)
    }

    fn carry_out(
        &mut self,
        effects: Vec<Effect>,
        tell: &mut dyn FnMut(&EngineNotice),
    ) -> Result<(), Error> {
        for effect in effects {
            self.is_stale = true;
            match effect {
                Effect::Start { job, attempt } => self.start(job, attempt, tell)?,
                Effect::Settle { job, attempt, state } => {
                    if self.store.settle(job, attempt, &state)? && state.is_over() {
                        tell(&EngineNotice::Settled { job, state });
                    }
                }
                Effect::Lower { job, attempt } => self.lower(job, attempt, tell)?,
                Effect::Tell { job, waits_for } => drop(self.store.tell(job, &waits_for)?),
                Effect::Pause { why } => {
                    self.store.pause(&why)?;
                    tell(&EngineNotice::Paused(why));
                }
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        job: JobId,
        attempt: u32,
        tell: &mut dyn FnMut(&EngineNotice),
    ) -> Result<(), Error> {
        let has_host = self.rows.get(&job).is_none_or(|row| has_host(&self.setup.home, row));
        if !has_host {
            return Ok(());
        }
        // Before anybody can find the attempt in the queue and put something there.
        let files = AttemptFiles::of(&self.setup.home, job, attempt);
        let unwritable = |source| Error::unwritable("folder of the job", &files.folder, source);
        files.create().map_err(unwritable)?;
        if !self.store.start(job, attempt)? {
            return Ok(());
        }
        self.known.insert((job, attempt), sys::now());
        tell(&EngineNotice::Started { job, attempt });
        if self.rows.get(&job).is_some_and(|row| row.spec.in_terminal) {
            // Whoever waits in the terminal finds it in the queue.
            return Ok(());
        }
        match self.spawn(job, attempt) {
            Ok(child) => self.children.push(child),
            Err(error) => {
                let why = format!("its supervisor cannot be started: {error}");
                let state = JobState::Failed { why };
                self.store.settle(job, Some(attempt), &state)?;
                tell(&EngineNotice::Settled { job, state });
            }
        }
        Ok(())
    }

    /// A process that does not end with this one, with what the job prints as its output.
    fn spawn(&self, job: JobId, attempt: u32) -> io::Result<Child> {
        let files = AttemptFiles::of(&self.setup.home, job, attempt);
        let output = File::options().create(true).append(true).open(files.output())?;
        let Some((program, words)) = self.setup.supervisor.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command.args(words).arg(job.to_string()).arg(attempt.to_string());
        command.env("STAGELOAD_HOME", &self.setup.home);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        sys::lead_session(&mut command);
        command.spawn()
    }

    fn lower(
        &mut self,
        job: JobId,
        attempt: u32,
        tell: &mut dyn FnMut(&EngineNotice),
    ) -> Result<(), Error> {
        let Some(row) = self.rows.get(&job) else { return Ok(()) };
        match lowered(&self.setup.home, &row.spec) {
            Ok((words, spec)) => {
                if self.store.lower(job, attempt, &spec)? {
                    tell(&EngineNotice::Lowered { job, words });
                }
            }
            Err(why) => {
                let state = JobState::Held { why };
                self.store.settle(job, Some(attempt), &state)?;
                tell(&EngineNotice::Settled { job, state });
            }
        }
        Ok(())
    }
}
