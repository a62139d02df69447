//! What an attempt was last seen to do, from its trace. A trace grows to many megabytes, so that only
//! its end is read while the job runs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use stageload_core::{Bytes, EventKind, Reading, Record, read_trace};

use crate::load_trace;

/// Where the last look and the last stage are, unless a stage is long.
const END: u64 = 64 << 10;

/// The last look in a trace that still grows, and the stage it was in, if that is not long ago.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastSeen {
    /// The last look.
    pub reading: Option<Reading>,
    /// The last stage that was entered.
    pub stage: Option<String>,
}

impl LastSeen {
    /// From the end of a trace.
    pub fn in_trace(path: &Path) -> Self {
        Self::of(&read_end(path).unwrap_or_default())
    }

    fn of(records: &[Record]) -> Self {
        let stage = |record: &Record| match record {
            Record::Event(event) if event.kind == EventKind::Stage => event.stage.clone(),
            _ => None,
        };
        let reading = |record: &Record| match record {
            Record::Sample(reading) => Some(reading.clone()),
            _ => None,
        };
        Self {
            reading: records.iter().rev().find_map(reading),
            stage: records.iter().rev().find_map(stage),
        }
    }
}

/// What the end of a trace says of a job that went down with the machine: `in texture at 44.20 GB,
/// swap +12.00 GB`.
pub(super) fn last_words(path: &Path) -> Option<String> {
    let records = load_trace(path).ok()?;
    let seen = LastSeen::of(&records);
    let reading = seen.reading?;
    let stage = seen.stage.map_or_else(String::new, |stage| format!("in {stage} "));
    let held = reading.footprint.map_or_else(String::new, |held| format!("at {held}"));
    let first = |record: &Record| match record {
        Record::Sample(reading) => reading.swap_used,
        _ => None,
    };
    let swap = records.iter().find_map(first).zip(reading.swap_used);
    let swap =
        swap.map_or_else(String::new, |(start, now)| format!(", swap {}", signed(start, now)));
    Some(format!("{stage}{held}{swap}").trim().to_owned()).filter(|words| !words.is_empty())
}

fn signed(start: Bytes, now: Bytes) -> String {
    if now >= start {
        format!("+{}", now.saturating_sub(start))
    } else {
        format!("-{}", start.saturating_sub(now))
    }
}

fn read_end(path: &Path) -> io::Result<Vec<Record>> {
    let mut file = File::open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let from = length.saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut raw = Vec::new();
    file.read_to_end(&mut raw)?;
    let text = String::from_utf8_lossy(&raw);
    // The first line is half a line, unless it is the file's first.
    let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(read_trace(whole).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_end_of_a_long_trace_tells_the_last_look_and_stage() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sample = |t: u32, swap: u64| {
            format!("{{\"type\":\"sample\",\"t\":{t},\"footprint\":{t},\"swap_used\":{swap}}}\n")
        };
        let mut text = sample(0, 1 << 30);
        text.extend((1..3000).map(|t| sample(t, 0)));
        text += "{\"type\":\"event\",\"kind\":\"stage\",\"stage\":\"texture\",\"t\":3000}\n\
                 {\"type\":\"sample\",\"t\":3001,\"footprint\":2147483648,\"swap_used\":3221225472}\n{\"type\":\"sa";
        fs::write(file.path(), text).unwrap();
        let seen = LastSeen::in_trace(file.path());
        assert_eq!(seen.stage.as_deref(), Some("texture"));
        assert_eq!(seen.reading.unwrap().footprint, Some(Bytes::gib(2)));
        let words = last_words(file.path()).unwrap();
        assert_eq!(words, "in texture at 2.00 GB, swap +2.00 GB");
        assert_eq!(last_words(Path::new("/no/such/trace")), None);
    }
}
