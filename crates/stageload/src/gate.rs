//! Waits for room before a job starts. When there is room is decided in `stageload_core::Room`.

use std::time::Duration;

use stageload_core::{Crowd, Entry, Reading, Room, Span, Want};

use crate::busy::busy_commands;
use crate::notice::listed;
use crate::sys::{self, Machine};
use crate::wake::{Wake, Wakes};
use crate::{Job, Notice, Observer, Outcome};

/// Listing every command line costs more than a look, and nothing is urgent before a start.
const SLOWEST: Duration = Duration::from_millis(500);

/// Returns when there is room; the outcome, if it comes to no start.
pub(crate) fn wait_for_room(
    job: &Job,
    machine: &Machine,
    wakes: &Wakes,
    observer: &mut dyn Observer,
) -> Result<(), Outcome> {
    let began = sys::now();
    let memory = machine.gauges().memory;
    let mut room = Room::new(job.room, memory, !job.busy.is_empty(), sys::moment());
    let mut told: Vec<Want> = Vec::new();
    loop {
        let now = sys::now();
        let busy = busy_commands(machine, &job.busy);
        match room.observe(&reading(machine), busy, Crowd::default(), sys::moment()) {
            Entry::Ready => return Ok(()),
            Entry::TimedOut(wants) => {
                return Err(no_room(now.saturating_sub(began), wants, observer));
            }
            Entry::Wait(wants) if is_news(&told, &wants) => {
                observer.notice(&Notice::Waiting(wants.clone()));
                told = wants;
            }
            Entry::Wait(_) => {}
        }
        let left = job.room.start_timeout.saturating_sub(sys::now().saturating_sub(began));
        if let Some(Wake::Signal(signal)) = wakes.wait(job.policy.poll.max(SLOWEST).min(left)) {
            observer.notice(&Notice::EndedBeforeStart { signal });
            return Err(Outcome::Interrupted(signal));
        }
    }
}

fn reading(machine: &Machine) -> Reading {
    let gauges = machine.gauges();
    Reading {
        swap_used: gauges.swap_used,
        swap_total: gauges.swap_total,
        level: gauges.level,
        pressure: gauges.pressure,
        claimable: gauges.claimable,
        ..Reading::default()
    }
}

fn is_news(told: &[Want], wants: &[Want]) -> bool {
    told.len() != wants.len() || told.iter().zip(wants).any(|(a, b)| !a.is_like(b))
}

fn no_room(waited: Duration, wants: Vec<Want>, observer: &mut dyn Observer) -> Outcome {
    let why = listed(&wants);
    observer.notice(&Notice::NoRoom { waited: Span(waited), wants });
    Outcome::NoRoom(why)
}
