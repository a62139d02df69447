//! Limits are held, over the whole tree, and nobody is stopped without cause.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::hog::{guarded, hog};
use crate::support::{Folder, finish, full_pipe, guard, is_gone, pid_in, stageload, wait};

#[test]
fn a_job_over_its_limit_is_stopped_and_the_reason_names_the_stage() {
    let folder = Folder::new();
    let (trace, reason) = (folder.file("trace.jsonl"), folder.file("reason.json"));
    let flags = ["--limit", "100M", "--trace", trace.to_str().unwrap(), "--reason"];
    let flags = [&flags[..], &[reason.to_str().unwrap()]].concat();
    let stopped = finish(&mut guarded(&flags, "stage:shape_1024 grow:800 sleep:60000"));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert!(stopped.err.contains("MB > limit 100 MB in stage shape_1024"), "{}", stopped.err);

    let why = folder.json("reason.json");
    assert_eq!((&why["rule"], &why["stage"]), (&"limit".into(), &"shape_1024".into()));
    assert_eq!(why["limit"], 100 << 20);
    assert!(why["footprint"].as_u64().unwrap() > 100 << 20);
    assert_eq!(why["signalled"][0]["signals"][0], "SIGTERM");
    assert_eq!(why["survivors"].as_array().unwrap().len(), 0);

    let shown = finish(stageload().args(["summary", "--json"]).arg(&trace));
    let summary: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    let peak = summary["peak_footprint"].as_u64().unwrap();
    assert!((100 << 20..700 << 20).contains(&peak), "{peak}: stopped long before it had 800 MB");
    assert_eq!(summary["exit"], 3);
    assert_eq!(summary["stages"].as_array().unwrap().last().unwrap()["stage"], "shape_1024");
}

#[test]
fn a_full_pipe_on_stderr_that_nobody_reads_does_not_keep_the_guard_from_stopping_a_job() {
    let folder = Folder::new();
    let trace = folder.file("trace.jsonl");
    let flags = ["--limit", "100M", "--trace", trace.to_str().unwrap()];
    let (unread, full) = full_pipe();
    let mut command = guarded(&flags, "stage:a grow:800 sleep:60000");
    let began = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(full).spawn().unwrap();
    assert_eq!(wait(child), Some(3));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let shown = finish(stageload().args(["summary", "--json"]).arg(&trace));
    let summary: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert!(summary["peak_footprint"].as_u64().unwrap() < 700 << 20, "{}", shown.out);
    drop(unread);
}

#[test]
fn a_child_that_left_the_session_is_counted_and_stopped() {
    let folder = Folder::new();
    let pid = folder.file("pid");
    let script = format!("escape:pid={},grow=800,sleep=60000 sleep:60000", pid.display());
    let stopped = finish(&mut guarded(&["--limit", "100M"], &script));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert!(is_gone(pid_in(&pid)));
}

#[cfg(target_os = "linux")]
#[test]
fn an_orphan_of_a_double_fork_is_counted_and_stopped() {
    // The middle process ends at once, long before a look could see it.
    let folder = Folder::new();
    let pid = folder.file("pid");
    let inner = "(setsid \"$@\" & ) ; sleep 60";
    let mut command = guard(&["--limit", "100M", "--", "sh", "-c", inner, "sh"]);
    let script = format!("pid:{} grow:800 sleep:60000", pid.display());
    let stopped = finish(command.args(hog()).env("HOG", script));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert!(is_gone(pid_in(&pid)));
}

#[test]
fn small_children_add_up() {
    let children = "child:grow=40,sleep=60000 ".repeat(5);
    let script = format!("{children} sleep:60000");
    let stopped = finish(&mut guarded(&["--limit", "120M"], &script));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
}

#[test]
fn a_job_that_ignores_sigterm_is_killed_after_its_grace() {
    let folder = Folder::new();
    let reason = folder.file("reason.json");
    let flags = ["--limit", "100M", "--grace", "300ms", "--reason", reason.to_str().unwrap()];
    let stopped = finish(&mut guarded(&flags, "ignore-term grow:120 sleep:60000"));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let why = folder.json("reason.json");
    let signals = why["signalled"][0]["signals"].as_array().unwrap().clone();
    assert_eq!(signals, ["SIGTERM", "SIGCONT", "SIGKILL"]);
}

#[test]
fn a_job_that_grows_on_through_its_grace_is_killed_at_once() {
    let flags = ["--limit", "50M", "--grace", "80s"];
    let stopped = finish(&mut guarded(&flags, "ignore-term grow:4000 sleep:60000"));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
}

#[test]
fn a_flood_of_events_does_not_keep_the_guard_from_looking() {
    let flood = r#"while :; do echo '{"kind":"mark"}'; done >> "$STAGELOAD_EVENTS" & exec "$@""#;
    let mut command = guard(&["--limit", "100M", "--trace", "/dev/null", "--", "sh", "-c", flood]);
    let stopped = finish(command.arg("sh").args(hog()).env("HOG", "grow:800 sleep:60000"));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
}

#[test]
fn a_frozen_job_is_stopped_too() {
    let stopped = finish(&mut guarded(&["--limit", "60M"], "grow:100 freeze sleep:60000"));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
}

#[test]
fn a_job_inside_its_limit_runs_to_its_end() {
    let ended = finish(&mut guarded(&["--limit", "300M"], "grow:60 sleep:1500 exit:0"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.err.contains("stopping"), "{}", ended.err);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_forked_children_share_counts_once() {
    let program = "import os,time\nheld=bytes(range(256))*(60*4096)\n\
                   pids=[os.fork() or (time.sleep(1.5),os._exit(0)) for _ in range(4)]\n\
                   [os.waitpid(p,0) for p in pids]";
    let ended = finish(&mut guard(&["--limit", "200M", "--", "python3", "-c", program]));
    assert_eq!(ended.code, Some(0), "60 MB in five processes are not 300: {ended:?}");
}

#[test]
fn a_guard_around_a_guard_finds_the_inner_job() {
    let folder = Folder::new();
    let pid = folder.file("pid");
    let mut command = guard(&["--limit", "100M", "--", env!("CARGO_BIN_EXE_stageload"), "guard"]);
    command.args(["--wait-free", "0", "--kill-free", "1", "--"]).args(hog());
    let script = format!("pid:{} grow:800 sleep:60000", pid.display());
    let stopped = finish(command.env("HOG", script));
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert!(is_gone(pid_in(&pid)));
}
