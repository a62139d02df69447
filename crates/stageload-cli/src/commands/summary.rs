//! `stageload summary`: what traces amount to, as a table, as JSON, as a chart.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use stageload::core::{Record, Summary, summarize};
use stageload::{chart, load_trace};

use crate::failure::Failure;
use crate::grid::Paper;
use crate::output;
use crate::raster::png;
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
    #[arg(long, value_name = "FILE.svg|png", value_parser = picture_path)]
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
    let svg = chart(traces);
    if ends_in(path, "png") { write(path, &png(&svg)?) } else { write(path, svg.as_bytes()) }
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

fn picture_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if ends_in(&path, "svg") || ends_in(&path, "png") {
        return Ok(path);
    }
    Err("charts are SVG or PNG: name a file that ends in .svg or .png".to_owned())
}

fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
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
