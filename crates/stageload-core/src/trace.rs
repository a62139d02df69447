//! The lines of a trace. A reader ignores the types and keys it does not know, so that a trace
//! of a newer version still reads. Files are opened by the `stageload` crate.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Event, Reading};

/// One line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Record {
    /// What was started, when and how; free-form.
    Start(Map<String, Value>),
    /// One look.
    Sample(Reading),
    /// What the job said of itself.
    Event(Event),
    /// A reading or a write that failed.
    Error {
        /// Seconds since the trace began.
        #[serde(default)]
        t: f64,
        /// What failed.
        error: String,
    },
    /// The run is over.
    End(End),
    /// A line of a later version.
    #[serde(other)]
    Unknown,
}

/// How a run ended, as far as the writer knew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Seconds since the trace began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// The exit code of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Why the guard stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the rule by which it did, as in `reason.json`; `signal` for a guard that was told
    /// to end, `guard-death` for one that was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The job's share of the growth that broke the rule, 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// A line in the middle of a trace that is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What the parser says.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} is not a trace record: {}", self.line, self.why)
    }
}

impl std::error::Error for BadLine {}

/// No time of a run, in seconds, and no other fraction of a record is larger: seconds since 1970 are
/// 1.8e9. What is would make an endless axis, and sums of it are infinite.
const LARGEST: f64 = 1e10;

/// The records of a trace. A last line that is half-written, as a killed run leaves it, is skipped,
/// and so is the byte order mark that editors on Windows put first.
pub fn read_trace(text: &str) -> Result<Vec<Record>, BadLine> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let mut records = Vec::with_capacity(lines.len());
    for (i, (number, line)) in lines.iter().enumerate() {
        match read_record(line) {
            Ok(record) => records.push(record),
            Err(_) if i + 1 == lines.len() && is_half(line) => break,
            Err(why) => return Err(BadLine { line: number + 1, why }),
        }
    }
    Ok(records)
}

fn read_record(line: &str) -> Result<Record, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if is_event_of_later_version(&value) {
        return Ok(Record::Unknown);
    }
    check_fractions(&value)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Half an object is never JSON.
fn is_half(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_err()
}

fn check_fractions(record: &Value) -> Result<(), String> {
    for name in ["t", "seconds", "utc", "age", "r"] {
        let absurd = record.get(name).and_then(Value::as_f64).filter(|n| n.abs() > LARGEST);
        if let Some(n) = absurd {
            return Err(format!("{name} is {n:e}, which no run can have"));
        }
    }
    Ok(())
}

fn is_event_of_later_version(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str);
    value.get("type").and_then(Value::as_str) == Some("event")
        && kind.is_some_and(|kind| !["stage", "load", "reload", "release", "mark"].contains(&kind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Bytes, EventKind, Percent};

    #[test]
    fn a_half_written_last_line_is_skipped() {
        let text = "{\"type\":\"start\",\"mode\":\"eager\"}\n{\"type\":\"sample\",\"t\":1.0,\"foot";
        assert_eq!(read_trace(text).unwrap().len(), 1);
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named_by_its_number() {
        let text = "{\"type\":\"start\"}\n\nnonsense\n{\"type\":\"end\"}\n";
        assert_eq!(read_trace(text).unwrap_err().line, 3);
    }

    #[test]
    fn a_last_line_that_is_whole_but_no_record_is_named() {
        assert_eq!(read_trace("{\"type\":\"start\"}\n{\"type\":\"sample\"}").unwrap_err().line, 2);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(read_trace("\u{feff}{\"type\":\"end\",\"exit\":0}\r\n").unwrap().len(), 1);
    }

    #[test]
    fn a_number_that_no_run_can_have_is_refused_by_line_and_name() {
        let samples = |t: &str| {
            format!("{{\"type\":\"sample\",\"t\":0}}\n{{\"type\":\"sample\",\"t\":{t}}}\n")
        };
        for t in ["1e308", "-1e308", "1e11"] {
            let bad = read_trace(&samples(t)).unwrap_err();
            assert_eq!(bad.line, 2, "{t}");
            assert!(bad.why.starts_with("t is ") && bad.why.ends_with("no run can have"), "{bad}");
        }
        let load = r#"{"type":"event","kind":"load","t":1,"seconds":1e300}"#;
        assert!(read_trace(load).unwrap_err().why.starts_with("seconds is 1e300"));
        assert_eq!(read_trace(&samples("1790000000.5")).unwrap().len(), 2);
    }

    #[test]
    fn unknown_is_written_as_null_and_read_back_as_unknown() {
        let sample = Record::Sample(Reading { t: 1.5, ..Reading::default() });
        let line = serde_json::to_string(&sample).unwrap();
        assert_eq!(
            line,
            r#"{"type":"sample","t":1.5,"footprint":null,"swap_used":null,"level":null}"#
        );
        assert_eq!(read_trace(&line).unwrap(), [sample]);
    }

    #[test]
    fn what_a_later_version_wrote_is_ignored() {
        let text = r#"{"type":"weather","sun":true}
{"type":"event","kind":"prefetch","t":1}
{"type":"sample","t":1,"footprint":5,"level":44,"swap_used":6,"pressure":2}
{"type":"end","exit":0,"cheers":1}"#;
        let records = read_trace(text).unwrap();
        assert_eq!(records[0], Record::Unknown);
        assert_eq!(records[1], Record::Unknown);
        let Record::Sample(sample) = &records[2] else { panic!("{:?}", records[2]) };
        assert_eq!((sample.footprint, sample.level), (Some(Bytes(5)), Percent::new(44)));
        assert_eq!(records[3], Record::End(End { exit: Some(0), ..End::default() }));
    }

    #[test]
    fn an_event_keeps_all_it_said() {
        let line = r#"{"type":"event","kind":"load","name":"unet","stage":"denoise","nbytes":9,"seconds":0.5,"t":2.0}"#;
        let [Record::Event(event)] = &read_trace(line).unwrap()[..] else { panic!() };
        assert_eq!((event.kind, event.nbytes), (EventKind::Load, Some(Bytes(9))));
        assert_eq!(serde_json::to_string(&Record::Event(event.clone())).unwrap(), line);
    }

    proptest! {
        #[test]
        fn nothing_in_a_trace_brings_its_reader_down(
            lines in prop::collection::vec(line(), 0..20),
            end in any::<String>(),
        ) {
            if let Ok(records) = read_trace(&(lines.join("\n") + "\n" + &end)) {
                crate::summarize(&records);
                crate::replay(&records, crate::testing::policy(), crate::Baseline::default());
            }
        }
    }

    /// A record with any numbers in it.
    fn line() -> impl Strategy<Value = String> {
        let number = || {
            prop_oneof![
                any::<f64>().prop_map(|t| format!("{t:e}")),
                any::<i64>().prop_map(|n| n.to_string()),
                any::<u64>().prop_map(|n| n.to_string()),
                Just("null".to_owned()),
            ]
        };
        let kind = prop::sample::select(vec!["stage", "load", "release", "mark", "dance"]);
        prop_oneof![
            (number(), number(), number(), number()).prop_map(|(t, footprint, swap, level)| format!(
                r#"{{"type":"sample","t":{t},"footprint":{footprint},"swap_used":{swap},"level":{level}}}"#
            )),
            (kind, number(), number(), any::<String>()).prop_map(|(kind, t, nbytes, stage)| {
                let stage = serde_json::to_string(&stage).unwrap();
                format!(r#"{{"type":"event","kind":"{kind}","t":{t},"nbytes":{nbytes},"stage":{stage}}}"#)
            }),
            (number(), number()).prop_map(|(memory, t)| format!(
                r#"{{"type":"start","memory":{memory},"t":{t}}}"#
            )),
        ]
    }
}
