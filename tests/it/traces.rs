//! Events and looks in one file, on bad disks too; `summary`.

use std::fs;

use serde_json::Value;

use crate::support::{Folder, finish, guard, stageload};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/traces/");

fn trace_of(script: &str) -> (Folder, String) {
    let folder = Folder::new();
    let path = folder.file("deep/trace.jsonl");
    let ended = finish(guard(&["--trace", path.to_str().unwrap(), "--", "sh", "-c"]).arg(script));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = fs::read_to_string(&path).unwrap();
    (folder, text)
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_shell_script_reports_its_stages_and_they_land_among_the_looks() {
    let script = r#"echo '{"kind":"stage","stage":"one"}' >> "$STAGELOAD_EVENTS"; sleep 0.5
        echo '{"kind":"load","name":"net","nbytes":1048576}' >> "$STAGELOAD_EVENTS"
        echo '{"kind":"stage","stage":"two"}' >> "$STAGELOAD_EVENTS"; sleep 0.5"#;
    let (folder, text) = trace_of(script);
    let records = records(&text);
    assert_eq!(records[0]["type"], "start");
    assert_eq!(records[0]["command"][0], "sh");
    assert_eq!(records.last().unwrap()["exit"], 0);
    assert!(records.iter().filter(|r| r["type"] == "sample").count() >= 3, "{text}");

    let shown =
        finish(stageload().args(["summary", "--json"]).arg(folder.file("deep/trace.jsonl")));
    let summary: Value = serde_json::from_str(&shown.out).unwrap();
    let stages = summary["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!(&names[names.len() - 2..], ["one", "two"]);
    let one = &stages[names.len() - 2];
    assert_eq!(one["loaded"], 1 << 20);
    assert!(one["seconds"].as_f64().unwrap() > 0.2, "{one}");
    assert!(one["peak_footprint"].as_u64().unwrap() > 0, "{one}");
}

#[test]
fn an_event_keeps_its_own_time_and_one_from_another_clock_gets_the_guards() {
    let script = r#"for t in 1790000000 -5; do
        echo '{"kind":"mark","note":"foreign","t":'$t'}' >> "$STAGELOAD_EVENTS"; done; sleep 0.3"#;
    let (_folder, text) = trace_of(script);
    let marks: Vec<Value> = records(&text).into_iter().filter(|r| r["type"] == "event").collect();
    assert_eq!(marks.len(), 2);
    assert!(marks.iter().all(|mark| (0.0..60.0).contains(&mark["t"].as_f64().unwrap())), "{text}");
}

#[test]
fn what_is_no_event_does_not_harm_the_trace() {
    let script = r#"printf 'hello\n{"kind":"mark","note":"good"}\n{"kind":"mark","no' >> "$STAGELOAD_EVENTS""#;
    let (_folder, text) = trace_of(script);
    assert_eq!(records(&text).iter().filter(|r| r["type"] == "event").count(), 1, "{text}");
}

#[test]
fn what_a_job_calls_its_stages_cannot_draw_on_the_terminal() {
    let script = r#"echo '{"kind":"stage","stage":"\u001b[31mred\u0007"}' >> "$STAGELOAD_EVENTS""#;
    let (_folder, text) = trace_of(script);
    assert!(text.contains(r#""stage":"[31mred""#), "{text}");
}

#[test]
fn a_trace_that_cannot_be_written_is_refused_before_anything_starts() {
    let folder = Folder::new();
    let ran = folder.file("ran");
    fs::write(folder.file("file"), "").unwrap();
    let path = folder.file("file/trace.jsonl");
    let refused = finish(guard(&["--trace", path.to_str().unwrap(), "--", "touch"]).arg(&ran));
    assert_eq!(refused.code, Some(73), "{refused:?}");
    assert!(refused.err.contains("cannot write the trace"), "{}", refused.err);
    assert!(!ran.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_the_job_goes_on_guarded() {
    if !crate::support::has_full_disk() {
        return;
    }
    let flags = ["--trace", "/dev/full", "--", "sh", "-c", "sleep 0.5; exit 5"];
    let ended = finish(&mut guard(&flags));
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.err.matches("cannot write the trace /dev/full").count(), 1, "{}", ended.err);
}

#[test]
fn a_summary_is_a_table_also_when_piped() {
    let shown =
        finish(stageload().arg("summary").arg(format!("{FIXTURES}qwen-eager-1.trace.jsonl")));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for figure in ["31.40", "31.44", "32.52", "43.57", "+7.97"] {
        assert!(shown.out.contains(figure), "{figure}: {}", shown.out);
    }
}

#[test]
fn the_summary_of_several_traces_is_a_list() {
    let mut command = stageload();
    command.args(["summary", "--json"]);
    for name in ["qwen-eager-1", "qwen-staged-1"] {
        command.arg(format!("{FIXTURES}{name}.trace.jsonl"));
    }
    let summaries: Value = serde_json::from_str(&finish(&mut command).out).unwrap();
    assert_eq!(summaries[1]["meta"]["mode"], "staged");
}

#[test]
fn a_chart_is_an_svg_and_what_is_no_picture_is_refused() {
    let folder = Folder::new();
    let trace = format!("{FIXTURES}qwen-staged-1.trace.jsonl");
    let svg = folder.file("chart.svg");
    let drawn = finish(stageload().args(["summary", &trace, "--plot"]).arg(&svg));
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    assert!(fs::read_to_string(&svg).unwrap().contains("peak 19.00 GB"));
    let refused = finish(stageload().args(["summary", &trace, "--plot", "chart.gif"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("SVG or PNG"), "{}", refused.err);
}

#[test]
fn a_bad_trace_is_refused_by_line_and_a_half_written_end_is_not() {
    let folder = Folder::new();
    let path = folder.file("trace.jsonl");
    fs::write(&path, "{\"type\":\"start\"}\nnonsense\n{\"type\":\"end\"}\n").unwrap();
    let refused = finish(stageload().arg("summary").arg(&path));
    assert_eq!(refused.code, Some(65), "{refused:?}");
    assert!(refused.err.contains("line 2"), "{}", refused.err);
    fs::write(&path, b"{\"type\":\"start\"}\n{\"type\":\"sample\",\"t\":0,\"note\":\"\xd0")
        .unwrap();
    assert_eq!(finish(stageload().arg("summary").arg(&path)).code, Some(0));
    assert_eq!(finish(stageload().args(["summary", "/no/such/trace"])).code, Some(66));
}

#[test]
fn a_file_without_a_single_record_is_no_trace() {
    let folder = Folder::new();
    for (name, text) in [("empty.jsonl", ""), ("garbage.jsonl", "buy milk and a better camera")] {
        let path = folder.file(name);
        fs::write(&path, text).unwrap();
        let ended = finish(stageload().arg("summary").arg(&path));
        assert_eq!(ended.code, Some(65), "{ended:?}");
        assert!(ended.err.contains(name) && ended.err.contains("is it a trace"), "{ended:?}");
    }
}
