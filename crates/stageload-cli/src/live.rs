//! What is shown while a job runs: one line that moves on a terminal, one line per stage elsewhere.
//! The text is a pure function; where it goes is in `output.rs`.

use stageload::core::{Bytes, Event, EventKind, Reading};
use stageload::{Notice, Observer};

use crate::output;

/// Terminals are at least this wide; a longer line would wrap and leave its start behind.
const WIDTH: usize = 79;
const BAR: usize = 10;
/// Bad input is refused within this many seconds.
const QUICK: f64 = 0.5;
const GIB: f64 = (1u64 << 30) as f64;

/// Shows a job to a person.
#[derive(Debug, Default)]
pub(crate) struct Live {
    is_terminal: bool,
    limit: Option<Bytes>,
    baseline: Option<Bytes>,
    stage: Stage,
    shown: String,
    /// When the last look was.
    t: f64,
}

#[derive(Debug, Clone, Default)]
struct Stage {
    name: String,
    since: f64,
    peak: Option<Bytes>,
}

impl Live {
    pub(crate) fn new(is_terminal: bool, limit: Option<Bytes>) -> Self {
        let stage = Stage { name: "setup".to_owned(), ..Stage::default() };
        Self { is_terminal, limit, stage, ..Self::default() }
    }

    /// Ends the display, so that the next text starts on a line of its own.
    pub(crate) fn close(&mut self) {
        if !self.shown.is_empty() {
            output::live("");
            self.shown.clear();
        }
    }

    fn enter(&mut self, name: &str, t: f64) {
        if !self.is_terminal {
            output::log(&format!("mesh: {name}"));
        }
        self.stage = Stage { name: name.to_owned(), since: t, peak: None };
    }

    fn finish_stage(&self, t: f64) {
        if self.stage.peak.is_some() && (self.is_terminal || self.stage.since > 0.0) {
            let peak = self.stage.peak.map_or_else(|| "?".to_owned(), |peak| peak.to_string());
            let seconds = t - self.stage.since;
            let done = format!("{} done in {seconds:.1} s, peak {peak}", self.stage.name);
            output::log(&format!("mesh: {done}"));
        }
    }
}

impl Observer for Live {
    fn notice(&mut self, notice: &Notice) {
        self.close();
        if self.is_terminal && matches!(notice, Notice::Starting { .. } | Notice::Exit(0)) {
            return;
        }
        if matches!(notice, Notice::Exit(_)) {
            self.finish_stage(self.t);
        }
        output::log(&format!("guard: {notice}"));
    }

    fn sample(&mut self, reading: &Reading) {
        self.t = reading.t;
        self.baseline = self.baseline.or(reading.swap_used);
        self.stage.peak = self.stage.peak.max(reading.footprint);
        let text = line(&self.stage.name, reading, self.baseline, self.limit);
        // A job that fails at once gets to say why on a clean line.
        let is_early = self.shown.is_empty() && self.stage.since == 0.0 && reading.t < QUICK;
        if self.is_terminal && !is_early && text != self.shown {
            output::live(&text);
            self.shown = text;
        }
    }

    fn event(&mut self, event: &Event) {
        let Some(name) = event.stage.as_deref().filter(|_| event.kind == EventKind::Stage) else {
            return;
        };
        if name == self.stage.name {
            return;
        }
        let t = event.t.unwrap_or_default();
        self.close();
        self.finish_stage(t);
        self.enter(name, t);
    }
}

/// Stage, time, footprint, swap, level and a bar: the footprint against its limit, or where there
/// is none, the machine's memory in use.
fn line(stage: &str, reading: &Reading, baseline: Option<Bytes>, limit: Option<Bytes>) -> String {
    let seconds = reading.t as u64;
    let footprint = reading.footprint.map_or_else(|| "?".to_owned(), |held| held.to_string());
    let swap = reading.swap_used.zip(baseline).map_or_else(
        || "?".to_owned(),
        |(used, baseline)| format!("{:+.2} GB", (used - baseline) as f64 / GIB + 0.0),
    );
    let level = reading.level.map_or_else(|| "?".to_owned(), |level| level.to_string());
    let text = format!(
        "{stage:<14} {}:{:02}  {footprint:>9}  swap {swap}  free {level:>4}  {}",
        seconds / 60,
        seconds % 60,
        bar(fullness(reading, limit)),
    );
    text.chars().take(WIDTH).collect()
}

fn fullness(reading: &Reading, limit: Option<Bytes>) -> Option<f64> {
    match limit {
        Some(limit) => reading.footprint.map(|held| held.0 as f64 / limit.0.max(1) as f64),
        None => reading.level.map(|level| 1.0 - f64::from(level.get()) / 100.0),
    }
}

fn bar(fullness: Option<f64>) -> String {
    let full = fullness.map_or(0, |share| (share.clamp(0.0, 1.0) * BAR as f64).round() as usize);
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use stageload::core::Percent;

    use super::*;

    #[test]
    fn the_live_line_fits_and_says_where_the_job_is() {
        let reading = Reading {
            t: 72.4,
            footprint: Some(Bytes::mib(1536)),
            swap_used: Some(Bytes::gib(3)),
            level: Percent::new(56),
            ..Reading::default()
        };
        let text = line("shape_1024", &reading, Some(Bytes::gib(3)), Some(Bytes::gib(3)));
        assert_eq!(text, "shape_1024     1:12    1.50 GB  swap +0.00 GB  free  56%  [#####-----]");
        let long = line(&"x".repeat(200), &reading, None, None);
        assert_eq!(long.chars().count(), WIDTH);
    }

    #[test]
    fn an_unknown_reading_shows_as_unknown() {
        let text = line("setup", &Reading::default(), None, None);
        assert_eq!(text, "setup          0:00          ?  swap ?  free    ?  [----------]");
    }
}
