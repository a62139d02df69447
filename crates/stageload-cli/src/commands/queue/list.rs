//! `stageload queue`: what runs, what waits and for what, and what is over.

use std::fmt::Write;

use stageload::core::Span;
use stageload::queue::view;
use stageload::wire::{JobView, QueueView};

use super::Queue;
use crate::failure::Failure;
use crate::output;

/// Columns of a title that are shown.
const TITLE: usize = 48;

/// Show what runs, what waits and for what
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this lane
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,

    /// Print JSON: one object, whose `version` says what its keys mean
    #[arg(long)]
    json: bool,

    /// Also the last N that are over
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: usize,
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let queue = Queue::open()?;
    let view = view(&queue.home, &queue.store, args.lane.as_deref(), args.history)?;
    output::out(&if args.json {
        serde_json::to_string_pretty(&view).unwrap_or_default() + "\n"
    } else {
        as_text(&view)
    })?;
    Ok(0)
}

pub(super) fn as_text(view: &QueueView) -> String {
    let mut text = String::new();
    if let Some(why) = &view.paused {
        let _ = writeln!(text, "paused: {why}");
    }
    if view.jobs.is_empty() && view.history.is_empty() {
        text.push_str("the queue is empty\n");
    }
    if !view.engine && view.jobs.iter().any(|job| job.state == "queued") {
        text.push_str("no engine runs: `stageload engine` starts what waits\n");
    }
    for job in &view.jobs {
        text.push_str(&line(job));
    }
    if !view.history.is_empty() {
        text.push_str("over:\n");
        view.history.iter().for_each(|job| text.push_str(&line(job)));
    }
    text
}

/// `   7  running      ram  python generate.py            in texture, 12.30 GB`
fn line(job: &JobView) -> String {
    let title: String = job.title.chars().take(TITLE).collect();
    let about = about(job);
    let line =
        format!("{:>4}  {:<11}  {:<6}  {title:<TITLE$}  {about}", job.id, job.state, job.lane);
    line.trim_end().to_owned() + "\n"
}

fn about(job: &JobView) -> String {
    let stage = job.stage.as_ref().map(|stage| format!("in {stage}"));
    let held = job.footprint.map(|held| held.to_string());
    let seconds = job.seconds.map(|seconds| format!("{}", span(seconds)));
    let eta = job.eta_seconds.map(|eta| format!("about {} left", span(eta)));
    let peak = job.peak.map(|peak| format!("peak {peak}"));
    let place = job.place.filter(|place| *place > 1).map(|place| format!("number {place} in line"));
    let after: Vec<String> = job.after.iter().map(ToString::to_string).collect();
    let after =
        (!after.is_empty() && job.state == "queued").then(|| format!("after {}", after.join(", ")));
    let why = job.why.clone();
    let words = if job.is_active {
        vec![stage, held, seconds, eta]
    } else if job.state == "queued" {
        vec![why.or(place), after]
    } else {
        vec![why, peak, seconds]
    };
    let words: Vec<String> = words.into_iter().flatten().collect();
    stageload::core::printable(&words.join(", ")).collect()
}

fn span(seconds: f64) -> Span {
    Span(std::time::Duration::from_secs(seconds.round() as u64))
}
