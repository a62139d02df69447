//! Whether a guard stopped the run that a trace tells of: when, by which rule, and who made memory
//! short. A trace has the guard's sentence; its looks are judged anew for the blame.

use serde::Serialize;

use crate::replay::blame_at;
use crate::{Blame, Breach, Event, EventKind, Record};

/// What the guard writes into a trace before it stops a job.
const STOPPING: &str = "guard: stopping: ";

/// How a guard stopped a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tripped {
    /// When, in seconds of the trace; None where only the end is told.
    pub t: Option<f64>,
    /// The name of the rule, as in `reason.json`; None for the words of another version.
    pub rule: Option<&'static str>,
    /// The guard's sentence.
    pub why: String,
    /// Who made memory short; None where that was not the question.
    #[serde(serialize_with = "blame_name")]
    pub blamed: Option<Blame>,
}

pub(crate) fn tripped(records: &[Record]) -> Option<Tripped> {
    let (t, why) = records.iter().find_map(stopping).or_else(|| records.iter().find_map(ended))?;
    let rule = rule_in(&why);
    let blamed = match rule {
        Some("limit") => Some(Blame::Ours(1.0)),
        Some("signal" | "guard-death") | None => None,
        Some(_) => t.map(|t| blame_at(records, t)),
    };
    Some(Tripped { t, rule, why, blamed })
}

fn stopping(record: &Record) -> Option<(Option<f64>, String)> {
    let Record::Event(Event { kind: EventKind::Mark, note: Some(note), t, .. }) = record else {
        return None;
    };
    Some((*t, note.strip_prefix(STOPPING)?.to_owned()))
}

fn ended(record: &Record) -> Option<(Option<f64>, String)> {
    let Record::End(end) = record else { return None };
    Some((end.t, end.reason.clone()?))
}

fn rule_in(why: &str) -> Option<&'static str> {
    if why.starts_with("got SIG") || why.starts_with("SIG") {
        return Some("signal");
    }
    if why == "its guard was killed" {
        return Some("guard-death");
    }
    Breach::rule_in(why)
}

#[expect(clippy::ref_option, reason = "serde's own signature")]
fn blame_name<S: serde::Serializer>(blame: &Option<Blame>, s: S) -> Result<S::Ok, S::Error> {
    blame.map(Blame::name).serialize(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_trace;

    fn told(text: &str) -> Option<Tripped> {
        tripped(&read_trace(text).unwrap())
    }

    #[test]
    fn the_guards_own_mark_tells_when_and_by_which_rule() {
        let stopped = told(
            r#"{"type":"event","kind":"mark","note":"guard: stopping: footprint 312 MB > limit 300 MB in stage decode","t":7.25}
{"type":"end","t":8.0,"exit":3,"reason":"footprint 312 MB > limit 300 MB in stage decode"}"#,
        )
        .unwrap();
        assert_eq!((stopped.t, stopped.rule), (Some(7.25), Some("limit")));
        assert_eq!(stopped.blamed, Some(Blame::Ours(1.0)));
    }

    #[test]
    fn blame_is_found_in_the_looks_before_the_stop() {
        let sample = |i: u64| {
            let (held, demand) = ((1 + i) << 30, (10 + i) << 30);
            format!(r#"{{"type":"sample","t":{i},"footprint":{held},"demand":{demand}}}"#) + "\n"
        };
        let looks: String = (0..8).map(sample).collect();
        let end =
            r#"{"type":"end","t":7.5,"exit":3,"reason":"memory available 8% < 10% for 3.0 s"}"#;
        let stopped = told(&(looks + end)).unwrap();
        assert_eq!(stopped.rule, Some("level-low"));
        assert_eq!(stopped.blamed, Some(Blame::Ours(1.0)));
    }

    #[test]
    fn a_signal_blames_nobody_and_words_of_another_version_name_no_rule() {
        let signal = told(r#"{"type":"end","t":1,"exit":130,"reason":"SIGINT"}"#).unwrap();
        assert_eq!((signal.rule, signal.blamed), (Some("signal"), None));
        let other = told(r#"{"type":"end","exit":3,"reason":"too much"}"#).unwrap();
        assert_eq!((other.t, other.rule, other.blamed), (None, None, None));
        assert_eq!(told(r#"{"type":"end","exit":0}"#), None);
    }
}
