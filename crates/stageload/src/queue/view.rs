//! The queue as it is shown: every front end gets this, and decides nothing itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stageload_core::printable;
use stageload_core::queue::{JobId, Turns};

use super::engine::is_engine_there;
use super::last_seen::LastSeen;
use super::place::AttemptFiles;
use crate::Error;
use crate::store::{JobRow, Store};
use crate::utc::utc_seconds;
use crate::wire::{JobView, QUEUE_VERSION, QueueView, Spec};

/// The jobs that are not over, in the order in which they will run, and the last `history` that are.
pub fn view(
    home: &Path,
    store: &Store,
    lane: Option<&str>,
    history: usize,
) -> Result<QueueView, Error> {
    let is_shown = |row: &JobRow| lane.is_none_or(|lane| row.spec.lane == lane);
    let (jobs, turns, paused) = store.load()?;
    let places = places(&jobs, &turns);
    let mut shown = Vec::new();
    for row in store.unfinished()?.into_iter().filter(is_shown) {
        let place = places.get(&row.id).copied();
        shown.push(job_view(home, store, row, place)?);
    }
    // What runs first, then what waits in its order, then what waits for somebody's word.
    shown.sort_by_key(|job| (!job.is_active, job.place.unwrap_or(usize::MAX), job.id));
    let mut past = Vec::new();
    for row in store.finished(history)?.into_iter().filter(is_shown) {
        past.push(job_view(home, store, row, None)?);
    }
    let engine = is_engine_there(home);
    Ok(QueueView { version: QUEUE_VERSION, engine, paused, jobs: shown, history: past })
}

/// One job.
pub fn view_of(home: &Path, store: &Store, id: JobId) -> Result<JobView, Error> {
    let row = store.job(id)?.ok_or(Error::NoJob { id })?;
    let (jobs, turns, _) = store.load()?;
    job_view(home, store, row, places(&jobs, &turns).get(&id).copied())
}

/// Each waiting job's place in its lane, from 1 on.
fn places(jobs: &[stageload_core::queue::Job], turns: &Turns) -> BTreeMap<JobId, usize> {
    let mut lanes: BTreeMap<&str, Vec<&stageload_core::queue::Job>> = BTreeMap::new();
    for job in jobs {
        lanes.entry(&job.lane).or_default().push(job);
    }
    let in_lane = lanes.into_values().flat_map(|jobs| {
        let order = turns.order(jobs.into_iter());
        order.into_iter().enumerate().map(|(i, job)| (job.id, i + 1)).collect::<Vec<_>>()
    });
    in_lane.collect()
}

fn job_view(
    home: &Path,
    store: &Store,
    row: JobRow,
    place: Option<usize>,
) -> Result<JobView, Error> {
    let learned = store.learned(&row.spec.key)?;
    let last = if row.attempts > 0 { store.attempt(row.id, row.attempts)? } else { None };
    let files = AttemptFiles::of(home, row.id, row.attempts);
    let is_active = row.state.is_active();
    let seen = if is_active { LastSeen::in_trace(&files.trace()) } else { LastSeen::default() };
    let began = last.as_ref().and_then(|last| last.began_utc);
    let until = last.as_ref().and_then(|last| last.ended_utc).or_else(utc_seconds);
    let seconds = began.zip(until).map(|(began, until)| (until - began).max(0.0));
    let whole: f64 = learned.times.iter().map(|(_, seconds)| seconds).sum();
    let eta = seconds.filter(|_| is_active && !learned.times.is_empty());
    let expected = learned.expected.or_else(|| row.spec.declared.clone());
    let words = row.spec.command.iter().map(|word| word.to_string_lossy().into_owned());
    Ok(JobView {
        title: title(&row.spec),
        id: row.id,
        why: row.state.why(),
        state: row.state.name().to_owned(),
        is_active,
        place,
        lane: row.spec.lane,
        owner: row.spec.owner,
        who: row.spec.who,
        priority: row.priority,
        after: row.after,
        command: words.collect(),
        folder: row.spec.folder.display().to_string(),
        preset: row.spec.preset.map(|preset| preset.name),
        attempts: row.attempts,
        files: (row.attempts > 0).then(|| files.folder.display().to_string()),
        stage: seen.stage,
        footprint: seen.reading.as_ref().and_then(|reading| reading.footprint),
        swap_used: seen.reading.as_ref().and_then(|reading| reading.swap_used),
        expected_peak: expected.as_ref().map(|expected| expected.peak),
        expected_stage: expected.and_then(|expected| expected.stage),
        peak: last.as_ref().and_then(|last| last.peak),
        swap_peak: last.as_ref().and_then(|last| last.swap_peak),
        seconds,
        eta_seconds: eta.map(|seconds| (whole - seconds).max(0.0)),
        added_utc: row.added_utc,
        changed_utc: row.changed_utc,
    })
}

fn title(spec: &Spec) -> String {
    let words: Vec<String> = match &spec.preset {
        Some(used) => {
            let name = |path: &PathBuf| {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            };
            std::iter::once(used.name.clone()).chain(used.inputs.iter().map(name)).collect()
        }
        None => spec.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    printable(&words.join(" ")).collect()
}
