//! A summary as a table of text. GB means 2^30 bytes, MB 2^20.

use std::fmt::Write;

use stageload::core::{Bytes, StageUse, Summary};

type Row = [String; 6];

/// What the sizes of one table are counted in: a small run in GB would be a column of 0.00.
#[derive(Debug, Clone, Copy)]
struct Unit {
    name: &'static str,
    bytes: f64,
    decimals: usize,
}

const GB: Unit = Unit { name: "GB", bytes: (1u64 << 30) as f64, decimals: 2 };
const MB: Unit = Unit { name: "MB", bytes: (1u64 << 20) as f64, decimals: 1 };

/// The table of one trace under its name, one row a stage and one for the whole.
pub(crate) fn table(name: &str, summary: &Summary) -> String {
    let unit = Unit::fitting(summary);
    let mut rows: Vec<Row> = vec![unit.header()];
    rows.extend(summary.stages.iter().map(|stage| unit.stage_row(stage)));
    rows.push(unit.total_row(summary));
    let mut text = title(name, summary);
    for (i, row) in rows.iter().enumerate() {
        if i == 1 || i + 1 == rows.len() {
            text += &rule(&rows);
        }
        text += &line(row, &widths(&rows));
    }
    text + &remarks(summary)
}

fn title(name: &str, summary: &Summary) -> String {
    let said = |key| summary.meta.get(key).and_then(|value| value.as_str());
    let facts: Vec<&str> = ["pipeline", "mode"].into_iter().filter_map(said).collect();
    if facts.is_empty() { format!("{name}\n") } else { format!("{name}: {}\n", facts.join(", ")) }
}

impl Unit {
    fn fitting(summary: &Summary) -> Self {
        let most = summary.peak_footprint.unwrap_or_default().max(summary.loads.bytes);
        if most < Bytes::gib(1) && most > Bytes::ZERO { MB } else { GB }
    }

    fn header(self) -> Row {
        let of_bytes = |what| format!("{what} {}", self.name);
        let [peak, loaded, released, swap] = ["peak", "loaded", "released", "swap"].map(of_bytes);
        ["stage".to_owned(), "seconds".to_owned(), peak, loaded, released, swap]
    }

    fn stage_row(self, stage: &StageUse) -> Row {
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
    fn total_row(self, summary: &Summary) -> Row {
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

fn remarks(summary: &Summary) -> String {
    let mut text = String::new();
    if let Some(reason) = &summary.reason {
        let _ = writeln!(text, "stopped: {reason}");
    }
    if let Some(level) = summary.min_level {
        let _ = writeln!(text, "least memory available: {level}");
    }
    if !summary.outside_stage.is_empty() {
        let names: Vec<&str> = summary.outside_stage.iter().map(String::as_str).collect();
        let _ = writeln!(text, "loaded outside their stage: {}", names.join(", "));
    }
    for failure in &summary.errors {
        let _ = writeln!(text, "at {:.1} s: {}", failure.t, failure.error);
    }
    text
}

fn widths(rows: &[Row]) -> [usize; 6] {
    std::array::from_fn(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
}

fn rule(rows: &[Row]) -> String {
    format!("{}\n", "-".repeat(widths(rows).iter().sum::<usize>() + 2 * (widths(rows).len() - 1)))
}

fn line(row: &Row, widths: &[usize; 6]) -> String {
    let mut text = format!("{:<width$}", row[0], width = widths[0]);
    for (cell, width) in row.iter().zip(widths).skip(1) {
        let _ = write!(text, "  {cell:>width$}");
    }
    text + "\n"
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
