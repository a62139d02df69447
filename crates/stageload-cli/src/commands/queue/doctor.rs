//! `stageload doctor`: looks at all that a job depends on, and says what to do where something is amiss.

use std::fmt::Write;

use serde_json::json;
use stageload::LiveMeter;
use stageload::presets::{InPath, Presets};
use stageload::queue::is_engine_there;

use super::Queue;
use crate::commands::stand_by;
use crate::failure::Failure;
use crate::output;

/// Check everything that jobs depend on, and say what to do
///
/// Exit codes: 0 all is well, or only programs of presets that are not installed are missing; 1 something
/// must be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON: a list
    #[arg(long)]
    json: bool,
}

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Well,
    /// It is told, and is no fault.
    Note,
    Amiss,
}

struct Finding {
    what: &'static str,
    found: Found,
    words: String,
}

/// Something must be done.
const AMISS: i32 = 1;

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let findings: Vec<Finding> =
        gauges().into_iter().chain([warden(), queue()]).chain(presets()).collect();
    output::out(&if args.json { as_json(&findings) } else { as_text(&findings) })?;
    let is_amiss = findings.iter().any(|finding| finding.found == Found::Amiss);
    Ok(if is_amiss { AMISS } else { 0 })
}

/// What the rules of the guard read.
fn gauges() -> Vec<Finding> {
    let mut meter = LiveMeter::system();
    let memory = meter.memory();
    let reading = meter.look();
    let told = |what, value: Option<String>, without: &str| match value {
        Some(words) => Finding { what, found: Found::Well, words },
        None => Finding { what, found: Found::Amiss, words: without.to_owned() },
    };
    let all =
        memory.zip(reading.level).map(|(memory, level)| format!("{memory}, {level} available"));
    let swap = reading.swap_used.zip(reading.swap_total).map(|(used, total)| match total.0 {
        0 => "this machine has none, so its rules stop nothing".to_owned(),
        _ => format!("{used} of {total} used"),
    });
    let level = "unknown: --wait-free and --kill-free decide nothing here";
    vec![
        told("memory", all, level),
        told("swap", swap, "unknown: the swap rules stop nothing here"),
    ]
}

fn warden() -> Finding {
    let found = if stand_by::command().is_some() { Found::Well } else { Found::Amiss };
    let words = match found {
        Found::Amiss => "this program cannot find itself, so nobody takes over for a killed guard",
        _ => "a killed guard's job is stopped, or guarded on",
    };
    Finding { what: "guard", found, words: words.to_owned() }
}

fn queue() -> Finding {
    let what = "queue";
    let queue = match Queue::open() {
        Ok(queue) => queue,
        Err(failure) => return Finding { what, found: Found::Amiss, words: failure.to_string() },
    };
    let engine =
        if is_engine_there(&queue.home) { "an engine runs" } else { "no engine is needed now" };
    let home = queue.home.display();
    match queue.store.unfinished().and_then(|rows| Ok((rows.len(), queue.store.pause_reason()?))) {
        Ok((_, Some(why))) => {
            let words = format!("{home}: paused ({why}); `stageload resume` lets it go on");
            Finding { what, found: Found::Note, words }
        }
        Ok((jobs, None)) => {
            let words = format!("{home}: {jobs} jobs are not over, {engine}");
            Finding { what, found: Found::Well, words }
        }
        Err(error) => Finding { what, found: Found::Amiss, words: error.to_string() },
    }
}

fn presets() -> Vec<Finding> {
    let what = "preset";
    let home = match stageload::queue::queue_home() {
        Ok(home) => home,
        Err(error) => return vec![Finding { what, found: Found::Amiss, words: error.to_string() }],
    };
    let (presets, problems) = Presets::load(&home);
    let bad = problems.iter().map(|problem| Finding {
        what,
        found: Found::Amiss,
        words: problem.to_string(),
    });
    let known = presets.iter().filter_map(|preset| {
        let words = match preset.find_program(&InPath)? {
            Ok(path) => return Some(well(preset.name(), &path)),
            Err(refusal) => refusal.to_string(),
        };
        Some(Finding { what, found: Found::Note, words })
    });
    bad.chain(known).collect()
}

fn well(name: &str, path: &std::path::Path) -> Finding {
    Finding { what: "preset", found: Found::Well, words: format!("{name}: {}", path.display()) }
}

fn as_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { what, found, words } in findings {
        let mark = match found {
            Found::Well => "ok",
            Found::Note => "--",
            Found::Amiss => "!!",
        };
        let words: String = stageload::core::printable(words).collect();
        let _ = writeln!(text, "{mark}  {what:<8} {words}");
    }
    text
}

fn as_json(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let found = match finding.found {
            Found::Well => "ok",
            Found::Note => "note",
            Found::Amiss => "amiss",
        };
        json!({"what": finding.what, "found": found, "words": finding.words})
    };
    let list: Vec<_> = findings.iter().map(one).collect();
    serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
}
