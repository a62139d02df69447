//! What surroundings and jobs do that a guard must survive: limits on files, pipes where files should be,
//! command lines longer than a pipe, outputs that are one file, memory that two processes hold as one.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::hog::guarded;
use crate::support::{Folder, eventually, finish, guard, is_gone, pid_in, send, stageload, wait};

fn make_pipe(folder: &Folder, name: &str) -> String {
    let path = folder.file(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path.display().to_string()
}

#[test]
fn under_a_file_size_limit_the_trace_is_given_up_and_the_job_stays_guarded() {
    let folder = Folder::new();
    let trace = folder.file("trace.jsonl");
    let flags = ["--poll", "20ms", "--limit", "60M", "--trace", trace.to_str().unwrap()];
    let inner = guarded(&flags, "sleep:1500 grow:200 sleep:60000");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 1; exec \"$@\"", "sh"]).arg(inner.get_program());
    limited.args(inner.get_args()).env_remove("STAGELOAD_JOB").env_remove("STAGELOAD_EVENTS");
    for (name, value) in inner.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        limited.env(name, value);
    }
    // The log of this test is a file as well, and would reach the limit.
    let child =
        limited.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{err}");
    assert!(err.contains("File too large") && err.contains("stays guarded without it"), "{err}");
}

#[test]
fn a_command_line_longer_than_a_pipe_has_a_warden_too() {
    let folder = Folder::new();
    let mut command = guard(&["--", "sh", "-c", "echo $$ > \"$0\"; sleep 60; :"]);
    command.arg(folder.file("pid"));
    command.args((0..6000).map(|i| format!("a-picture-with-a-long-name-{i:06}.png")));
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let job = pid_in(&folder.file("pid"));
    child.kill().unwrap();
    wait(child);
    assert!(is_gone(job));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_a_child_borrows_until_it_runs_its_program_counts_once() {
    let ended = finish(&mut guarded(&["--limit", "110M"], "grow:70 lend:700 exit:5"));
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(!ended.err.contains("% of the limit"), "{}", ended.err);
}

#[test]
fn events_that_a_job_writes_at_its_very_end_are_all_in_the_trace() {
    let folder = Folder::new();
    let trace = folder.file("trace.jsonl");
    let script = r#"import os
mark = '{"kind":"mark","note":"' + 'x' * 50_000 + '"}\n'
with open(os.environ['STAGELOAD_EVENTS'], 'a') as events:
    events.write(mark * 300 + '{"kind":"stage","stage":"last"}')"#;
    let flags = ["--trace", trace.to_str().unwrap(), "--", "python3", "-c", script];
    let ended = finish(&mut guard(&flags));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.err.contains("were no events"), "{}", ended.err);
    let text = fs::read_to_string(&trace).unwrap();
    assert_eq!(text.matches(r#""kind":"mark""#).count(), 300);
    assert_eq!(text.matches(r#""stage":"last""#).count(), 1);
}

#[test]
fn a_trace_and_a_reason_in_one_file_are_refused() {
    let folder = Folder::new();
    let path = folder.file("both.json").display().to_string();
    let ended = finish(&mut guard(&["--trace", &path, "--reason", &path, "--", "true"]));
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(ended.err.contains("--trace and --reason are the same file"), "{}", ended.err);
}

#[test]
fn a_pipe_that_nobody_reads_is_refused_as_an_output() {
    let folder = Folder::new();
    let pipe = make_pipe(&folder, "pipe");
    for flag in ["--trace", "--reason"] {
        let ended = finish(&mut guard(&[flag, &pipe, "--", "true"]));
        assert_eq!(ended.code, Some(73), "{flag}: {ended:?}");
        assert!(ended.err.contains("it is a pipe that nobody reads"), "{}", ended.err);
    }
}

#[test]
fn a_guard_that_keeps_the_gate_for_itself_makes_nobody_deaf() {
    let home = Folder::new();
    fs::create_dir(home.file("line")).unwrap();
    make_pipe(&home, "line/9-9.json");
    let gate = fs::File::create(home.file("line/gate.lock")).unwrap();
    gate.lock().unwrap();
    let needing = |flags: &[&str]| {
        let mut command = guard(&[&["--need", "1M"], flags, &["--", "true"]].concat());
        command.env("STAGELOAD_HOME", home.path());
        command
    };
    let late = finish(&mut needing(&["--start-timeout", "1s"]));
    assert_eq!(late.code, Some(4), "{late:?}");
    assert!(late.err.contains("another guard is at the gate"), "{}", late.err);
    let waits = needing(&[]).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    send(waits.id() as i32, libc::SIGTERM);
    assert_eq!(wait(waits), Some(128 + libc::SIGTERM));
    drop(gate);
    assert_eq!(finish(&mut needing(&[])).code, Some(0));
}

#[test]
fn a_guard_that_only_waits_is_busy_for_nobody() {
    let flags = ["guard", "--wait-free", "100", "--", "sleep", "7771.25"];
    let mut waits =
        stageload().args(flags).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let busy =
        ["--busy", r"sleep 7771\.25", "--quiet-for", "0s", "--start-timeout", "2s", "--", "true"];
    let ended = finish(&mut guard(&busy));
    waits.kill().unwrap();
    waits.wait().unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_guard_that_is_killed_is_named_in_the_reason() {
    let folder = Folder::new();
    let reason = folder.file("reason.json").display().to_string();
    let script = format!("pid:{} sleep:60000", folder.file("pid").display());
    let mut command = guarded(&["--reason", &reason], &script);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let job = pid_in(&folder.file("pid"));
    child.kill().unwrap();
    wait(child);
    assert!(is_gone(job));
    let is_there = || fs::read_to_string(&reason).ok().filter(|text| text.contains("guard-death"));
    let text = eventually(is_there).expect("a reason");
    assert!(text.contains("its guard was killed"), "{text}");
}

#[test]
fn a_stage_may_have_a_name_that_no_xml_can_hold() {
    let folder = Folder::new();
    let (trace, picture) = (folder.file("trace.jsonl"), folder.file("chart.svg"));
    let text = "{\"type\":\"event\",\"kind\":\"stage\",\"stage\":\"a\u{ffff}b\",\"t\":0}\n\
                {\"type\":\"sample\",\"t\":0,\"footprint\":5}\n{\"type\":\"sample\",\"t\":1,\"footprint\":5}\n";
    fs::write(&trace, text).unwrap();
    let ended = finish(stageload().arg("summary").arg(&trace).arg("--plot").arg(&picture));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!fs::read_to_string(&picture).unwrap().contains('\u{ffff}'));
}
