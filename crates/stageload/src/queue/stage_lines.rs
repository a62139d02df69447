//! Stages of a program that knows nothing of Stageload: read from the lines it prints, and written as
//! events for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use stageload_core::{Event, EventKind};

use crate::presets::StageWatch;

/// The most that is read at once; a program that prints faster is read on at the next call.
const PER_CALL: u64 = 1 << 20;
/// A line longer than this tells nothing, and is not kept.
const LONGEST_LINE: usize = 64 << 10;

/// Reads what a job prints as it grows.
#[derive(Debug)]
pub(super) struct StageLines {
    output: File,
    offset: u64,
    partial: Vec<u8>,
    watch: StageWatch,
    events: File,
}

impl StageLines {
    pub(super) fn open(output: &Path, events: &Path, watch: StageWatch) -> io::Result<Self> {
        let output = File::open(output)?;
        let events = OpenOptions::new().create(true).append(true).open(events)?;
        Ok(Self { output, offset: 0, partial: Vec::new(), watch, events })
    }

    /// Writes an event for each stage that has begun since the last call. A progress bar has no end
    /// of line for a long time, so what stands there is looked at too.
    pub(super) fn read_on(&mut self) -> io::Result<()> {
        self.output.seek(SeekFrom::Start(self.offset))?;
        let mut fresh = Vec::new();
        self.offset += (&self.output).take(PER_CALL).read_to_end(&mut fresh)? as u64;
        if fresh.is_empty() {
            return Ok(());
        }
        self.partial.extend_from_slice(&fresh);
        let lines = std::mem::take(&mut self.partial);
        let mut stages = Vec::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            stages.extend(self.watch.feed(&line).map(str::to_owned));
        }
        let last = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.partial = lines[last..].to_vec();
        if self.partial.len() > LONGEST_LINE {
            self.partial.clear();
        }
        stages.into_iter().try_for_each(|stage| self.tell(stage))
    }

    fn tell(&mut self, stage: String) -> io::Result<()> {
        let event = Event { stage: Some(stage), ..Event::new(EventKind::Stage) };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.events.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::presets::Presets;

    #[test]
    fn a_stage_that_a_line_of_output_tells_becomes_an_event_once() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("presets")).unwrap();
        let preset = "name = \"gen\"\nabout = \"x\"\nversion = 1\ncommand = [\"true\"]\n\
            [inputs]\nkind = \"any\"\nleast = 0\nmost = 0\n\
            [stages]\nnames = [\"denoise\", \"decode\"]\n\
            lines = [{ stage = \"denoise\", line = '^\\s*\\d+%' }, { stage = \"decode\", line = '^decoding' }]\n";
        fs::write(home.path().join("presets/gen.toml"), preset).unwrap();
        let (presets, problems) = Presets::load(home.path());
        assert!(problems.is_empty(), "{problems:?}");
        let watch = presets.get("gen").unwrap().stage_watch().unwrap();
        let (output, events) = (home.path().join("out"), home.path().join("events"));
        fs::write(&output, "loading\n  1%|\r  2%|").unwrap();
        let mut lines = StageLines::open(&output, &events, watch).unwrap();
        lines.read_on().unwrap();
        lines.read_on().unwrap();
        let mut job = OpenOptions::new().append(true).open(&output).unwrap();
        job.write_all(b"\r 99%|\ndecoding\n").unwrap();
        lines.read_on().unwrap();
        let text = fs::read_to_string(&events).unwrap();
        assert_eq!(
            text,
            "{\"kind\":\"stage\",\"stage\":\"denoise\"}\n{\"kind\":\"stage\",\"stage\":\"decode\"}\n"
        );
    }
}
