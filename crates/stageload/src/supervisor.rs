//! Runs one job under guard: waits for room, and starts it with everything in place that guards it.
//!
//! All deciding is in `stageload_core`; what is here is the order of things. What happens while the
//! job runs: `running.rs`; what happens when this process is killed: `stand_by.rs`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use stageload_core::{Baseline, Bytes, EVENTS_ENV, Guard, Reading, Record};

use crate::job::JOB_ENV;
use crate::leader::Leader;
use crate::line::Place;
use crate::meter::Meter;
use crate::others::Others;
use crate::reason::{clear_reason, write_reason};
use crate::running::Run;
use crate::sys::{self, Machine, ProcessId, Terminal};
use crate::tail::Tail;
use crate::thinning::Thinning;
use crate::trace_file::{TraceWriter, create};
use crate::wake::{ChildWatcher, Wakes};
use crate::warden::{Brief, Warden};
use crate::{Error, Job, Notice, Observer, Outcome, gate, utc};

/// Runs the job to its end and says how it came out. An error means it was never started.
pub fn run(job: &Job, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    let wakes = Wakes::listen()?;
    let trace = job.trace.as_deref().map(TraceWriter::create).transpose()?;
    clear_reason(job)?;
    let folder = tempfile::Builder::new()
        .prefix("stageload-")
        .tempdir()
        .map_err(|source| Error::System { doing: "make a folder for the job's events", source })?;
    let events = job.events.clone().unwrap_or_else(|| folder.path().join("events.jsonl"));
    create("event file", &events)?;
    let mut machine = Machine::here();
    let outcome = match gate::wait_for_room(job, &mut machine, &wakes, observer) {
        Ok(place) => start(job, machine, &wakes, place, trace, &events, observer)?,
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
    mut machine: Machine,
    wakes: &Wakes,
    mut place: Option<Place>,
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
    wakes.watch_pressure();
    let adopts = !has_children(&machine) && sys::adopt_orphans();
    let mut warden = warden(job, observer);
    let terminal = Terminal::to_hand_over();
    sys::lock_memory();
    observer.notice(&starting(job, baseline.swap_used));
    let token = job.token.clone().unwrap_or_else(new_token);
    // Before the job can say anything, so that no event of it lies before the trace.
    let began = sys::now();
    let meta = meta(job, &baseline);
    // Before there is a job, so that at no moment there is one that nobody would take over.
    if let Some(waiting) = &mut warden {
        let brief = brief(job, &token, baseline, events, began, &meta);
        if let Err(error) = waiting.brief(&brief) {
            observer.notice(&no_warden(&error));
            warden = None;
        }
    }
    let child = match command(job, events, &token, terminal.as_ref()).spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", job.command[0].display());
            observer.notice(&Notice::CannotStart(why.clone()));
            return Ok(Outcome::CannotStart(why));
        }
    };
    sys::be_prompt();
    let leader = watched(&child, watcher, &machine);
    if let Some(place) = &mut place {
        place.started(leader, &token);
    }
    let mut meter = Meter::new(machine, leader, token, adopts);
    if let Some(warden) = &mut warden {
        meter.exclude(warden.pid());
        warden.tell(std::iter::once(leader));
    }
    let mut run = Run {
        job,
        wakes,
        observer,
        leader: Leader::Child { child, status: None },
        meter,
        others: Others::default(),
        guard: Guard::new(job.policy, baseline),
        tail,
        trace,
        thinning: Thinning::default(),
        terminal,
        warden,
        began,
        last: Reading::default(),
        would_have: None,
    };
    run.record(&Record::Start(meta));
    Ok(run.guard_to_the_end())
}

/// A child that was there before the job is none of the job's; where there is one, a new child of
/// this process can be an orphan of either.
fn has_children(machine: &Machine) -> bool {
    let own = std::process::id() as i32;
    let parent = |pid: &i32| machine.process(*pid).ok().flatten().map(|process| process.parent);
    machine.pids().iter().any(|pid| parent(pid) == Some(own))
}

fn warden(job: &Job, observer: &mut dyn Observer) -> Option<Warden> {
    let command = job.warden.as_ref().filter(|_| !job.dry_run)?;
    match Warden::start(command) {
        Ok(warden) => Some(warden),
        Err(error) => {
            observer.notice(&no_warden(&error));
            None
        }
    }
}

fn no_warden(error: &std::io::Error) -> Notice {
    Notice::Warning(format!("nobody takes over if this guard is killed: {error}"))
}

fn watched(child: &Child, watcher: ChildWatcher, machine: &Machine) -> ProcessId {
    let pid = child.id() as i32;
    watcher.watch(pid);
    let process = machine.process(pid).ok().flatten();
    // It has not been reaped, so its number is its own even where its start cannot be read.
    process.map_or(ProcessId { pid, start: 0 }, |process| process.id)
}

fn brief(
    job: &Job,
    token: &str,
    baseline: Baseline,
    events: &Path,
    began: std::time::Duration,
    meta: &Meta,
) -> Brief {
    // The warden's own folder is not the guard's.
    let absolute = |path: &std::path::PathBuf| std::path::absolute(path).ok();
    Brief {
        token: token.to_owned(),
        policy: job.policy,
        grace: job.grace,
        on_guard_death: job.on_guard_death,
        baseline,
        events: events.to_owned(),
        trace: job.trace.as_ref().and_then(absolute),
        reason: job.reason.as_ref().and_then(absolute),
        command: words(job),
        began,
        meta: meta.clone(),
    }
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

fn command(job: &Job, events: &Path, token: &str, terminal: Option<&Terminal>) -> Command {
    let mut command = Command::new(&job.command[0]);
    command.args(&job.command[1..]).envs(job.env.iter().map(|(name, value)| (name, value)));
    command.env(EVENTS_ENV, events);
    // A guard inside a guard adds its token, so that the outer one still finds the job.
    match std::env::var(JOB_ENV) {
        Ok(outer) => command.env(JOB_ENV, format!("{outer}:{token}")),
        Err(_) => command.env(JOB_ENV, token),
    };
    match terminal {
        Some(terminal) => terminal.lead_group(&mut command),
        None => sys::lead_session(&mut command),
    }
    if terminal.is_none() && sys::is_in_background() {
        command.stdin(Stdio::null());
    }
    command
}

/// One that no other job has.
pub(crate) fn new_token() -> String {
    format!("{:x}-{:x}", std::process::id(), sys::now().as_nanos())
}

fn words(job: &Job) -> Vec<String> {
    job.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

type Meta = serde_json::Map<String, serde_json::Value>;

/// The start record: what runs, and under which rules.
fn meta(job: &Job, baseline: &Baseline) -> Meta {
    let mut meta = Meta::new();
    meta.insert("utc".into(), utc::utc_date_time().into());
    meta.insert("interval".into(), job.policy.poll.as_secs_f64().into());
    meta.insert("stageload".into(), env!("CARGO_PKG_VERSION").into());
    meta.insert("command".into(), words(job).into());
    meta.insert("kill_free".into(), job.policy.kill_free.get().into());
    let sizes = [
        ("swap_budget", Some(job.policy.swap_budget)),
        ("swap_limit", job.policy.swap_limit),
        ("limit", job.policy.limit),
        ("memory", baseline.memory),
    ];
    for (name, bytes) in sizes.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
        meta.insert(name.into(), bytes.0.into());
    }
    meta.extend(job.meta.clone());
    meta
}
