//! `stageload replay`: what the guard would have decided over a recorded run, when and why. The
//! deciding is `stageload_core::replay`, which makes the same calls as a run does.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use stageload::core::{
    Baseline, Blame, Bytes, Decision, Policy, Reason, Record, Verdict, first_swap, replay,
};
use stageload::load_trace;

use crate::failure::Failure;
use crate::flags::PolicyFlags;
use crate::output;

/// What a guard ends with that has stopped its job.
const STOPPED: i32 = 3;

/// Show what the guard would have decided over a trace, and why
///
/// Exit codes: 0 it would have stopped nothing; 3 it would have stopped the job; 65 no trace;
/// 66 not readable.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The trace file
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Swap in use when the job started; the trace's first known one if absent
    #[arg(long, value_name = "SIZE")]
    baseline: Option<Bytes>,

    /// Print JSON: one object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let records = load_trace(&args.trace)?;
    let start = Start::of(args.baseline, &records);
    let policy = args.policy.policy();
    let baseline = Baseline { swap_used: start.swap(), ..Baseline::default() };
    let decisions = replay(&records, policy, baseline);
    let stop = decisions.last().and_then(stop_of);
    output::out(&if args.json {
        as_json(&policy, &start, &decisions)
    } else {
        as_text(&policy, &start, &decisions)
    })?;
    Ok(if stop.is_some() { STOPPED } else { 0 })
}

/// Swap in use at the job's start, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Start {
    Given(Bytes),
    Found { t: f64, swap: Bytes },
    Unknown,
}

impl Start {
    fn of(given: Option<Bytes>, records: &[Record]) -> Self {
        match (given, first_swap(records)) {
            (Some(swap), _) => Self::Given(swap),
            (None, Some((t, swap))) => Self::Found { t, swap },
            (None, None) => Self::Unknown,
        }
    }

    const fn swap(self) -> Option<Bytes> {
        match self {
            Self::Given(swap) | Self::Found { swap, .. } => Some(swap),
            Self::Unknown => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Given(swap) => format!("swap {swap} at start (--baseline)"),
            Self::Found { t, swap } => {
                format!("swap {swap} at start (the trace's first known sample, t={t:.1} s)")
            }
            Self::Unknown => "swap unknown (no sample of the trace knows it)".to_owned(),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Given(swap) => json!({"swap_used": swap, "from": "flag"}),
            Self::Found { t, swap } => json!({"swap_used": swap, "from": "trace", "t": t}),
            Self::Unknown => json!({"swap_used": null, "from": "unknown"}),
        }
    }
}

fn stop_of(decision: &Decision) -> Option<&Reason> {
    if let Verdict::Stop(reason) = &decision.verdict { Some(reason) } else { None }
}

fn as_text(policy: &Policy, start: &Start, decisions: &[Decision]) -> String {
    let mut text = format!("{}; {}\n", start.words(), rules(policy));
    for decision in decisions {
        let _ = writeln!(text, "{}", line(decision));
    }
    let _ = match decisions.last().and_then(|last| Some((last, stop_of(last)?))) {
        Some((last, reason)) => writeln!(text, "stop at {}", place(last, reason)),
        None => writeln!(text, "no stop: {}", passed(decisions.len())),
    };
    text
}

fn rules(policy: &Policy) -> String {
    let mut rules = format!("budget {}", policy.swap_budget);
    for (name, size) in [("swap limit", policy.swap_limit), ("limit", policy.limit)] {
        let _ = size.map_or(Ok(()), |size| write!(rules, ", {name} {size}"));
    }
    rules + &format!(", at least {} available", policy.kill_free)
}

fn line(decision: &Decision) -> String {
    let held = decision.footprint.map_or_else(|| "unknown".to_owned(), |held| held.to_string());
    let (what, why) = match &decision.verdict {
        Verdict::Stop(reason) => ("stop", reason.to_string()),
        Verdict::Warn(warning) => ("warning", warning.to_string()),
        Verdict::Continue => ("go on", String::new()),
    };
    let mut line = format!("t={:.3} s  {what}: {why}; footprint {held}", decision.t);
    if let Some(blame) = decision.blame() {
        let _ = write!(line, "; blame: {blame}");
    }
    line
}

fn place(decision: &Decision, reason: &Reason) -> String {
    let t = decision.t;
    match &reason.stage {
        Some(stage) => format!("t={t:.3} s in stage {stage}"),
        None => format!("t={t:.3} s before any stage"),
    }
}

fn passed(warnings: usize) -> String {
    match warnings {
        0 => "no rule was broken or near".to_owned(),
        1 => "1 warning, and the job would have run on".to_owned(),
        n => format!("{n} warnings, and the job would have run on"),
    }
}

fn as_json(policy: &Policy, start: &Start, decisions: &[Decision]) -> String {
    let stop = decisions.last().filter(|last| stop_of(last).is_some());
    let value = json!({
        "policy": {
            "swap_budget": policy.swap_budget,
            "swap_limit": policy.swap_limit,
            "kill_free": policy.kill_free,
            "limit": policy.limit,
            "poll": policy.poll.as_secs_f64(),
        },
        "baseline": start.json(),
        "decisions": decisions.iter().map(decision_json).collect::<Vec<_>>(),
        "stop": stop.map(decision_json),
    });
    // Plain data with string keys always serializes.
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

fn decision_json(decision: &Decision) -> Value {
    let (verdict, why, stage) = match &decision.verdict {
        Verdict::Stop(reason) => ("stop", reason.to_string(), reason.stage.as_deref()),
        Verdict::Warn(warning) => ("warn", warning.to_string(), None),
        Verdict::Continue => ("continue", String::new(), None),
    };
    let blame = decision.blame();
    json!({
        "t": decision.t,
        "footprint": decision.footprint,
        "verdict": verdict,
        "rule": decision.rule(),
        "why": why,
        "stage": stage,
        "blamed": blame.map(Blame::name),
        "share": blame.and_then(Blame::share),
        "reason": stop_of(decision),
    })
}
