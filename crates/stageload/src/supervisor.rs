//! Runs one job under guard: waits for room, starts it, looks, and stops it when a rule breaks.
//!
//! All deciding is in `stageload_core`; what is here is the order of things. Signals are sent by
//! `stopping.rs`, members found by `meter.rs`.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use stageload_core::{Baseline, Bytes, EVENTS_ENV, End, Event, Guard, Reason, Record, Verdict};

use crate::job::{JOB_ENV, Stop};
use crate::meter::Meter;
use crate::notice::signal_name;
use crate::stopping::{Progress, Stopping, Turn};
use crate::sys::{self, Machine, ProcessId};
use crate::tail::Tail;
use crate::thinning::Thinning;
use crate::trace_file::{TraceWriter, create};
use crate::wake::{Wake, Wakes};
use crate::{Error, Job, Notice, Observer, Outcome, gate, utc};

/// Between two turns of a stopping: short, because the job may still be growing.
const TURN: Duration = Duration::from_millis(50);
/// How long leftovers of an ended job may take to end as well before they are reported.
const LEFTOVERS: Duration = Duration::from_millis(300);

/// Megabytes of events that are taken in between two looks.
const READS_PER_LOOK: usize = 4;

/// Runs the job to its end and says how it came out. An error means it was never started.
pub fn run(job: &Job, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    let wakes = Wakes::listen()?;
    let trace = job.trace.as_deref().map(TraceWriter::create).transpose()?;
    clear_reason(job)?;
    let folder = tempfile::Builder::new()
        .prefix("stageload-")
        .tempdir()
        .map_err(|source| Error::System { doing: "make a folder for the job's events", source })?;
    let events = folder.path().join("events.jsonl");
    create("event file", &events)?;
    let machine = Machine::here();
    let outcome = match gate::wait_for_room(job, &machine, &wakes, observer) {
        Ok(()) => start(job, machine, &wakes, trace, &events, observer)?,
        Err(outcome) => outcome,
    };
    write_reason(job, &outcome, observer);
    if matches!(outcome, Outcome::Exited(_) | Outcome::Signaled(_) | Outcome::Stopped(_)) {
        observer.notice(&Notice::Exit(outcome.exit_code()));
    }
    Ok(outcome)
}

fn start(
    job: &Job,
    machine: Machine,
    wakes: &Wakes,
    trace: Option<TraceWriter>,
    events: &Path,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let tail = Tail::open(events)
        .map_err(|source| Error::System { doing: "read the job's events", source })?;
    let gauges = machine.gauges();
    let baseline =
        Baseline { swap_used: gauges.swap_used, demand: gauges.demand, memory: gauges.memory };
    // What can fail comes before the start: a job that runs is a job under guard.
    let watcher = wakes.child_watcher()?;
    observer.notice(&starting(job, baseline.swap_used));
    let token = token();
    // Before the job can say anything, so that no event of it lies before the trace.
    let began = sys::now();
    let child = match command(job, events, &token).spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", job.command[0].display());
            observer.notice(&Notice::CannotStart(why.clone()));
            return Ok(Outcome::CannotStart(why));
        }
    };
    let pid = child.id() as i32;
    watcher.watch(pid);
    let mut run = Run {
        job,
        wakes,
        observer,
        child,
        meter: Meter::new(machine, pid, token),
        guard: Guard::new(job.policy, baseline),
        tail,
        trace,
        thinning: Thinning::default(),
        began,
        footprint: None,
    };
    run.record(Record::Start(meta(job)));
    Ok(run.guard_to_the_end())
}

fn starting(job: &Job, baseline: Option<Bytes>) -> Notice {
    let budget = baseline.map(|used| used + job.policy.swap_budget);
    let stop_above = match (budget, job.policy.swap_limit) {
        (Some(budget), Some(limit)) => Some(budget.min(limit)),
        (budget, limit) => budget.or(limit),
    };
    let (limit, kill_free) = (job.policy.limit, job.policy.kill_free);
    Notice::Starting { swap_used: baseline, stop_above, limit, kill_free }
}

/// One job while it runs.
struct Run<'a> {
    job: &'a Job,
    wakes: &'a Wakes,
    observer: &'a mut dyn Observer,
    child: Child,
    meter: Meter,
    guard: Guard,
    tail: Tail,
    trace: Option<TraceWriter>,
    thinning: Thinning,
    began: Duration,
    footprint: Option<Bytes>,
}

impl Run<'_> {
    fn guard_to_the_end(&mut self) -> Outcome {
        let outcome = self.watch();
        self.hear();
        if let Some(event) = self.tail.finish() {
            self.take_in(event);
        }
        // The last stage's window ends with the last look, so that one is always in the trace.
        self.thinning.next_counts();
        self.look();
        self.finish(&outcome);
        outcome
    }

    fn watch(&mut self) -> Outcome {
        loop {
            if let Verdict::Stop(reason) = self.look()
                && let Some(stop) = self.stop_for(reason)
            {
                return Outcome::Stopped(stop);
            }
            match self.wakes.wait(self.guard.next_look()) {
                None => {}
                Some(Wake::Ended) => return self.ended(),
                Some(Wake::Signal(signal)) => {
                    self.stop(&format!("got {}", signal_name(signal)));
                    return Outcome::Interrupted(signal);
                }
            }
        }
    }

    /// Takes in what the job said and takes one look.
    fn look(&mut self) -> Verdict {
        self.hear();
        let now = sys::moment();
        let reading = self.meter.look(self.since_start(now.awake), self.job.policy.limit);
        self.footprint = reading.footprint;
        let verdict = self.guard.observe(&reading, now);
        if self.thinning.keeps(&reading) || verdict != Verdict::Continue {
            self.record(Record::Sample(reading.clone()));
        }
        self.observer.sample(&reading);
        self.complain();
        if let Verdict::Warn(warning) = &verdict {
            self.observer.notice(&Notice::Warning(warning.to_string()));
        }
        verdict
    }

    /// A job that writes events without end must not keep the guard from looking.
    fn hear(&mut self) {
        for _ in 0..READS_PER_LOOK {
            let (events, more) = self.tail.read();
            for event in events {
                self.take_in(event);
            }
            if !more {
                break;
            }
        }
    }

    /// The job's clock is the guard's; what is outside the run is another clock and means now.
    fn take_in(&mut self, event: Event) {
        let mut event = event.fit_to_show();
        let now = self.since_start(sys::now());
        let said = event.t.map(|t| rounded(t - self.began.as_secs_f64()));
        event.t = Some(said.filter(|t| (0.0..=now).contains(t)).unwrap_or(now));
        self.guard.hear(&event, sys::moment());
        self.thinning.next_counts();
        self.observer.event(&event);
        self.record(Record::Event(event));
    }

    /// None if the job ended by itself before it could be stopped.
    fn stop_for(&mut self, reason: Reason) -> Option<Stop> {
        let t = self.since_start(sys::now());
        if self.is_over() {
            return None;
        }
        let (stopping, survivors) = self.stop(&reason.to_string());
        Some(Stop { reason, t, signalled: stopping.signalled(), survivors })
    }

    fn stop(&mut self, why: &str) -> (Stopping, Vec<ProcessId>) {
        let leader = self.child.id() as i32;
        let mut turn = self.turn(false);
        let mut stopping =
            Stopping::begin(&self.meter, leader, turn, self.job.grace.of(self.footprint));
        // Said after it is done: an observer that blocks must not keep the job alive.
        self.observer.notice(&Notice::Stopping { pid: leader, why: why.to_owned() });
        loop {
            match stopping.turn(&self.meter, turn) {
                Progress::Going => {}
                Progress::Gone => return (stopping, Vec::new()),
                Progress::Stuck => return (stopping, self.survivors()),
            }
            let wake = self.wakes.wait(TURN);
            // The verdict is in; what counts now is who is left and what they hold.
            let _ = self.look();
            turn = self.turn(matches!(wake, Some(Wake::Signal(_))));
        }
    }

    fn turn(&mut self, is_hurried: bool) -> Turn {
        let is_over = self.is_over();
        Turn { now: sys::now(), footprint: self.footprint, is_hurried, is_over }
    }

    /// That nobody was seen is believed only when the system says that the leader has ended. It is
    /// asked last, because the answer gives the leader's number away.
    fn is_over(&mut self) -> bool {
        self.meter.found_nobody() && !matches!(self.child.try_wait(), Ok(None))
    }

    /// Who is there in spite of SIGKILL. A meter that cannot look knows only who was there, so the
    /// system is asked in ways that need no file.
    fn survivors(&mut self) -> Vec<ProcessId> {
        let leader = self.child.id() as i32;
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        let is_there = |id: &ProcessId| {
            if id.pid == leader { !has_ended } else { sys::exists(id.pid) }
        };
        let survivors: Vec<ProcessId> = self.meter.members().filter(is_there).collect();
        if !survivors.is_empty() {
            let pids = survivors.iter().map(|id| id.pid).collect();
            self.observer.notice(&Notice::Survivors(pids));
        }
        survivors
    }

    fn ended(&mut self) -> Outcome {
        let leftovers = self.leftovers();
        if !leftovers.is_empty() {
            self.observer.notice(&Notice::LeftRunning(leftovers));
        }
        match self.child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Outcome::Exited(code),
                (None, signal) => Outcome::Signaled(signal.unwrap_or(libc::SIGKILL)),
            },
            Err(error) => {
                let what = format!("cannot tell how the command ended: {error}");
                self.observer.notice(&Notice::Warning(what));
                Outcome::Exited(1)
            }
        }
    }

    /// Members that outlive the leader by more than a moment.
    fn leftovers(&mut self) -> Vec<i32> {
        let deadline = sys::now() + LEFTOVERS;
        loop {
            self.meter.refresh();
            // The leader has ended, whatever a meter that cannot look makes of it.
            let leader = self.child.id() as i32;
            let others = self.meter.members().map(|id| id.pid);
            let alive: Vec<i32> = others.filter(|pid| *pid != leader).collect();
            if alive.is_empty() || sys::now() >= deadline {
                return alive;
            }
            self.wakes.wait(TURN);
        }
    }

    fn finish(&mut self, outcome: &Outcome) {
        let reason = match outcome {
            Outcome::Stopped(stop) => Some(stop.reason.to_string()),
            Outcome::Interrupted(signal) => Some(signal_name(*signal)),
            _ => None,
        };
        let t = Some(self.since_start(sys::now()));
        self.record(Record::End(End { t, exit: Some(outcome.exit_code()), reason }));
        if self.tail.bad_lines > 0 {
            let what = format!("{} lines of the job's events were no events", self.tail.bad_lines);
            self.observer.notice(&Notice::Warning(what));
        }
        if let Some(trouble) = self.trace.take().and_then(TraceWriter::finish) {
            self.observer.notice(&Notice::Warning(trouble));
        }
    }

    fn record(&mut self, record: Record) {
        if let Some(trace) = &mut self.trace {
            trace.write(record);
        }
    }

    /// A trace that cannot be written any more is given up, with one warning.
    fn complain(&mut self) {
        if let Some(what) = self.trace.as_ref().and_then(TraceWriter::complaint) {
            self.trace = None;
            self.observer.notice(&Notice::Warning(what));
        }
    }

    fn since_start(&self, now: Duration) -> f64 {
        rounded(now.saturating_sub(self.began).as_secs_f64())
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn command(job: &Job, events: &Path, token: &str) -> Command {
    let mut command = Command::new(&job.command[0]);
    command.args(&job.command[1..]).envs(job.env.iter().map(|(name, value)| (name, value)));
    command.env(EVENTS_ENV, events);
    // A guard inside a guard adds its token, so that the outer one still finds the job.
    match std::env::var(JOB_ENV) {
        Ok(outer) => command.env(JOB_ENV, format!("{outer}:{token}")),
        Err(_) => command.env(JOB_ENV, token),
    };
    sys::lead_session(&mut command);
    command
}

fn token() -> String {
    format!("{:x}-{:x}", std::process::id(), sys::now().as_nanos())
}

fn meta(job: &Job) -> serde_json::Map<String, serde_json::Value> {
    let command: Vec<_> = job.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut meta = serde_json::Map::new();
    meta.insert("utc".into(), utc::utc_date_time().into());
    meta.insert("interval".into(), job.policy.poll.as_secs_f64().into());
    meta.insert("stageload".into(), env!("CARGO_PKG_VERSION").into());
    meta.insert("command".into(), command.into_iter().collect());
    if let Some(limit) = job.policy.limit {
        meta.insert("limit".into(), limit.0.into());
    }
    meta.extend(job.meta.clone());
    meta
}

/// Makes sure now that the reason can be written later, and that none of an older run is left.
fn clear_reason(job: &Job) -> Result<(), Error> {
    let Some(path) = &job.reason else { return Ok(()) };
    let file = create("reason", path)?;
    // Never a device: root could remove `/dev/null`.
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Ok(());
    }
    std::fs::remove_file(path).map_err(|source| Error::unwritable("reason", path, source))
}

fn write_reason(job: &Job, outcome: &Outcome, observer: &mut dyn Observer) {
    let Some(path) = &job.reason else { return };
    let Some(reason) = crate::reason::reason_json(job, outcome) else { return };
    if let Err(error) = std::fs::write(path, reason) {
        let error = Error::unwritable("reason", path, error);
        observer.notice(&Notice::Warning(error.to_string()));
    }
}
