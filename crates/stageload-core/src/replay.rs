//! What a guard would have decided over a trace: the same plain calls that a run makes.

use std::time::Duration;

use crate::{
    Baseline, Blame, Bytes, Event, Guard, Moment, Policy, Reading, Record, Verdict, Warning,
};

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

impl Decision {
    /// The name of the rule; None where nothing was wrong.
    pub const fn rule(&self) -> Option<&'static str> {
        match &self.verdict {
            Verdict::Continue => None,
            Verdict::Warn(warning) => Some(warning.rule()),
            Verdict::Stop(reason) => Some(reason.breach.rule()),
        }
    }

    /// Who made memory short; None for a warning that blames nobody.
    pub fn blame(&self) -> Option<Blame> {
        match &self.verdict {
            Verdict::Warn(Warning::NotOurs { share, .. }) => Some(Blame::Others(*share)),
            Verdict::Continue | Verdict::Warn(_) => None,
            Verdict::Stop(reason) => Some(reason.blame()),
        }
    }
}

/// The first known swap in use of a trace, and when that was, in seconds of the trace.
pub fn first_swap(records: &[Record]) -> Option<(f64, Bytes)> {
    in_time(records).into_iter().find_map(|step| match step {
        Step::Look(reading) => Some((reading.t, reading.swap_used?)),
        Step::Heard(_) => None,
    })
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
