//! `stageload summary`: what traces amount to, as a table, as JSON, as a chart.

use std::path::{Path, PathBuf};

use stageload::core::{Record, Summary, summarize};
use stageload::{chart, load_trace};

use crate::failure::Failure;
use crate::output;
use crate::table::table;

/// Show what a trace amounts to, stage by stage
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Trace files
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Print JSON: an object for one trace, a list for several
    #[arg(long)]
    json: bool,

    /// Print the table (the default)
    #[arg(long, conflicts_with = "json")]
    table: bool,

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
    if args.json && !args.table {
        output::out(&json(&summaries));
    } else {
        let titled = traces.iter().map(|(name, _)| name.as_str()).zip(&summaries);
        let tables: Vec<String> = titled.map(|(name, summary)| table(name, summary)).collect();
        output::out(&tables.join("\n"));
    }
    Ok(0)
}

/// Draws the traces into one file.
pub(crate) fn write_chart(path: &Path, traces: &[(String, Vec<Record>)]) -> Result<(), Failure> {
    std::fs::write(path, chart(traces)).map_err(|error| {
        Failure::cannot_create(format!("cannot write the chart {}: {error}", path.display()))
    })
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
