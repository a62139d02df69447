//! One engine for a queue, and jobs that do not end with it.

use std::fs;

use super::{Home, kill};
use crate::support::{eventually, finish, is_alive, is_gone, send, wait};

#[test]
fn a_job_outlives_its_engine_ends_with_its_own_code_and_the_next_comes_after_it() {
    let home = Home::new();
    let engine = home.engine();
    let first = home.add_writer(&[], "one", "0.1", 0);
    let second = home.add_writer(&[], "two", "2", 7);
    let third = home.add_writer(&[], "three", "0.1", 0);
    home.waits_until_written("two+");
    home.waits_for(second, "running");
    let supervisor = home.supervisor(second);
    kill(engine);
    assert!(is_alive(supervisor), "it is nobody's child that can be lost");
    assert_eq!(home.state(second), "running");
    let engine = home.engine();
    home.waits_for(third, "done");
    assert_eq!(home.supervisor(second), supervisor, "adopted, and not begun anew");
    assert_eq!((home.state(first), home.state(second)), ("done".into(), "failed".into()));
    assert_eq!(home.why(second), "exit code 7");
    assert_eq!(home.job(second)["attempts"], 1);
    assert_eq!(home.written(), ["one+", "one-", "two+", "two-", "three+", "three-"]);
    kill(engine);
}

#[test]
fn a_job_that_ends_while_no_engine_is_there_has_its_end_written_down() {
    let home = Home::new();
    let engine = home.engine();
    let id = home.add_writer(&[], "a", "0.3", 5);
    home.waits_until_written("a+");
    kill(engine);
    home.waits_for(id, "failed");
    assert_eq!(home.why(id), "exit code 5");
    let next = home.add_writer(&[], "b", "0", 0);
    home.waits_for(next, "done");
    assert_eq!(home.written(), ["a+", "a-", "b+", "b-"]);
}

#[test]
fn of_two_engines_one_runs_and_the_other_says_who_does() {
    let home = Home::new();
    let first = home.engine();
    let second = home.ask(&["engine"]);
    assert_eq!(second.code, Some(75), "{second:?}");
    assert!(second.err.contains(&first.id().to_string()), "{}", second.err);
    kill(first);
    let third = home.engine();
    assert!(is_alive(third.id() as i32), "the lock of one that was killed blocks nobody");
    kill(third);
}

#[test]
fn of_many_engines_that_start_at_once_one_stays() {
    let home = Home::new();
    let engines: Vec<_> = (0..8).map(|_| home.spawn(&mut home.command(&["engine"]))).collect();
    let pid = eventually(|| home.engine_pid()).expect("an engine");
    let (first, others): (Vec<_>, Vec<_>) =
        engines.into_iter().partition(|engine| engine.id() as i32 == pid);
    for other in others {
        assert_eq!(wait(other), Some(75));
    }
    send(pid, libc::SIGTERM);
    assert_eq!(first.into_iter().map(wait).collect::<Vec<_>>(), [Some(0)]);
}

#[test]
fn an_engine_that_is_told_to_end_leaves_its_jobs_alone() {
    let home = Home::new();
    let engine = home.engine();
    let id = home.add_writer(&[], "a", "1", 0);
    home.waits_until_written("a+");
    send(engine.id() as i32, libc::SIGTERM);
    assert_eq!(wait(engine), Some(0));
    home.waits_for(id, "done");
}

#[test]
fn an_engine_that_has_nothing_to_do_ends_by_itself() {
    let home = Home::new();
    let id = home.add_writer(&[], "a", "0.5", 0);
    home.waits_for(id, "done");
    let called = home.engine_pid().expect("`add` calls an engine");
    send(called, libc::SIGTERM);
    assert!(is_gone(called));
    let ended = finish(&mut home.command(&["engine", "--until-idle", "300ms"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn what_the_queue_keeps_is_the_users_own() {
    let home = Home::new();
    let id = home.add(&[], "echo hello");
    home.waits_for(id, "done");
    let files = home.job(id)["files"].as_str().unwrap().to_owned();
    for folder in
        [home.queue.clone(), home.own("jobs"), home.own(&format!("jobs/{id}")), files.into()]
    {
        assert_eq!(super::mode(&folder), 0o700, "{}", folder.display());
    }
}

#[test]
fn a_supervisor_that_is_killed_takes_its_job_along_and_the_next_one_starts() {
    let home = Home::new();
    let engine = home.engine();
    let first = home.add(&[], "echo $$ > pid; exec sleep 300");
    let next = home.add_writer(&[], "next", "0", 0);
    let job = crate::support::pid_in(&home.file("pid"));
    home.waits_for(first, "running");
    send(home.supervisor(first), libc::SIGKILL);
    home.waits_for(first, "interrupted");
    assert!(!is_alive(job), "nobody is called dead while it is alive");
    assert!(home.why(first).starts_with("its supervisor was killed"), "{}", home.why(first));
    home.waits_for(next, "done");
    assert_eq!(home.job(first)["attempts"], 1, "it is not tried again by itself");
    kill(engine);
}

#[test]
fn a_supervisor_that_is_told_to_end_ends_its_job() {
    let home = Home::new();
    let id = home.add(&[], "echo $$ > pid; exec sleep 300");
    let job = crate::support::pid_in(&home.file("pid"));
    home.waits_for(id, "running");
    send(home.supervisor(id), libc::SIGTERM);
    home.waits_for(id, "interrupted");
    assert!(is_gone(job));
    assert_eq!(home.why(id), "its supervisor got SIGTERM");
    assert!(!fs::read_to_string(home.own("engine.log")).unwrap().contains("panicked"));
}
