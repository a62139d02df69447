//! What is told of a trace afterwards: `replay` and `summary`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Finished, Folder, finish, stageload};

fn fixture(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/traces/");
    [folder, name].iter().collect()
}

fn replay(name: &str, flags: &[&str]) -> Finished {
    finish(stageload().arg("replay").arg(fixture(name)).args(flags))
}

fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.out).unwrap()
}

#[test]
fn the_eager_run_would_have_been_stopped_in_decode() {
    let stopped = replay("qwen-eager-1.trace.jsonl", &["--swap-budget", "8G"]);
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let lines: Vec<&str> = stopped.out.lines().collect();
    assert!(
        lines[0].starts_with("swap 11.54 GB at start (the trace's first known sample, t=0.0 s)")
    );
    assert!(lines[1].starts_with("t=117.360 s  stop: swap 16.83 GB grows"), "{}", lines[1]);
    assert!(lines[1].contains("footprint 41.10 GB; blame: unknown"), "{}", lines[1]);
    assert_eq!(*lines.last().unwrap(), "stop at t=117.360 s in stage decode");
}

#[test]
fn the_staged_run_would_have_been_let_alone() {
    let passed = replay("qwen-staged-1.trace.jsonl", &[]);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert_eq!(passed.out.lines().count(), 2, "{}", passed.out);
    assert!(passed.out.ends_with("no stop: no rule was broken or near\n"), "{}", passed.out);
    let json = parsed(&replay("qwen-staged-1.trace.jsonl", &["--json"]));
    assert_eq!(json["decisions"], Value::Array(Vec::new()));
    assert_eq!(json["stop"], Value::Null);
    assert_eq!(json["baseline"]["from"], "trace");
}

#[test]
fn the_burst_of_pixal3d_would_have_been_stopped_while_it_still_grew() {
    let flags = ["--baseline", "14.8G", "--json"];
    let stopped = replay("pixal3d-eager-2026-10-04-tail.jsonl", &flags);
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let json = parsed(&stopped);
    let stop = &json["stop"];
    assert!((421.7..=423.9).contains(&stop["t"].as_f64().unwrap()), "{stop}");
    assert!(stop["footprint"].as_u64().unwrap() <= 40_300_000_000, "{stop}");
    assert_eq!((&stop["rule"], &stop["stage"]), (&"swap-budget".into(), &"texture".into()));
    assert_eq!(json["baseline"]["from"], "flag");
    assert_eq!(json["policy"]["swap_budget"], 8_u64 << 30);
}

#[test]
fn a_limit_is_replayed_with_its_warning_and_blames_the_job() {
    let stopped = replay("qwen-staged-1.trace.jsonl", &["--limit", "16G", "--json"]);
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let json = parsed(&stopped);
    let verdicts = |key: &str| -> Vec<String> {
        let decisions = json["decisions"].as_array().unwrap();
        decisions.iter().map(|one| one[key].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(verdicts("verdict"), ["warn", "stop"]);
    assert_eq!(verdicts("rule"), ["limit", "limit"]);
    assert_eq!(verdicts("blamed"), ["-", "job"]);
}

/// Swap grows by 100 MB a look, and of the machine's demand the job made a tenth.
fn growth_of_others() -> String {
    let gib = 1u64 << 30;
    let sample = |i: u64| {
        let (held, swap) = (gib + i * (10 << 20), gib + i * (100 << 20));
        let demand = 10 * gib + i * (100 << 20);
        format!(
            "{{\"type\":\"sample\",\"t\":{}.{},\"footprint\":{held},\"swap_used\":{swap},\
             \"level\":50,\"demand\":{demand}}}\n",
            i / 2,
            i % 2 * 5
        )
    };
    (0..60).map(sample).collect()
}

#[test]
fn growth_of_others_is_a_warning_that_says_so_and_no_stop() {
    let folder = Folder::new();
    let trace = folder.file("others.jsonl");
    fs::write(&trace, growth_of_others()).unwrap();
    let mut command = stageload();
    command.args(["replay", "--swap-budget", "2G"]).arg(&trace);
    let passed = finish(&mut command);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("the job made 10 % of the growth and runs on"), "{}", passed.out);
    assert!(passed.out.contains("; blame: others, the job made 10 %"), "{}", passed.out);
    let json = parsed(&finish(command.arg("--json")));
    let blamed: Vec<&Value> =
        json["decisions"].as_array().unwrap().iter().map(|one| &one["blamed"]).collect();
    assert_eq!(blamed, [&Value::Null, &Value::from("others")], "near the budget, then over it");
}
