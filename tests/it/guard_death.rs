//! What becomes of a job whose guard is killed with SIGKILL.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hog::guarded;
use crate::support::{Folder, eventually, guard, is_alive, is_gone, pid_in, send, wait};

/// A guarded hog that runs on by itself, with its pid.
fn start(folder: &Folder, flags: &[&str], script: &str) -> (Child, i32) {
    let (pid, trace) = (folder.file("pid"), folder.file("trace.jsonl"));
    let err = fs::File::create(folder.file("err")).unwrap();
    let flags = [&["--trace", trace.to_str().unwrap()], flags].concat();
    let mut command = guarded(&flags, &format!("pid:{} {script}", pid.display()));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err).spawn().unwrap();
    (child, pid_in(&pid))
}

fn said(folder: &Folder) -> String {
    fs::read_to_string(folder.file("err")).unwrap()
}

/// The trace's end, once it is there.
fn ended(folder: &Folder) -> Value {
    let last = || {
        let text = fs::read_to_string(folder.file("trace.jsonl")).ok()?;
        let record: Value = serde_json::from_str(text.lines().last()?).ok()?;
        (record["type"] == "end").then_some(record)
    };
    eventually(last).expect("an end in the trace")
}

#[test]
fn a_job_whose_guard_was_killed_is_gone_within_seconds() {
    let folder = Folder::new();
    let (mut child, job) = start(&folder, &[], "ignore-term grow:20 sleep:60000");
    child.kill().unwrap();
    let killed = Instant::now();
    wait(child);
    assert!(is_gone(job));
    // 2 s on a quiet machine.
    assert!(killed.elapsed() < Duration::from_secs(6), "{:?}", killed.elapsed());
    assert_eq!(ended(&folder)["rule"], "guard-death");
    assert!(said(&folder).contains("was killed, so its job is stopped"), "{}", said(&folder));
}

#[test]
fn a_job_that_shall_outlive_its_guard_is_guarded_on_with_the_same_limit() {
    let folder = Folder::new();
    let flags = ["--limit", "100M", "--on-guard-death", "continue"];
    let (mut child, job) =
        start(&folder, &flags, "grow:20 sleep:1500 stage:late grow:800 sleep:60000");
    child.kill().unwrap();
    wait(child);
    assert!(is_alive(job), "it shall continue");
    assert!(is_gone(job), "but not over its limit");
    let end = ended(&folder);
    assert_eq!(end["rule"], "limit");
    assert!((0.5..=1.0).contains(&end["share"].as_f64().unwrap()), "{end}");
    let reason = end["reason"].as_str().unwrap();
    assert!(reason.contains("> limit 100 MB in stage late"), "{reason}");
    assert!(said(&folder).contains("this one goes on for it"), "{}", said(&folder));
}

#[test]
fn a_job_that_is_guarded_on_ends_in_its_own_time() {
    let folder = Folder::new();
    let flags = ["--on-guard-death", "continue"];
    let (mut child, job) = start(&folder, &flags, "sleep:1500 stage:late sleep:300");
    child.kill().unwrap();
    wait(child);
    assert!(is_gone(job));
    assert_eq!(ended(&folder)["reason"], Value::Null);
    let text = fs::read_to_string(folder.file("trace.jsonl")).unwrap();
    assert!(text.contains(r#""stage":"late""#), "{text}");
    assert_eq!(text.matches(r#""type":"start""#).count(), 1, "one run, one trace: {text}");
}

#[test]
fn a_guard_that_ends_in_order_leaves_no_warden_behind() {
    let folder = Folder::new();
    let (child, _) = start(&folder, &[], "sleep:3000");
    let guard = child.id() as i32;
    let warden = eventually(|| warden_of(guard)).expect("a warden");
    assert_eq!(wait(child), Some(0));
    assert!(is_gone(warden));
}

#[test]
fn a_warden_that_dies_is_told_of_and_the_job_runs_on() {
    let folder = Folder::new();
    let (child, _) = start(&folder, &["--poll", "100ms"], "sleep:2500");
    let warden = eventually(|| warden_of(child.id() as i32)).expect("a warden");
    send(warden, libc::SIGKILL);
    assert_eq!(wait(child), Some(0));
    let words = "the process that takes over if this guard is killed has died";
    assert_eq!(said(&folder).matches(words).count(), 1, "{}", said(&folder));
}

#[test]
fn no_job_is_left_wherever_in_its_start_the_guard_is_killed() {
    let folder = Folder::new();
    let name = folder.file("job").display().to_string();
    for milliseconds in (0..60).step_by(2) {
        let mut command = guard(&[]);
        command.args(["--", "sh", "-c", "sleep 300; :", &name]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut guard = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        guard.kill().unwrap();
        wait(guard);
    }
    let left = || processes().lines().find(|line| line.contains(&name)).map(str::to_owned);
    assert!(eventually(|| left().is_none().then_some(())).is_some(), "{:?}", left());
}

fn processes() -> String {
    let listed = std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid=,args="]).output();
    String::from_utf8_lossy(&listed.unwrap().stdout).into_owned()
}

/// The child of the guard that stands by.
fn warden_of(guard: i32) -> Option<i32> {
    processes().lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (pid, parent) = (words.next()?.parse().ok()?, words.next()?.parse::<i32>().ok()?);
        (parent == guard && line.ends_with("stand-by")).then_some(pid)
    })
}
