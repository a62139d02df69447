//! `stageload summary`: what traces amount to, as a table, as JSON, as a chart.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use stageload::core::{Record, Summary, summarize};
use stageload::{chart, load_trace};

use crate::failure::Failure;
use crate::grid::Paper;
use crate::output;
use crate::table::report;

/// Show what a trace amounts to, stage by stage
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Trace files
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Print JSON: an object for one trace, a list for several
    #[arg(long)]
    json: bool,

    /// Print the table (the default); several traces stand in it side by side
    #[arg(long, conflicts_with = "json")]
    table: bool,

    /// Print the table as GitHub shows it
    #[arg(long, conflicts_with_all = ["json", "table"])]
    markdown: bool,

    /// Draw footprint and swap over time
    #[arg(long, value_name = "FILE.svg", value_parser = svg_path)]
    plot: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let traces: Vec<(String, Vec<Record>)> = args
        .traces
        .iter()
        .map(|path| Ok((name_of(path), load_trace(path)?)))
        .collect::<Result<_, stageload::Error>>()?;
    let summaries: Vec<Summary> = traces.iter().map(|(_, records)| summarize(records)).collect();
    if let Some(path) = &args.plot {
        write_chart(path, &traces)?;
    }
    output::out(&if args.json {
        json(&summaries)
    } else {
        let paper = if args.markdown { Paper::Markdown } else { Paper::Text };
        let names = traces.iter().map(|(name, _)| name.as_str());
        report(&names.zip(&summaries).collect::<Vec<_>>(), paper)
    })?;
    Ok(0)
}

/// Draws the traces into one file.
pub(crate) fn write_chart(path: &Path, traces: &[(String, Vec<Record>)]) -> Result<(), Failure> {
    write(path, chart(traces).as_bytes())
}

/// A full disk is told apart from a place where no file can be.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let words = |error| format!("cannot write the chart {}: {error}", path.display());
    let mut file = File::create(path).map_err(|error| Failure::cannot_create(words(error)))?;
    file.write_all(bytes).map_err(|error| Failure::cannot_write(words(error)))
}

fn json(summaries: &[Summary]) -> String {
    let text = match summaries {
        [one] => serde_json::to_string_pretty(one),
        many => serde_json::to_string_pretty(many),
    };
    // Plain data with string keys always serializes.
    text.unwrap_or_default() + "\n"
}

/// A trace's name without what every trace's name ends in.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let short = name.strip_suffix(".jsonl").unwrap_or(&name);
    short.strip_suffix(".trace").unwrap_or(short).to_owned()
}

fn svg_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(path),
        _ => Err("charts are SVG only: name a file that ends in .svg".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_after_its_file() {
        assert_eq!(name_of(Path::new("a/qwen-eager-1.trace.jsonl")), "qwen-eager-1");
        assert_eq!(name_of(Path::new("tail.jsonl")), "tail");
        assert_eq!(name_of(Path::new("notes")), "notes");
    }
}
