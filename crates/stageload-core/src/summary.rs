//! What a trace amounts to: peaks, swap and loads, stage by stage. How it is printed or drawn is
//! the business of the front ends.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::tripped::tripped;
use crate::{Bytes, Event, EventKind, Percent, Reading, Record, Tripped};

/// The name of the time before the first stage.
const SETUP: &str = "setup";

/// A whole trace in numbers. GB in reports means 2^30 bytes; here everything is in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the start record said.
    pub meta: Map<String, Value>,
    /// Seconds from the first sample to the end.
    pub duration: f64,
    /// The most the job held at any sample; None if no sample knew.
    pub peak_footprint: Option<Bytes>,
    /// Swap over the run; None if no sample knew.
    pub swap: Option<SwapUse>,
    /// The least memory available at any sample.
    pub min_level: Option<Percent>,
    /// The stages in the order they were entered.
    pub stages: Vec<StageUse>,
    /// Loads and reloads.
    pub loads: Loads,
    /// Releases.
    pub releases: Releases,
    /// Models that were loaded in a stage that did not list them.
    pub outside_stage: BTreeSet<String>,
    /// Readings that failed: the samples have a gap there.
    pub errors: Vec<Failure>,
    /// The exit code, where the trace has one.
    pub exit: Option<i32>,
    /// Why the guard stopped the run, if it did.
    pub reason: Option<String>,
    /// The same with the rule, the time and the blame.
    pub stop: Option<Tripped>,
}

/// The machine's swap at three moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SwapUse {
    /// At the first sample.
    pub start: Bytes,
    /// At the highest.
    pub peak: Bytes,
    /// At the last.
    pub end: Bytes,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageUse {
    /// Its name; `setup` before the first.
    pub stage: String,
    /// When its window begins, in seconds of the trace.
    pub start: f64,
    /// How long it took.
    pub seconds: f64,
    /// The most the job held in it; None if no sample fell into it.
    pub peak_footprint: Option<Bytes>,
    /// Bytes of the models loaded in it.
    pub loaded: Bytes,
    /// Bytes of the models released in it or by its start.
    pub released: Bytes,
    /// How many bytes the machine's swap grew (or shrank) in it.
    pub swap_delta: Option<i64>,
}

/// All loads and reloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Loads {
    /// How many.
    pub count: usize,
    /// Their bytes.
    pub bytes: Bytes,
    /// The time they took.
    pub seconds: f64,
}

/// All releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Releases {
    /// How many.
    pub count: usize,
    /// Their bytes.
    pub bytes: Bytes,
}

/// A reading that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// When, in seconds of the trace.
    pub t: f64,
    /// What failed.
    pub error: String,
}

/// Sums a trace up. The records may be slightly out of order, as a writer that blocks while a
/// model is released leaves them.
pub fn summarize(records: &[Record]) -> Summary {
    let samples = samples_in_time(records);
    let events: Vec<&Event> = records.iter().filter_map(as_event).collect();
    let windows = windows(&events, &samples);
    let end = records.iter().rev().find_map(as_end).cloned().unwrap_or_default();
    Summary {
        meta: records.iter().find_map(as_start).cloned().unwrap_or_default(),
        duration: span_of(&samples),
        peak_footprint: samples.iter().filter_map(|s| s.footprint).max(),
        swap: swap_use(&samples),
        min_level: samples.iter().filter_map(|s| s.level).min(),
        stages: windows.iter().map(|window| window.sum_up(&samples)).collect(),
        loads: loads(&events),
        releases: releases(&events),
        outside_stage: outside_stage(&events),
        errors: records.iter().filter_map(as_failure).collect(),
        exit: end.exit,
        stop: tripped(records, &end),
        reason: end.reason,
    }
}

/// A stage from the end of the releases that its start set off to the same moment of the next
/// stage. Until those releases finish, the memory still belongs to the stage before: a sample
/// taken in between charged 1.79 GB too much to the decode stage of `qwen-staged-1`.
struct Window<'a> {
    stage: &'a str,
    start: f64,
    end: f64,
    is_last: bool,
    events: Vec<&'a Event>,
}

impl Window<'_> {
    fn holds(&self, t: f64) -> bool {
        self.start <= t && (t < self.end || self.is_last)
    }

    fn sum_up(&self, samples: &[Reading]) -> StageUse {
        let inside: Vec<&Reading> = samples.iter().filter(|s| self.holds(s.t)).collect();
        let bytes_of = |is: fn(EventKind) -> bool| {
            self.events.iter().filter(|e| is(e.kind)).filter_map(|e| e.nbytes).sum()
        };
        StageUse {
            stage: self.stage.to_owned(),
            start: rounded(self.start),
            seconds: rounded(self.end - self.start),
            peak_footprint: inside.iter().filter_map(|s| s.footprint).max(),
            loaded: bytes_of(is_load),
            released: bytes_of(|kind| kind == EventKind::Release),
            swap_delta: self.swap_delta(samples),
        }
    }

    /// From the last sample before the stage (its own first, where there is none before it).
    fn swap_delta(&self, samples: &[Reading]) -> Option<i64> {
        let known = |s: &&Reading| s.swap_used.is_some();
        let inside = || samples.iter().filter(|s| self.holds(s.t)).filter(known);
        let before = samples.iter().filter(|s| s.t < self.start).rfind(known);
        let first = before.or_else(|| inside().next())?.swap_used?;
        let last = inside().next_back()?.swap_used?;
        // More than 2^63 bytes is no size of this world, but a trace may say it.
        Some((last - first).clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }
}

fn windows<'a>(events: &[&'a Event], samples: &[Reading]) -> Vec<Window<'a>> {
    let mut windows = vec![Window::of_setup(events, samples)];
    for (i, event) in events.iter().enumerate() {
        if let (EventKind::Stage, Some(stage)) = (event.kind, event.stage.as_deref()) {
            enter(&mut windows, stage, own_work_begins(&events[i..]));
        }
        if let Some(window) = windows.last_mut() {
            window.events.push(event);
        }
    }
    close(&mut windows, events, samples);
    windows
}

impl Window<'_> {
    /// From the first thing the trace knows: it may be the tail of a run.
    fn of_setup(events: &[&Event], samples: &[Reading]) -> Self {
        let known =
            samples.first().map(|s| s.t).into_iter().chain(events.iter().filter_map(|e| e.t));
        let start = known.reduce(f64::min).unwrap_or_default();
        Self { stage: SETUP, start, end: start, is_last: false, events: Vec::new() }
    }
}

/// Entering the stage the run is already in does not start a new window.
fn enter<'a>(windows: &mut Vec<Window<'a>>, stage: &'a str, t: f64) {
    let start = windows.last().map_or(t, |before| t.max(before.start));
    if windows.last().is_some_and(|before| before.stage == stage) {
        return;
    }
    windows.push(Window { stage, start, end: start, is_last: false, events: Vec::new() });
}

fn own_work_begins(from_stage: &[&Event]) -> f64 {
    let mut begins = from_stage[0].t.unwrap_or_default();
    for release in from_stage[1..].iter().take_while(|e| e.kind == EventKind::Release) {
        let t = release.t.unwrap_or(begins);
        if t - begins > longest(release) {
            // It came from the stage's own end, as when a run closes with everything loaded.
            break;
        }
        begins = begins.max(t);
    }
    begins
}

/// The longest that a release can have taken, if it began at once. The slowest one on record gave
/// 14.2 GB back in 4.9 s (`qwen-staged-1`), which is twice as fast as this.
fn longest(release: &Event) -> f64 {
    const PAUSE: f64 = 0.5;
    const BYTES_PER_SECOND: f64 = 1.4e9;
    match (release.seconds, release.nbytes) {
        (Some(seconds), _) => seconds + PAUSE,
        (None, Some(bytes)) => bytes.0 as f64 / BYTES_PER_SECOND + PAUSE,
        (None, None) => f64::INFINITY,
    }
}

fn close(windows: &mut Vec<Window<'_>>, events: &[&Event], samples: &[Reading]) {
    let last_event = events.iter().filter_map(|e| e.t).fold(0.0, f64::max);
    let mut end = samples.last().map_or(last_event, |s| s.t.max(last_event));
    for window in windows.iter_mut().rev() {
        window.end = end;
        end = window.start;
    }
    if let Some(last) = windows.last_mut() {
        last.is_last = true;
    }
    // A job that names its first stage at once has no setup worth a line.
    let no_setup = windows.len() > 1 && windows[0].end <= windows[0].start;
    if no_setup && windows[0].events.is_empty() {
        windows.remove(0);
    }
}

fn samples_in_time(records: &[Record]) -> Vec<Reading> {
    let mut samples: Vec<Reading> = records.iter().filter_map(as_sample).collect();
    samples.sort_by(|a, b| a.t.total_cmp(&b.t));
    samples
}

fn span_of(samples: &[Reading]) -> f64 {
    samples.first().zip(samples.last()).map_or(0.0, |(a, b)| rounded(b.t - a.t))
}

fn swap_use(samples: &[Reading]) -> Option<SwapUse> {
    let known = || samples.iter().filter_map(|s| s.swap_used);
    Some(SwapUse { start: known().next()?, peak: known().max()?, end: known().next_back()? })
}

fn is_load(kind: EventKind) -> bool {
    matches!(kind, EventKind::Load | EventKind::Reload)
}

fn loads(events: &[&Event]) -> Loads {
    let loads = || events.iter().filter(|e| is_load(e.kind));
    Loads {
        count: loads().count(),
        bytes: loads().filter_map(|e| e.nbytes).sum(),
        seconds: rounded(loads().filter_map(|e| e.seconds).fold(0.0, |sum, s| sum + s)),
    }
}

fn releases(events: &[&Event]) -> Releases {
    let releases = || events.iter().filter(|e| e.kind == EventKind::Release);
    Releases { count: releases().count(), bytes: releases().filter_map(|e| e.nbytes).sum() }
}

fn outside_stage(events: &[&Event]) -> BTreeSet<String> {
    let loads = events.iter().filter(|e| is_load(e.kind));
    let strays = loads.filter(|e| e.note.as_deref() == Some("outside_stage"));
    strays.filter_map(|e| e.name.clone()).collect()
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn as_start(record: &Record) -> Option<&Map<String, Value>> {
    if let Record::Start(meta) = record { Some(meta) } else { None }
}

fn as_sample(record: &Record) -> Option<Reading> {
    if let Record::Sample(reading) = record { Some(reading.clone()) } else { None }
}

fn as_event(record: &Record) -> Option<&Event> {
    if let Record::Event(event) = record { Some(event) } else { None }
}

fn as_end(record: &Record) -> Option<&crate::End> {
    if let Record::End(end) = record { Some(end) } else { None }
}

fn as_failure(record: &Record) -> Option<Failure> {
    if let Record::Error { t, error } = record {
        Some(Failure { t: *t, error: error.clone() })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read_trace;
    use crate::testing::{EAGER, OFFLOAD, STAGED, TAIL};

    fn summary(text: &str) -> Summary {
        summarize(&read_trace(text).unwrap())
    }

    fn peaks(summary: &Summary) -> Vec<(&str, f64)> {
        let gb = |bytes: Bytes| (bytes.as_gb() * 100.0).round() / 100.0;
        summary.stages.iter().map(|s| (&*s.stage, gb(s.peak_footprint.unwrap()))).collect()
    }

    fn swap_grew_gb(summary: &Summary) -> f64 {
        let swap = summary.swap.unwrap();
        ((swap.peak - swap.start) as f64 / (1u64 << 30) as f64 * 100.0).round() / 100.0
    }

    #[test]
    fn the_eager_run_holds_everything_in_every_stage() {
        let eager = summary(EAGER);
        let want = [("setup", 31.40), ("encode", 31.44), ("denoise", 32.52), ("decode", 43.57)];
        assert_eq!(peaks(&eager), want);
        assert!((swap_grew_gb(&eager) - 7.97).abs() < 0.001);
    }

    #[test]
    fn the_staged_run_holds_one_stage_at_a_time() {
        let staged = summary(STAGED);
        let want = [("setup", 2.08), ("encode", 19.00), ("denoise", 16.20), ("decode", 14.41)];
        assert_eq!(peaks(&staged), want);
        assert!(swap_grew_gb(&staged).abs() < 0.001);
        assert_eq!(staged.loads.count, 2);
        assert_eq!(staged.releases.bytes, Bytes(17_534_248_048 + 14_230_249_984));
    }

    #[test]
    fn a_release_is_charged_to_the_stage_whose_start_caused_it() {
        let stages = summary(STAGED).stages;
        let moved = |s: &StageUse| (s.loaded.0, s.released.0);
        assert_eq!(moved(&stages[1]), (17_534_248_048, 0));
        assert_eq!(moved(&stages[2]), (14_230_249_984, 17_534_248_048));
        assert_eq!(moved(&stages[3]), (0, 14_230_249_984));
        assert!((stages[3].start - 122.091).abs() < 1e-9);
    }

    #[test]
    fn a_release_at_the_end_of_a_stage_does_not_swallow_the_stage() {
        let text = r#"{"type":"event","kind":"stage","stage":"export","t":1.0}
{"type":"sample","t":2.0,"footprint":9}
{"type":"event","kind":"release","name":"net","nbytes":4500000,"t":4.0}
{"type":"sample","t":4.1,"footprint":1}"#;
        let stages = summary(text).stages;
        let export = stages.last().unwrap();
        assert_eq!((export.start, export.peak_footprint), (1.0, Some(Bytes(9))));
        assert_eq!(export.released, Bytes(4_500_000));
    }

    proptest! {
        #[test]
        fn stages_follow_each_other_without_gaps_whatever_the_order_of_the_lines(
            lines in prop::collection::vec((0u8..4, 0u32..50, 0u8..3), 0..40),
        ) {
            let records: Vec<Record> = lines.iter().map(|(kind, t, stage)| {
                let t = f64::from(*t);
                let event = |kind| Record::Event(Event {
                    stage: Some(format!("s{stage}")), t: Some(t), ..Event::new(kind)
                });
                match kind {
                    0 => event(EventKind::Stage),
                    1 => event(EventKind::Release),
                    2 => event(EventKind::Load),
                    _ => Record::Sample(Reading { t, ..Reading::default() }),
                }
            }).collect();
            let stages = summarize(&records).stages;
            for pair in stages.windows(2) {
                prop_assert!((pair[0].start + pair[0].seconds - pair[1].start).abs() < 0.01);
            }
            prop_assert!(stages.iter().all(|stage| stage.seconds >= 0.0));
        }
    }

    #[test]
    fn offloading_swaps_while_the_footprint_stays_small() {
        let offload = summary(OFFLOAD);
        assert!((swap_grew_gb(&offload) - 9.58).abs() < 0.001);
        assert!((offload.peak_footprint.unwrap().as_gb() - 18.5).abs() < 0.05);
    }

    #[test]
    fn a_tail_without_a_start_still_sums_up() {
        let tail = summary(TAIL);
        assert_eq!(tail.stages.len(), 2);
        assert!((tail.peak_footprint.unwrap().as_gb() - 44.23).abs() < 0.01);
        assert_eq!(tail.min_level, Percent::new(6));
    }

    #[test]
    fn unknown_readings_are_left_out_and_an_empty_trace_has_no_peak() {
        let text = r#"{"type":"sample","t":0,"footprint":null,"swap_used":null,"level":null}
{"type":"sample","t":1,"footprint":7,"swap_used":null,"level":null}"#;
        let known_once = summary(text);
        assert_eq!((known_once.peak_footprint, known_once.swap), (Some(Bytes(7)), None));
        let empty = summarize(&[]);
        assert_eq!((empty.peak_footprint, empty.duration), (None, 0.0));
    }

    #[test]
    fn entering_the_same_stage_again_starts_no_window() {
        let text = r#"{"type":"event","kind":"stage","stage":"a","t":0}
{"type":"sample","t":0,"footprint":1}
{"type":"event","kind":"stage","stage":"a","t":1}
{"type":"sample","t":2,"footprint":2}
{"type":"end","exit":3,"reason":"footprint"}"#;
        let again = summary(text);
        assert_eq!(again.stages.len(), 1);
        assert_eq!((again.exit, again.reason.as_deref()), (Some(3), Some("footprint")));
    }
}
