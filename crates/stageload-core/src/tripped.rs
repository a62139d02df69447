//! Whether a guard stopped the run that a trace tells of: when, by which rule, and who made memory
//! short.

use serde::Serialize;

use crate::{Blame, End, Event, EventKind, Record};

/// What the guard writes into a trace before it stops a job.
const STOPPING: &str = "guard: stopping: ";

/// How a guard stopped a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tripped {
    /// When, in seconds of the trace; None where only the end is told.
    pub t: Option<f64>,
    /// The name of the rule, as in `reason.json`; None in a trace that has no end, or no rule there.
    pub rule: Option<String>,
    /// The guard's sentence.
    pub why: String,
    /// Who made memory short; None where that was not the question or is not known.
    #[serde(serialize_with = "blame_name")]
    pub blamed: Option<Blame>,
}

/// A machine that went down while the job was being stopped leaves the mark and no end.
pub(crate) fn tripped(records: &[Record], end: &End) -> Option<Tripped> {
    let mark = records.iter().find_map(stopping);
    let (t, why) = mark.or_else(|| Some((end.t, end.reason.clone()?)))?;
    let blamed = end.share.map(|share| Blame::of_share(Some(share)));
    Some(Tripped { t, rule: end.rule.clone(), why, blamed })
}

fn stopping(record: &Record) -> Option<(Option<f64>, String)> {
    let Record::Event(Event { kind: EventKind::Mark, note: Some(note), t, .. }) = record else {
        return None;
    };
    Some((*t, note.strip_prefix(STOPPING)?.to_owned()))
}

#[expect(clippy::ref_option, reason = "serde's own signature")]
fn blame_name<S: serde::Serializer>(blame: &Option<Blame>, s: S) -> Result<S::Ok, S::Error> {
    blame.map(Blame::name).serialize(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read_trace, summarize};

    fn told(text: &str) -> Option<Tripped> {
        summarize(&read_trace(text).unwrap()).stop
    }

    #[test]
    fn the_guards_mark_tells_when_and_the_end_by_which_rule_and_whose_doing() {
        let mark =
            r#"{"type":"event","kind":"mark","note":"guard: stopping: 2.00 GB left","t":7.25}"#;
        let end =
            r#"{"type":"end","t":8,"exit":3,"reason":"2.00 GB left","rule":"floor","share":0.2}"#;
        let stop = told(&format!("{mark}\n{end}")).unwrap();
        assert_eq!((stop.t, stop.rule.as_deref()), (Some(7.25), Some("floor")));
        assert_eq!((&*stop.why, stop.blamed), ("2.00 GB left", Some(Blame::Others(0.2))));
        let without_end = told(mark).unwrap();
        assert_eq!((without_end.t, without_end.rule), (Some(7.25), None));
    }

    #[test]
    fn an_end_without_a_rule_still_tells_why() {
        let stop = told(r#"{"type":"end","t":9,"exit":3,"reason":"too much"}"#).unwrap();
        assert_eq!((stop.t, stop.rule, stop.blamed), (Some(9.0), None, None));
        assert_eq!(told(r#"{"type":"end","exit":0}"#), None);
    }
}
