//! A summary as a table of text. GB means 2^30 bytes.

use std::fmt::Write;

use stageload::core::{Bytes, StageUse, Summary};

const HEADER: [&str; 6] = ["stage", "seconds", "peak GB", "loaded GB", "released GB", "swap GB"];
const GIB: f64 = (1u64 << 30) as f64;

type Row = [String; 6];

/// The table of one trace under its name, one row a stage and one for the whole.
pub(crate) fn table(name: &str, summary: &Summary) -> String {
    let mut rows: Vec<Row> = vec![HEADER.map(str::to_owned)];
    rows.extend(summary.stages.iter().map(stage_row));
    rows.push(total_row(summary));
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

fn stage_row(stage: &StageUse) -> Row {
    [
        stage.stage.clone(),
        format!("{:.1}", stage.seconds),
        gb(stage.peak_footprint),
        some_gb(stage.loaded),
        some_gb(stage.released),
        signed_gb(stage.swap_delta.map(|bytes| bytes as f64)),
    ]
}

/// The swap of the whole is its peak over its start, which is what the budget is held against.
fn total_row(summary: &Summary) -> Row {
    [
        "total".to_owned(),
        format!("{:.1}", summary.duration),
        gb(summary.peak_footprint),
        some_gb(summary.loads.bytes),
        some_gb(summary.releases.bytes),
        signed_gb(summary.swap.map(|swap| (swap.peak - swap.start) as f64)),
    ]
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

fn gb(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.2}", bytes.as_gb()))
}

fn some_gb(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO { "-".to_owned() } else { gb(Some(bytes)) }
}

fn signed_gb(bytes: Option<f64>) -> String {
    // + 0.0 makes a rounded -0.00 positive.
    let rounded = |bytes: f64| (bytes / GIB * 100.0).round() / 100.0 + 0.0;
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:+.2}", rounded(bytes)))
}

fn widths(rows: &[Row]) -> [usize; 6] {
    std::array::from_fn(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
}

fn rule(rows: &[Row]) -> String {
    format!("{}\n", "-".repeat(widths(rows).iter().sum::<usize>() + 2 * (HEADER.len() - 1)))
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
    fn what_is_unknown_is_a_question_mark() {
        let text = table("empty", &summarize(&[]));
        assert!(text.lines().any(|line| line.starts_with("total") && line.contains('?')), "{text}");
    }
}
