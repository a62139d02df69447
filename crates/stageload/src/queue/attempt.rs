//! One attempt at a queued job: the supervisor's side. It takes the attempt for its own, runs the job
//! under the guard, and writes down how it ended. What it finds in the queue is the truth: it does
//! nothing for a job that was stopped or given to another meanwhile.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use stageload_core::queue::{Ending, JobId, JobState, Lower};
use stageload_core::{
    Bytes, Event, EventKind, PAUSE_ENV, PAUSED, Percent, RESUMED, Reading, RoomPolicy, Summary,
    summarize,
};

use super::place::{AttemptFiles, hold, write_whole};
use super::stage_lines::StageLines;
use crate::logs::Bounded;
use crate::notice::signal_name;
use crate::presets::{InPath, Preset, Presets};
use crate::store::{Finish, JobRow, StageTime, Store, Supervisor, Then};
use crate::supervisor::new_token;
use crate::sys::{self, Grip, Machine, ProcessId};
use crate::wire::Spec;
use crate::{Error, Job, Notice, Observer, Outcome, load_trace, run};

/// Whoever asks whether the attempt is alive holds its lock for an instant.
const PATIENCE: Duration = Duration::from_secs(1);
/// The engine has judged that there is room; other guards may still be ahead.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1800);
/// How often it is tried to write the end into a queue that cannot be written, and how long after.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_secs(2);
/// Between two trims of the log.
const TRIM_EVERY: Duration = Duration::from_secs(2);
/// Between two looks at what the job prints.
const READ_EVERY: Duration = Duration::from_millis(100);

/// Runs an attempt that the engine has begun. None if it is not this process's to run.
///
/// `warden` is the command line that stands by in case this process is killed.
pub fn supervise(
    home: &Path,
    id: JobId,
    number: u32,
    warden: Option<Vec<OsString>>,
    observer: &mut dyn Observer,
) -> Result<Option<Outcome>, Error> {
    let files = AttemptFiles::of(home, id, number);
    let system = |doing| move |source| Error::System { doing, source };
    let Some(lock) = hold(&files.lock(), PATIENCE).map_err(system("lock the attempt"))? else {
        return Ok(None);
    };
    // Its warden and the job itself hold it too: as long as one of them lives, the attempt does.
    sys::leave_open(&lock).map_err(system("keep the attempt's lock"))?;
    let mut store = Store::open(home)?.store;
    let Some(row) = store.job(id)? else { return Ok(None) };
    let token = new_token();
    if !store.begin(id, number, &supervisor(&token, &files))? {
        return Ok(None);
    }
    let presets = Presets::load(home).0;
    let preset = row.spec.preset.as_ref().and_then(|used| presets.get(&used.name).ok());
    let ground = Ground { home, number, files: &files, preset };
    let outcome = attempt(&store, row.clone(), &ground, token.clone(), warden, observer);
    end(&mut store, &row, &ground, token, &outcome)?;
    drop(lock);
    outcome.map(Some)
}

fn supervisor(token: &str, files: &AttemptFiles) -> Supervisor {
    let pid = std::process::id() as i32;
    let own = Machine::here().process(pid).ok().flatten();
    Supervisor {
        process: own.map_or(ProcessId { pid, start: 0 }, |own| own.id),
        boot: sys::boot_id().unwrap_or_default(),
        token: token.to_owned(),
        folder: files.folder.clone(),
    }
}

/// What an attempt stands on.
struct Ground<'a> {
    home: &'a Path,
    number: u32,
    files: &'a AttemptFiles,
    /// None also for a preset that is not there any more: the command line is.
    preset: Option<&'a Preset>,
}

fn attempt(
    store: &Store,
    row: JobRow,
    ground: &Ground<'_>,
    token: String,
    warden: Option<Vec<OsString>>,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let id = row.id;
    let spec = row.spec;
    // Hours may have passed since it was queued.
    if let Some((preset, used)) = ground.preset.zip(spec.preset.as_ref())
        && let Err(refusal) = preset.preflight(&spec.command, used, &InPath)
    {
        return Ok(Outcome::CannotStart(refusal.to_string()));
    }
    if let Err(error) = std::env::set_current_dir(&spec.folder) {
        let why = format!("its folder {}: {error}", spec.folder.display());
        return Ok(Outcome::CannotStart(why));
    }
    let expected = store.learned(&spec.key)?.expected.or_else(|| spec.declared.clone());
    let need = expected.map(|expected| expected.peak).or(spec.room.need);
    let job = job(spec, ground.files, token, need, warden);
    let mut keeper = Keeper::new(ground, id, observer)?;
    let outcome = run(&job, &mut keeper);
    keeper.finish();
    outcome
}

fn job(
    spec: Spec,
    files: &AttemptFiles,
    token: String,
    need: Option<Bytes>,
    warden: Option<Vec<OsString>>,
) -> Job {
    let mut env: Vec<(OsString, OsString)> =
        spec.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    env.push((PAUSE_ENV.into(), files.pause().into()));
    Job {
        command: spec.command,
        env,
        room: RoomPolicy {
            // The engine has waited for all else.
            wait_free: Percent::default(),
            swap_limit: None,
            need,
            quiet_for: Duration::ZERO,
            start_timeout: ROOM_TIMEOUT,
            ..spec.room
        },
        policy: spec.policy,
        busy: Vec::new(),
        grace: spec.grace,
        on_guard_death: spec.on_guard_death,
        warden,
        dry_run: false,
        trace: Some(files.trace()),
        reason: Some(files.reason()),
        events: Some(files.events()),
        token: Some(token),
        meta: serde_json::Map::new(),
    }
}

/// Writes the end into the queue, and if that cannot be, beside it.
fn end(
    store: &mut Store,
    row: &JobRow,
    ground: &Ground<'_>,
    token: String,
    outcome: &Result<Outcome, Error>,
) -> Result<(), Error> {
    let (number, files) = (ground.number, ground.files);
    let is_stopping =
        store.job(row.id)?.is_some_and(|now| matches!(now.state, JobState::Stopping { .. }));
    let (ending, then) = ending(outcome, is_stopping, &row.spec.lower, ground.preset);
    let summary = load_trace(&files.trace()).ok().map(|records| summarize(&records));
    let finish = Finish { then, ..measured(token, ending.clone(), summary.as_ref()) };
    let mut last = Ok(false);
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
        last = store.finish(row.id, number, &finish);
        if last.is_ok() {
            return Ok(());
        }
    }
    // The engine finds it there.
    let text = serde_json::to_vec(&ending).unwrap_or_default();
    write_whole(&files.ending(), &text).ok();
    last.map(drop)
}

fn measured(token: String, ending: Ending, summary: Option<&Summary>) -> Finish {
    let stages = summary.map_or_else(Vec::new, |summary| {
        let time = |stage: &stageload_core::StageUse| StageTime {
            stage: stage.stage.clone(),
            seconds: stage.seconds,
            peak: stage.peak_footprint,
        };
        summary.stages.iter().map(time).collect()
    });
    let swap = summary.and_then(|summary| summary.swap);
    Finish {
        token,
        ending,
        peak: summary.and_then(|summary| summary.peak_footprint),
        swap_peak: swap.map(|swap| swap.peak.saturating_sub(swap.start)),
        stages,
        then: Then::ByEnding,
    }
}

fn ending(
    outcome: &Result<Outcome, Error>,
    is_stopping: bool,
    lower: &Lower,
    preset: Option<&Preset>,
) -> (Ending, Then) {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return (Ending::CannotStart { why: error.to_string() }, Then::ByEnding),
    };
    let by_itself = |ending| (ending, Then::ByEnding);
    match outcome {
        Outcome::Exited(code) => {
            let means = preset.and_then(|preset| preset.exit_means(*code)).map(str::to_owned);
            by_itself(Ending::Exited { code: *code, means })
        }
        Outcome::Signaled(signal) => {
            by_itself(Ending::Signaled { signal: *signal, name: signal_name(*signal) })
        }
        Outcome::Stopped(stop) => {
            let rule = stop.reason.breach.rule().to_owned();
            let ending = Ending::Killed { rule, why: stop.reason.to_string() };
            // Whether something lower is tried is the engine's to decide.
            let then = if *lower == Lower::Nothing { Then::ByEnding } else { Then::AsItStands };
            (ending, then)
        }
        Outcome::Interrupted(_) if is_stopping => by_itself(Ending::Stopped),
        Outcome::Interrupted(signal) => {
            let why = format!("its supervisor got {}", signal_name(*signal));
            (Ending::Stopped, Then::At(JobState::Interrupted { why }))
        }
        Outcome::NoRoom(why) => by_itself(Ending::NoRoom { why: why.clone() }),
        Outcome::CannotStart(why) => by_itself(Ending::CannotStart { why: why.clone() }),
    }
}

/// What a thread beside the guard writes into the queue: the guard waits for no disk.
enum Said {
    Started,
    Paused,
    Resumed,
}

/// Passes on what happens, and has what the queue must know of it written down.
struct Keeper<'a> {
    inner: &'a mut dyn Observer,
    said: Option<Sender<Said>>,
    scribe: Option<JoinHandle<()>>,
}

impl<'a> Keeper<'a> {
    fn new(ground: &Ground<'_>, id: JobId, inner: &'a mut dyn Observer) -> Result<Self, Error> {
        let store = Store::open(ground.home)?.store;
        let (number, output) = (ground.number, ground.files.output());
        let log = Bounded::open(&output).ok();
        let watch = ground.preset.and_then(Preset::stage_watch);
        // A job that runs in a terminal prints into no file.
        let lines =
            watch.and_then(|watch| StageLines::open(&output, &ground.files.events(), watch).ok());
        let mut scribe = Scribe { store, id, number, log, lines, trimmed: sys::now() };
        let (said, heard) = channel();
        let scribe = std::thread::Builder::new()
            .name("stageload-scribe".into())
            .spawn(move || scribe.write_down(&heard))
            .map_err(|source| Error::System { doing: "start a thread", source })?;
        Ok(Self { inner, said: Some(said), scribe: Some(scribe) })
    }

    fn say(&self, what: Said) {
        if let Some(said) = &self.said {
            said.send(what).ok();
        }
    }

    /// What was said is written before the end is.
    fn finish(mut self) {
        self.said = None;
        self.scribe.take().map(JoinHandle::join);
    }
}

impl Observer for Keeper<'_> {
    fn notice(&mut self, notice: &Notice) {
        if let Notice::Starting { .. } = notice {
            self.say(Said::Started);
        }
        self.inner.notice(notice);
    }

    fn sample(&mut self, reading: &Reading) {
        self.inner.sample(reading);
    }

    fn event(&mut self, event: &Event) {
        if event.kind == EventKind::Mark {
            match event.note.as_deref() {
                Some(PAUSED) => self.say(Said::Paused),
                Some(RESUMED) => self.say(Said::Resumed),
                _ => {}
            }
        }
        self.inner.event(event);
    }
}

/// The thread that waits for disks.
struct Scribe {
    store: Store,
    id: JobId,
    number: u32,
    log: Option<Bounded>,
    lines: Option<StageLines>,
    trimmed: Duration,
}

impl Scribe {
    fn write_down(&mut self, heard: &Receiver<Said>) {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        let (id, number) = (self.id, self.number);
        loop {
            // What cannot be written is found out by the engine from the attempt itself.
            match heard.recv_timeout(READ_EVERY) {
                Ok(Said::Started) => self.store.run(id, number).map(drop).unwrap_or_default(),
                Ok(Said::Paused) => self.store.paused(id, number).map(drop).unwrap_or_default(),
                Ok(Said::Resumed) => self.store.resumed(id).map(drop).unwrap_or_default(),
                Err(Timeout) => {}
                Err(Disconnected) => return,
            }
            if self.lines.as_mut().is_some_and(|lines| lines.read_on().is_err()) {
                self.lines = None;
            }
            self.trim();
        }
    }

    fn trim(&mut self) {
        if sys::now().saturating_sub(self.trimmed) < TRIM_EVERY {
            return;
        }
        self.trimmed = sys::now();
        // A disk that makes no holes has the log whole.
        if self.log.as_mut().is_some_and(|log| log.trim().is_err()) {
            self.log = None;
        }
    }
}

/// Has the supervisor of an attempt stop its job. Nothing is sent to whoever may have its number now.
pub fn tell_supervisor(store: &Store, id: JobId, attempt: u32) -> Result<(), Error> {
    let supervisor = store.attempt(id, attempt)?.and_then(|row| row.supervisor);
    let grip = supervisor.and_then(|it| Grip::take(&Machine::here(), it.process));
    if let Some(grip) = grip {
        let doing = "tell the job's supervisor to stop it";
        grip.signal(libc::SIGTERM).map_err(|source| Error::System { doing, source })?;
    }
    Ok(())
}
