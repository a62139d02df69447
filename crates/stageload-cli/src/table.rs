//! Summaries as a table: of one trace with all its columns, of several side by side. How a table
//! looks on paper is in `grid.rs`. GB means 2^30 bytes, MB 2^20.

use std::fmt::Write;

use stageload::core::{Bytes, StageUse, Summary, Tripped};

use crate::grid::{Grid, Paper};

/// What the sizes of one table are counted in: a small run in GB would be a column of 0.00.
#[derive(Debug, Clone, Copy)]
struct Unit {
    name: &'static str,
    bytes: f64,
    decimals: usize,
}

const GB: Unit = Unit { name: "GB", bytes: (1u64 << 30) as f64, decimals: 2 };
const MB: Unit = Unit { name: "MB", bytes: (1u64 << 20) as f64, decimals: 1 };

/// One trace under its name, one row a stage and one for the whole.
pub(crate) fn table(name: &str, summary: &Summary) -> String {
    report(&[(name, summary)], Paper::Text)
}

/// The traces under their names, in one table.
pub(crate) fn report(traces: &[(&str, &Summary)], paper: Paper) -> String {
    let unit = Unit::fitting(traces.iter().map(|(_, summary)| *summary));
    let grid = match traces {
        [(_, summary)] => unit.alone(summary),
        _ => unit.side_by_side(traces),
    };
    let titles: Vec<String> =
        traces.iter().map(|(name, summary)| paper.line(&title(name, summary))).collect();
    let mut text = titles.concat() + paper.gap() + &grid.on(paper) + paper.gap();
    for (name, summary) in traces {
        let who = if traces.len() > 1 { format!("{name}: ") } else { String::new() };
        for remark in remarks(summary) {
            text += &paper.line(&format!("{who}{remark}"));
        }
    }
    text
}

fn title(name: &str, summary: &Summary) -> String {
    let said = |key| summary.meta.get(key).and_then(|value| value.as_str());
    let facts: Vec<&str> = ["pipeline", "mode"].into_iter().filter_map(said).collect();
    if facts.is_empty() { name.to_owned() } else { format!("{name}: {}", facts.join(", ")) }
}

/// A stage is the same in two traces if it has the same name and is there the same time round.
type Key<'a> = (&'a str, usize);

fn keyed(summary: &Summary) -> Vec<(Key<'_>, &StageUse)> {
    let round = |i: usize| {
        let same = |stage: &&StageUse| stage.stage == summary.stages[i].stage;
        summary.stages[..i].iter().filter(same).count()
    };
    summary.stages.iter().enumerate().map(|(i, s)| ((&*s.stage, round(i)), s)).collect()
}

/// Every stage of every trace once, in an order that fits them all as far as there is one.
fn all_stages<'a>(traces: &[(&str, &'a Summary)]) -> Vec<Key<'a>> {
    let mut all: Vec<Key<'a>> = Vec::new();
    for (_, summary) in traces {
        let own = keyed(summary);
        // Runs that share no stage come one after the other.
        let is_other = own.iter().all(|(key, _)| !all.contains(key));
        let mut next = if is_other { all.len() } else { 0 };
        for (key, _) in own {
            let known = all.iter().position(|known| *known == key);
            if known.is_none() {
                all.insert(next, key);
            }
            next = known.unwrap_or(next) + 1;
        }
    }
    all
}

impl Unit {
    fn fitting<'a>(summaries: impl Iterator<Item = &'a Summary>) -> Self {
        let most_of = |s: &Summary| s.peak_footprint.unwrap_or_default().max(s.loads.bytes);
        let most = summaries.map(most_of).max().unwrap_or_default();
        if most < Bytes::gib(1) && most > Bytes::ZERO { MB } else { GB }
    }

    fn alone(self, summary: &Summary) -> Grid {
        let of_bytes = |what| format!("{what} {}", self.name);
        let [peak, loaded, released, swap] = ["peak", "loaded", "released", "swap"].map(of_bytes);
        let header = vec!["stage".to_owned(), "seconds".to_owned(), peak, loaded, released, swap];
        let rows = summary.stages.iter().map(|stage| self.stage_row(stage).to_vec()).collect();
        Grid { groups: Vec::new(), header, rows, total: self.total_row(summary).to_vec() }
    }

    /// What two runs are compared by: time, peak and swap.
    fn side_by_side(self, traces: &[(&str, &Summary)]) -> Grid {
        let mut header = vec!["stage".to_owned()];
        let mut total = vec!["total".to_owned()];
        for (_, summary) in traces {
            let [_, seconds, peak, _, _, swap] = self.total_row(summary);
            header.extend(["seconds".into(), format!("peak {}", self.name)]);
            header.push(format!("swap {}", self.name));
            total.extend([seconds, peak, swap]);
        }
        let runs: Vec<_> = traces.iter().map(|(_, summary)| keyed(summary)).collect();
        let row = |key: &Key<'_>| {
            let mut row = vec![key.0.to_owned()];
            for stages in &runs {
                let stage = stages.iter().find(|(own, _)| own == key);
                row.extend(stage.map_or_else(nothing, |(_, stage)| self.compared(stage)));
            }
            row
        };
        let rows = all_stages(traces).iter().map(row).collect();
        let groups = traces.iter().map(|(name, _)| ((*name).to_owned(), 3)).collect();
        Grid { groups, header, rows, total }
    }

    fn compared(self, stage: &StageUse) -> [String; 3] {
        let [_, seconds, peak, _, _, swap] = self.stage_row(stage);
        [seconds, peak, swap]
    }

    fn stage_row(self, stage: &StageUse) -> [String; 6] {
        [
            stage.stage.clone(),
            format!("{:.1}", stage.seconds),
            self.known(stage.peak_footprint),
            self.some(stage.loaded),
            self.some(stage.released),
            self.signed(stage.swap_delta.map(|bytes| bytes as f64)),
        ]
    }

    /// The swap of the whole is its peak over its start, which is what the budget is held against.
    fn total_row(self, summary: &Summary) -> [String; 6] {
        [
            "total".to_owned(),
            format!("{:.1}", summary.duration),
            self.known(summary.peak_footprint),
            self.some(summary.loads.bytes),
            self.some(summary.releases.bytes),
            self.signed(summary.swap.map(|swap| (swap.peak - swap.start) as f64)),
        ]
    }

    fn known(self, bytes: Option<Bytes>) -> String {
        let decimals = self.decimals;
        bytes.map_or_else(
            || "?".to_owned(),
            |bytes| format!("{:.decimals$}", bytes.0 as f64 / self.bytes),
        )
    }

    fn some(self, bytes: Bytes) -> String {
        if bytes == Bytes::ZERO { "-".to_owned() } else { self.known(Some(bytes)) }
    }

    fn signed(self, bytes: Option<f64>) -> String {
        let decimals = self.decimals;
        let scale = 10f64.powi(decimals as i32);
        // + 0.0 makes a rounded -0.00 positive.
        let rounded = |bytes: f64| (bytes / self.bytes * scale).round() / scale + 0.0;
        bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:+.decimals$}", rounded(bytes)))
    }
}

/// A stage that a trace does not have.
fn nothing() -> [String; 3] {
    ["", "", ""].map(str::to_owned)
}

fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(summary.stop.as_ref().map(stopped));
    remarks.extend(summary.min_level.map(|level| format!("least memory available: {level}")));
    if !summary.outside_stage.is_empty() {
        let names: Vec<&str> = summary.outside_stage.iter().map(String::as_str).collect();
        remarks.push(format!("loaded outside their stage: {}", names.join(", ")));
    }
    let failed = summary.errors.iter();
    remarks.extend(failed.map(|failure| format!("at {:.1} s: {}", failure.t, failure.error)));
    remarks
}

/// Who tripped: rule, sentence and blame.
fn stopped(stop: &Tripped) -> String {
    let mut text = "stopped".to_owned();
    if let Some(t) = stop.t {
        let _ = write!(text, " at {t:.1} s");
    }
    if let Some(rule) = &stop.rule {
        let _ = write!(text, " by rule {rule}");
    }
    let _ = write!(text, ": {}", stop.why);
    if let Some(blame) = stop.blamed {
        let _ = write!(text, "; blame: {blame}");
    }
    text
}

#[cfg(test)]
mod tests {
    use stageload::core::{read_trace, summarize};

    use super::*;

    #[test]
    fn the_staged_run_prints_as_a_table() {
        let trace = include_str!("../../../tests/fixtures/traces/qwen-staged-1.trace.jsonl");
        let summary = summarize(&read_trace(trace).unwrap());
        let want = "\
qwen-staged-1: Qwen-Image-2.1, staged
stage    seconds  peak GB  loaded GB  released GB  swap GB
----------------------------------------------------------
setup        4.5     2.08          -            -    -0.01
encode       8.4    19.00      16.33            -    -0.02
denoise    109.2    16.20      13.25        16.33    -0.19
decode       2.2    14.41          -        13.25    +0.00
----------------------------------------------------------
total      124.3    19.00      29.58        29.58    +0.00
least memory available: 56%
";
        assert_eq!(table("qwen-staged-1", &summary), want);
    }

    #[test]
    fn a_small_run_is_counted_in_mb() {
        let trace = r#"{"type":"sample","t":0,"footprint":5452595,"swap_used":0}"#;
        let text = table("small", &summarize(&read_trace(trace).unwrap()));
        assert!(text.contains("peak MB") && text.contains(" 5.2 "), "{text}");
    }

    #[test]
    fn what_is_unknown_is_a_question_mark() {
        let text = table("empty", &summarize(&[]));
        assert!(text.lines().any(|line| line.starts_with("total") && line.contains('?')), "{text}");
    }
}
