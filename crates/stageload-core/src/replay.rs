//! What a guard would have decided over a trace: the same plain calls that a run makes.

use std::time::Duration;

use crate::{Baseline, Bytes, Event, Guard, Moment, Policy, Reading, Record, Verdict};

/// One decision that is not "let it run".
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// When, in seconds of the trace.
    pub t: f64,
    /// What the job held then.
    pub footprint: Option<Bytes>,
    /// What was decided.
    pub verdict: Verdict,
}

/// The decisions over a trace, up to the first stop. Records are taken in the order of their times;
/// the machine's memory is what the start record says, where the baseline does not.
pub fn replay(records: &[Record], policy: Policy, mut baseline: Baseline) -> Vec<Decision> {
    baseline.memory = baseline.memory.or_else(|| memory_of(records));
    let mut guard = Guard::new(policy, baseline);
    let mut decisions = Vec::new();
    for step in in_time(records) {
        let now = Moment::awake(step.time());
        let Step::Look(reading) = step else {
            if let Step::Heard(event) = step {
                guard.hear(event, now);
            }
            continue;
        };
        let verdict = guard.observe(reading, now);
        let is_stop = matches!(verdict, Verdict::Stop(_));
        if verdict != Verdict::Continue {
            decisions.push(Decision { t: reading.t, footprint: reading.footprint, verdict });
        }
        if is_stop {
            break;
        }
    }
    decisions
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Look(&'a Reading),
    Heard(&'a Event),
}

impl Step<'_> {
    fn seconds(&self) -> f64 {
        match self {
            Self::Look(reading) => reading.t,
            Self::Heard(event) => event.t.unwrap_or_default(),
        }
    }

    fn time(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds()).unwrap_or_default()
    }
}

fn in_time(records: &[Record]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = records
        .iter()
        .filter_map(|record| match record {
            Record::Sample(reading) => Some(Step::Look(reading)),
            Record::Event(event) => Some(Step::Heard(event)),
            _ => None,
        })
        .collect();
    steps.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    steps
}

fn memory_of(records: &[Record]) -> Option<Bytes> {
    records.iter().find_map(|record| match record {
        Record::Start(meta) => meta.get("memory")?.as_u64().map(Bytes),
        _ => None,
    })
}
