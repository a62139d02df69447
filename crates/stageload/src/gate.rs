//! Waits for room before a job starts. When there is room is decided in `stageload_core::Room`; the
//! line of other guards is kept by `line.rs`.

use std::time::Duration;

use stageload_core::{Crowd, Entry, Room, Span, Want};

use crate::busy::busy_commands;
use crate::line::Place;
use crate::meter::reading;
use crate::notice::listed;
use crate::sys::{self, Machine};
use crate::wake::{Wake, Wakes};
use crate::{Job, Notice, Observer, Outcome};

/// Listing every command line costs more than a look, and nothing is urgent before a start.
const SLOWEST: Duration = Duration::from_millis(500);

/// Returns when there is room, with the job's place among those that wait for memory; the outcome,
/// if it comes to no start.
pub(crate) fn wait_for_room(
    job: &Job,
    machine: &mut Machine,
    wakes: &Wakes,
    observer: &mut dyn Observer,
) -> Result<Option<Place>, Outcome> {
    let began = sys::moment();
    let mut room = Room::new(job.room, machine.gauges().memory, !job.busy.is_empty(), began);
    let mut place = take_place(job, observer);
    let mut told: Vec<Want> = Vec::new();
    loop {
        match look(&mut room, job, machine, place.as_mut()) {
            Entry::Ready => return Ok(place),
            Entry::Wait(wants) | Entry::TimedOut(wants) if job.dry_run => {
                observer.notice(&Notice::WouldWait(wants));
                return Ok(place);
            }
            Entry::TimedOut(wants) => {
                return Err(no_room(sys::moment().since(began), wants, observer));
            }
            Entry::Wait(wants) if is_news(&told, &wants) => {
                observer.notice(&Notice::Waiting(wants.clone()));
                told = wants;
            }
            Entry::Wait(_) => {}
        }
        let left = job.room.start_timeout.saturating_sub(sys::moment().since(began));
        match wakes.wait(job.policy.poll.min(SLOWEST).min(left)) {
            Some(Wake::Signal(signal)) => {
                observer.notice(&Notice::EndedBeforeStart { signal });
                return Err(Outcome::Interrupted(signal));
            }
            Some(Wake::CtrlZ) => sys::suspend_self(),
            _ => {}
        }
    }
}

fn take_place(job: &Job, observer: &mut dyn Observer) -> Option<Place> {
    match Place::take(job.room.need?) {
        Ok(place) => Some(place),
        Err(error) => {
            let what = format!("other guards cannot see this one's need: {error}");
            observer.notice(&Notice::Warning(what));
            None
        }
    }
}

/// One look, in this guard's turn if it has a place in the line.
fn look(room: &mut Room, job: &Job, machine: &mut Machine, place: Option<&mut Place>) -> Entry {
    let busy = busy_commands(machine, &job.busy);
    let Some(place) = place else {
        return room.observe(&reading(&machine.gauges()), busy, Crowd::default(), sys::moment());
    };
    let turn = place.turn();
    // Where there can be no lock two guards may start at once, which is better than none at all.
    let at_gate = matches!(turn, Ok(None));
    let crowd = Crowd { at_gate, ..place.crowd() };
    let entry = room.observe(&reading(&machine.gauges()), busy, crowd, sys::moment());
    match &entry {
        Entry::Ready => place.admit(),
        Entry::Wait(wants) | Entry::TimedOut(wants) => {
            let is_memory =
                |want: &Want| matches!(want, Want::NoFit { .. } | Want::Ahead(_) | Want::Gate);
            place.wait_in_line(wants.iter().all(is_memory));
        }
    }
    drop(turn);
    entry
}

fn is_news(told: &[Want], wants: &[Want]) -> bool {
    told.len() != wants.len() || told.iter().zip(wants).any(|(a, b)| !a.is_like(b))
}

fn no_room(waited: Duration, wants: Vec<Want>, observer: &mut dyn Observer) -> Outcome {
    let why = listed(&wants);
    observer.notice(&Notice::NoRoom { waited: Span(waited), wants });
    Outcome::NoRoom(why)
}
