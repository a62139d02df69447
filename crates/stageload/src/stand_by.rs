//! What the warden does once its guard is dead: it stops the job within two seconds, or guards it on
//! with the same rules, the same baseline and the same trace. How it learns of the death: `warden.rs`.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use stageload_core::{Grace, Guard, Percent, Reading, Record, RoomPolicy};

use crate::job::{Job, OnGuardDeath};
use crate::leader::Leader;
use crate::meter::Meter;
use crate::others::Others;
use crate::reason::write_reason;
use crate::running::Run;
use crate::sys::{self, Grip, Machine, ProcessId};
use crate::tail::Tail;
use crate::thinning::Thinning;
use crate::trace_file::TraceWriter;
use crate::wake::Wakes;
use crate::warden::{Brief, wait_for_death};
use crate::{Error, Notice, Observer, Outcome};

/// A job whose guard is dead gets this long to end by itself, so that it is gone within two seconds.
const GRACE: Duration = Duration::from_secs(1);
/// From the fork of a job to the start of its program.
const STARTING: Duration = Duration::from_millis(500);
/// Between two searches for it.
const LISTING: Duration = Duration::from_millis(20);

/// Waits until the guard on the other end of `guard` is dead, and then does what it was told to do
/// in that case. None if the guard ended in order.
pub fn stand_by(guard: impl Read, observer: &mut dyn Observer) -> Result<Option<Outcome>, Error> {
    // A Ctrl-C or a hang-up is for the guard to act on, as long as there is one.
    let wakes = Wakes::listen()?;
    let Some(orphaned) = wait_for_death(guard) else { return Ok(None) };
    let brief = orphaned.brief;
    let Some(leader) = orphaned.members.first().copied().or_else(|| first_marked(&brief.token))
    else {
        clear_events(&brief);
        return Ok(None);
    };
    observer.notice(&Notice::TookOver { pid: leader.pid, what: brief.on_guard_death });
    let mut meter = Meter::new(Machine::here(), leader, brief.token.clone(), false);
    meter.exclude(std::process::id() as i32);
    for id in orphaned.members {
        meter.admit_known(id);
    }
    let job = job(&brief);
    let mut run = Run {
        job: &job,
        leader: hold(leader, &wakes)?,
        wakes: &wakes,
        observer,
        meter,
        others: Others::default(),
        guard: Guard::new(brief.policy, brief.baseline),
        tail: tail(&brief)?,
        trace: job.trace.as_deref().and_then(|path| TraceWriter::append(path).ok()),
        thinning: Thinning::default(),
        terminal: None,
        warden: None,
        began: brief.began,
        last: Reading::default(),
        would_have: None,
    };
    if job.trace.as_deref().is_some_and(is_blank) {
        run.record(&Record::Start(brief.meta.clone()));
    }
    let outcome = match brief.on_guard_death {
        OnGuardDeath::Continue => run.guard_to_the_end(),
        OnGuardDeath::Stop => run.end_orphan(),
    };
    write_reason(&job, &outcome, run.observer);
    clear_events(&brief);
    Ok(Some(outcome))
}

fn is_blank(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() == 0)
}

/// The job of a guard that was killed before it could tell whom it had started. A process has its
/// marker only when it runs its program, which may still be to come.
fn first_marked(token: &str) -> Option<ProcessId> {
    let machine = Machine::here();
    let marked = || {
        let pids = machine.pids().into_iter().filter(|pid| machine.is_marked(*pid, token));
        let ids = pids.filter_map(|pid| Some(machine.process(pid).ok()??.id));
        ids.min_by_key(|id| id.start)
    };
    let deadline = sys::now() + STARTING;
    loop {
        let found = marked();
        if found.is_some() || sys::now() >= deadline {
            return found;
        }
        std::thread::sleep(LISTING);
    }
}

fn hold(leader: ProcessId, wakes: &Wakes) -> Result<Leader, Error> {
    let take = || Grip::take(&Machine::here(), leader);
    let Some((held, watched)) = take().zip(take()) else {
        wakes.wake_ended();
        return Ok(Leader::Gone(leader));
    };
    wakes.watch_stranger(watched)?;
    Ok(Leader::Stranger(held))
}

/// The job may have removed its events, and is guarded all the same.
fn tail(brief: &Brief) -> Result<Tail, Error> {
    Tail::open_at_end(&brief.events)
        .or_else(|_| Tail::open(Path::new("/dev/null")))
        .map_err(|source| Error::System { doing: "read the job's events", source })
}

fn job(brief: &Brief) -> Job {
    let grace = match brief.on_guard_death {
        OnGuardDeath::Stop => Grace::Fixed(GRACE),
        OnGuardDeath::Continue => brief.grace,
    };
    Job {
        command: brief.command.iter().map(Into::into).collect(),
        env: Vec::new(),
        room: RoomPolicy {
            wait_free: Percent::default(),
            swap_budget: brief.policy.swap_budget,
            swap_limit: None,
            need: None,
            quiet_for: Duration::ZERO,
            start_timeout: Duration::ZERO,
        },
        policy: brief.policy,
        busy: Vec::new(),
        grace,
        on_guard_death: brief.on_guard_death,
        warden: None,
        dry_run: false,
        trace: brief.trace.clone(),
        reason: brief.reason.clone(),
        events: None,
        token: None,
        meta: serde_json::Map::new(),
    }
}

/// The dead guard's folder for the job's events.
fn clear_events(brief: &Brief) {
    std::fs::remove_file(&brief.events).ok();
    if let Some(folder) = brief.events.parent() {
        // Only if nothing else is in it.
        std::fs::remove_dir(folder).ok();
    }
}
