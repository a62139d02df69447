//! `run`: a job that waits in a terminal, and runs there.

use std::fs;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use super::{Home, kill};
use crate::support::{eventually, finish, is_alive, is_gone, pid_in, send, wait};

/// A job that has the queue to itself until it is stopped; its number.
fn block(home: &Home) -> i64 {
    let id = home.add(&[], "echo $$ > blocker; exec sleep 300");
    home.waits_for(id, "running");
    id
}

/// A `run` that waits behind others, and its number.
fn waiting(home: &Home, flags: &[&str], script: &str) -> (Child, i64) {
    let before = home.states().len();
    let run = home.spawn(&mut home.run(flags, script));
    let queued = || {
        let states = home.states();
        (states.len() > before).then(|| states.last().unwrap().0)
    };
    let id = eventually(queued).expect("a job in the queue");
    (run, id)
}

#[test]
fn a_job_in_the_foreground_prints_here_and_ends_with_its_own_code() {
    let home = Home::new();
    let ended = finish(&mut home.run(&[], "echo out; echo err >&2; exit 42"));
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert_eq!(ended.out, "out\n");
    assert!(ended.err.contains("err\n"), "{}", ended.err);
    assert_eq!((home.state(1), home.why(1)), ("failed".into(), "exit code 42".into()));
    assert_eq!(finish(&mut home.run(&[], ":")).code, Some(0));
    assert_eq!(finish(&mut home.run(&[], "kill -KILL $$")).code, Some(137));
}

#[test]
fn a_foreground_job_reads_what_is_typed() {
    let home = Home::new();
    let text = home.file("typed");
    fs::write(&text, "some words\n").unwrap();
    let mut command = home.run(&[], "read a b; echo $b $a");
    let output = command.stdin(fs::File::open(text).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "words some\n");
}

#[test]
fn a_command_that_is_not_there_is_127_in_the_queue_too() {
    let home = Home::new();
    let ended = home.ask(&["run", "--wait-free", "0", "--", "/no/such/command"]);
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert_eq!(home.state(1), "failed");
    assert!(home.why(1).starts_with("cannot start"), "{}", home.why(1));
}

#[test]
fn a_job_over_its_limit_is_3_with_trace_and_reason_where_they_were_asked_for() {
    let home = Home::new();
    let mut command = home.command(&[
        "run",
        "--wait-free",
        "0",
        "--kill-free",
        "1",
        "--env",
        "HOG=grow:300 sleep:60000",
    ]);
    command.args(["--limit", "100M", "--trace", "deep.jsonl", "--reason", "why.json", "--"]);
    command.args(crate::hog::hog());
    let ended = finish(&mut command);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let trace = fs::read_to_string(home.file("deep.jsonl")).unwrap();
    assert!(trace.lines().next().unwrap().contains(r#""type":"start""#), "{trace}");
    let last: Value = serde_json::from_str(trace.lines().last().unwrap()).unwrap();
    assert_eq!(last["rule"], "limit");
    let reason: Value =
        serde_json::from_str(&fs::read_to_string(home.file("why.json")).unwrap()).unwrap();
    assert_eq!(reason["rule"], "limit");
    assert_eq!(home.state(1), "killed");
    assert!(home.why(1).contains("> limit 100 MB"), "{}", home.why(1));
}

#[test]
fn ctrl_c_while_it_waits_takes_it_from_the_queue() {
    let home = Home::new();
    let blocker = block(&home);
    let (run, id) = waiting(&home, &[], "touch ran");
    send(run.id() as i32, libc::SIGINT);
    assert_eq!(wait(run), Some(130));
    assert_eq!(home.state(id), "stopped");
    home.tell(&["stop", &blocker.to_string()]);
    home.waits_until_over();
    assert!(!home.file("ran").exists());
}

#[test]
fn ctrl_c_while_it_runs_ends_it() {
    let home = Home::new();
    let (run, id) = waiting(&home, &[], "echo $$ > pid; exec sleep 300");
    let job = pid_in(&home.file("pid"));
    home.waits_for(id, "running");
    send(run.id() as i32, libc::SIGINT);
    assert_eq!(wait(run), Some(130));
    assert!(is_gone(job));
    home.waits_until_over();
    assert_ne!(home.state(id), "done");
}

#[test]
fn a_terminal_that_is_killed_while_it_waits_lets_the_next_go_on() {
    let home = Home::new();
    let blocker = block(&home);
    let (run, id) = waiting(&home, &[], "touch ran");
    let next = home.add_writer(&[], "next", "0", 0);
    kill(run);
    home.waits_for(id, "stopped");
    home.tell(&["stop", &blocker.to_string()]);
    home.waits_for(next, "done");
    assert!(!home.file("ran").exists());
}

#[test]
fn a_terminal_that_is_killed_while_its_job_runs_takes_it_along() {
    let home = Home::new();
    let (run, id) = waiting(&home, &[], "echo $$ > pid; exec sleep 300");
    let job = pid_in(&home.file("pid"));
    home.waits_for(id, "running");
    kill(run);
    home.waits_for(id, "interrupted");
    assert!(!is_alive(job));
}

#[test]
fn a_stop_from_another_terminal_ends_it_waiting_or_running() {
    let home = Home::new();
    let (run, id) = waiting(&home, &[], "echo $$ > pid; exec sleep 300");
    let job = pid_in(&home.file("pid"));
    home.waits_for(id, "running");
    let (behind, second) = waiting(&home, &[], "touch ran");
    home.tell(&["stop", &second.to_string()]);
    assert_eq!(wait(behind), Some(130));
    home.tell(&["stop", &id.to_string()]);
    let code = wait(run);
    assert!(is_gone(job));
    home.waits_for(id, "stopped");
    assert_eq!(code, Some(143), "as after the SIGTERM that it is");
    assert!(!home.file("ran").exists());
    assert!(home.said().contains(&format!("job {second} is stopped")), "{}", home.said());
}

#[test]
fn jobs_in_terminals_and_behind_the_scenes_wait_in_one_line() {
    let home = Home::new();
    let blocker = block(&home);
    let script = |name| format!("echo {name}+ >> written");
    home.add(&[], &script("a"));
    let (run, _) = waiting(&home, &[], &script("b"));
    home.add(&[], &script("c"));
    let (first, _) = waiting(&home, &["--priority", "5"], &script("d"));
    home.tell(&["stop", &blocker.to_string()]);
    home.waits_until_over();
    assert_eq!((wait(run), wait(first)), (Some(0), Some(0)));
    assert_eq!(home.begun(), ["d", "a", "b", "c"]);
}

#[test]
fn a_terminal_says_what_it_waits_for() {
    let home = Home::new();
    let blocker = block(&home);
    let (run, id) = waiting(&home, &[], ":");
    let words = format!("job {id} waits: job {blocker} is running");
    let is_said = || home.said().contains(&words).then_some(());
    assert!(eventually(is_said).is_some(), "{}", home.said());
    home.tell(&["stop", &blocker.to_string()]);
    assert_eq!(wait(run), Some(0));
}

#[test]
fn many_terminals_at_once_all_have_their_turn() {
    let home = Home::new();
    let engine = home.engine();
    // Each in a lane of its own: they are queued while the engine looks.
    let runs: Vec<Child> = (0..10)
        .map(|n| home.spawn(&mut home.run(&["--lane", &n.to_string()], "echo x+ >> written")))
        .collect();
    let codes: Vec<_> = runs.into_iter().map(wait).collect();
    assert_eq!(codes, [Some(0); 10], "{}", home.said());
    assert_eq!(home.begun().len(), 10);
    kill(engine);
}

#[test]
fn a_job_that_finds_no_room_in_time_is_4_and_says_what_was_missing() {
    let home = Home::new();
    let flags = ["run", "--wait-free", "100", "--start-timeout", "500ms", "--", "touch", "ran"];
    let ended = home.ask(&flags);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(home.state(1), "failed");
    assert!(home.why(1).starts_with("no room in time: memory available"), "{}", home.why(1));
    assert!(!home.file("ran").exists());
}

#[test]
fn a_terminal_that_comes_a_little_late_still_has_its_place() {
    let home = Home::new();
    home.tell(&["pause"]);
    let id = home.add(&[], "touch ran");
    let engine = home.engine_pid().unwrap();
    send(engine, libc::SIGKILL);
    assert!(is_gone(engine));
    home.change(
        "UPDATE jobs SET spec = json_set(spec, '$.in_terminal', json('true'));
         DELETE FROM settings WHERE name = 'paused'",
    );
    let engine = home.engine();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!((home.state(id), home.job(id)["attempts"].as_i64()), ("queued".into(), Some(0)));
    let lock = home.own(&format!("jobs/{id}/host.lock"));
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let lock = fs::File::create(lock).unwrap();
    lock.lock().unwrap();
    home.waits_for(id, "starting");
    drop(lock);
    home.waits_for(id, "stopped");
    assert!(!home.file("ran").exists());
    kill(engine);
}
