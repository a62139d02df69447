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

fn summary(flags: &[&str], traces: &[PathBuf]) -> Finished {
    finish(stageload().arg("summary").args(traces).args(flags))
}

/// A trace of the given lines.
fn trace(folder: &Folder, text: &str) -> PathBuf {
    let path = folder.file("run.trace.jsonl");
    fs::write(&path, text).unwrap();
    path
}

fn sample(t: &str, gib: u64) -> String {
    format!("{{\"type\":\"sample\",\"t\":{t},\"footprint\":{},\"swap_used\":0}}\n", gib << 30)
}

#[test]
fn two_runs_stand_side_by_side_in_one_table() {
    let traces = ["qwen-eager-1.trace.jsonl", "qwen-staged-1.trace.jsonl"].map(fixture);
    let text = summary(&[], &traces).out;
    let decode: Vec<&str> =
        text.lines().find(|line| line.starts_with("decode")).unwrap().split_whitespace().collect();
    assert_eq!(decode, ["decode", "10.1", "43.57", "+7.36", "2.2", "14.41", "+0.00"]);
    assert!(text.contains("qwen-staged-1: least memory available: 56%"), "{text}");

    let markdown = summary(&["--markdown"], &traces).out;
    let want = "| decode | 10.1 | 43.57 | +7.36 | 2.2 | 14.41 | +0.00 |";
    assert!(markdown.lines().any(|line| line == want), "{markdown}");
    assert!(markdown.contains("| stage | qwen-eager-1: seconds | qwen-eager-1: peak GB |"));
    assert!(markdown.contains("\n|---|---:|---:|---:|---:|---:|---:|\n"), "{markdown}");
}

#[test]
fn a_stage_that_only_one_run_has_leaves_the_other_ones_cells_empty() {
    let folder = Folder::new();
    let other = trace(&folder, &(sample("0", 1) + &sample("1", 2)));
    let text = summary(&["--markdown"], &[fixture("qwen-staged-1.trace.jsonl"), other]).out;
    assert!(text.contains("| decode | 2.2 | 14.41 | +0.00 |  |  |  |"), "{text}");
}

#[test]
fn a_byte_order_mark_is_accepted() {
    let folder = Folder::new();
    let path = trace(&folder, &format!("\u{feff}{}", sample("0", 5)));
    let shown = summary(&[], &[path]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("5.00"), "{}", shown.out);
}

#[test]
fn a_time_that_no_run_can_have_is_refused_by_line_and_never_printed_as_infinite() {
    let folder = Folder::new();
    let path = trace(&folder, &(sample("0", 1) + &sample("1e308", 1) + &sample("2", 1)));
    for command in ["summary", "replay"] {
        let refused = finish(stageload().arg(command).arg(&path));
        assert_eq!(refused.code, Some(65), "{command}: {refused:?}");
        assert!(
            refused.err.contains("line 2") && refused.err.contains("t is 1e308"),
            "{refused:?}"
        );
    }
    let load = r#"{"type":"event","kind":"load","name":"a","nbytes":18446744073709551615,"t":0.5}"#;
    let huge = sample("0", u64::MAX >> 30) + load + "\n" + load + "\n" + &sample("1e10", 1);
    let svg = folder.file("chart.svg");
    let shown = summary(&["--plot", svg.to_str().unwrap()], &[trace(&folder, &huge)]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for text in [shown.out, fs::read_to_string(&svg).unwrap()] {
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    }
}

#[test]
fn numbers_that_are_no_json_are_refused_by_line() {
    let folder = Folder::new();
    for number in ["NaN", "Infinity", "1e999"] {
        let path = trace(&folder, &(sample("0", 1) + &sample(number, 1) + &sample("2", 1)));
        let refused = summary(&[], &[path]);
        assert_eq!(refused.code, Some(65), "{number}: {refused:?}");
        assert!(refused.err.contains("line 2"), "{number}: {}", refused.err);
    }
}

#[test]
fn the_summary_says_who_tripped() {
    let folder = Folder::new();
    let why = "footprint 2.00 GB > limit 1.00 GB in stage decode";
    let text = sample("0", 1)
        + &sample("7", 2)
        + &format!(
            "{{\"type\":\"event\",\"kind\":\"mark\",\"note\":\"guard: stopping: {why}\",\"t\":7.2}}\n\
             {{\"type\":\"end\",\"t\":8,\"exit\":3,\"reason\":\"{why}\",\
               \"rule\":\"limit\",\"share\":1.0}}\n"
        );
    let path = trace(&folder, &text);
    let shown = summary(&[], std::slice::from_ref(&path));
    let want = format!("stopped at 7.2 s by rule limit: {why}; blame: the job");
    assert!(shown.out.contains(&want), "{}", shown.out);
    let json = parsed(&summary(&["--json"], &[path]));
    assert_eq!((&json["stop"]["rule"], &json["stop"]["blamed"]), (&"limit".into(), &"job".into()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_on_a_full_disk_is_74_and_says_so() {
    if !crate::support::has_full_disk() {
        return;
    }
    let folder = Folder::new();
    let err = folder.file("err");
    for command in ["summary", "replay"] {
        let mut child = stageload();
        child.arg(command).arg(fixture("qwen-staged-1.trace.jsonl"));
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        child.stdout(full).stderr(fs::File::create(&err).unwrap());
        assert_eq!(crate::support::wait(child.spawn().unwrap()), Some(74), "{command}");
        let said = fs::read_to_string(&err).unwrap();
        assert!(said.starts_with("stageload: cannot write to the standard output: "), "{said}");
    }
    let chart = folder.file("chart.svg");
    std::os::unix::fs::symlink("/dev/full", &chart).unwrap();
    let flags = ["--plot", chart.to_str().unwrap()];
    let failed = summary(&flags, &[fixture("qwen-staged-1.trace.jsonl")]);
    assert_eq!(failed.code, Some(74), "{failed:?}");
    assert!(failed.err.contains("cannot write the chart"), "{}", failed.err);
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let folder = Folder::new();
    let err = folder.file("err");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = stageload();
    command.arg("summary").arg(fixture("qwen-staged-1.trace.jsonl"));
    let child = command.stdout(writer).stderr(fs::File::create(&err).unwrap()).spawn().unwrap();
    assert_eq!(crate::support::wait(child), Some(0));
    assert_eq!(fs::read_to_string(&err).unwrap(), "");
}

#[test]
fn a_chart_is_a_png_as_well_or_the_missing_font_is_named() {
    let folder = Folder::new();
    let png = folder.file("chart.PNG");
    let flags = ["--plot", png.to_str().unwrap()];
    let drawn =
        summary(&flags, &["qwen-eager-1.trace.jsonl", "qwen-staged-1.trace.jsonl"].map(fixture));
    if drawn.code == Some(69) {
        assert!(drawn.err.contains("no font"), "{}", drawn.err);
        return crate::support::skipped("this system has no font");
    }
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    let bytes = fs::read(&png).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(bytes[16..20], 1920_u32.to_be_bytes(), "twice the width of the SVG");
}

#[test]
fn bad_flags_of_a_report_are_refused_by_name() {
    let trace = fixture("qwen-staged-1.trace.jsonl");
    let table: [(&str, &[&str]); 9] = [
        ("replay", &["--kill-free", "0%"]),
        ("replay", &["--kill-free", "101%"]),
        ("replay", &["--swap-budget", "8"]),
        ("replay", &["--baseline", "8"]),
        ("replay", &["--limit", "0"]),
        ("replay", &["--wait-free", "40"]),
        ("replay", &["--no-such-flag"]),
        ("summary", &["--no-such-flag"]),
        ("summary", &["--markdown", "--json"]),
    ];
    for (command, flags) in table {
        let refused = finish(stageload().arg(command).arg(&trace).args(flags));
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.err.contains(flags[0]), "{flags:?}: {}", refused.err);
    }
    let refused = finish(stageload().args(["guard", "--no-such-flag", "--", "true"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--no-such-flag"), "{}", refused.err);
}

#[test]
fn a_report_without_a_readable_trace_is_refused() {
    let folder = Folder::new();
    for command in ["summary", "replay"] {
        let missing = finish(stageload().arg(command));
        assert_eq!(missing.code, Some(2), "{missing:?}");
        assert!(missing.err.contains("TRACE"), "{}", missing.err);
        let unreadable = finish(stageload().arg(command).arg(folder.path()));
        assert_eq!(unreadable.code, Some(66), "{unreadable:?}");
        assert!(unreadable.err.contains("cannot read the trace"), "{}", unreadable.err);
    }
    let half = trace(&folder, &(sample("0", 1) + r#"{"type":"sample","t":1,"foot"#));
    let passed = finish(stageload().arg("replay").arg(half));
    assert_eq!(passed.code, Some(0), "{passed:?}");
}
