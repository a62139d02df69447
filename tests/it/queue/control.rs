//! What somebody wants of jobs that are there: stop, pause, move, retry, clear; and whose turn it is.

use std::fs;

use super::{Home, kill};
use crate::support::{eventually, is_alive, is_gone, pid_in};

/// Jobs that wait behind a paused queue, and run in some order once it goes on.
fn let_go(home: &Home) -> Vec<String> {
    home.tell(&["resume"]);
    home.waits_until_over();
    home.begun()
}

fn paused() -> Home {
    let home = Home::new();
    home.tell(&["pause"]);
    home
}

fn add(home: &Home, flags: &[&str], name: &str) -> String {
    home.add_writer(flags, name, "0", 0).to_string()
}

#[test]
fn a_waiting_job_that_is_stopped_never_runs() {
    let home = paused();
    let first = add(&home, &[], "a");
    add(&home, &[], "b");
    home.tell(&["stop", &first]);
    assert_eq!(home.state(1), "stopped");
    assert_eq!(let_go(&home), ["b"]);
    let again = home.ask(&["stop", &first]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("job 1 is stopped"), "{}", again.err);
}

#[test]
fn a_running_job_that_is_stopped_is_gone_with_all_its_processes() {
    let home = Home::new();
    let script = "setsid sh -c 'echo $$ > far; exec sleep 300' & echo $$ > near; wait";
    let id = home.add(&[], script);
    let (near, far) = (pid_in(&home.file("near")), pid_in(&home.file("far")));
    home.tell(&["stop", &id.to_string()]);
    home.waits_for(id, "stopped");
    assert!(is_gone(near) && is_gone(far));
}

#[test]
fn a_job_that_will_not_end_is_ended_after_its_grace() {
    let home = Home::new();
    let id = home.add(&[], "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done");
    let job = pid_in(&home.file("pid"));
    home.tell(&["stop", &id.to_string()]);
    home.waits_for(id, "stopped");
    assert!(is_gone(job));
}

#[test]
fn a_paused_queue_starts_nothing_and_harms_nothing_that_runs() {
    let home = Home::new();
    let engine = home.engine();
    let running = home.add_writer(&[], "a", "0.7", 0);
    home.waits_until_written("a+");
    home.tell(&["pause"]);
    let waiting = home.add_writer(&[], "b", "0", 0);
    home.waits_for(running, "done");
    assert_eq!(home.queue()["paused"], "by hand");
    kill(engine);
    let engine = home.engine();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(home.state(waiting), "queued", "paused is paused also for the next engine");
    home.tell(&["resume"]);
    home.waits_for(waiting, "done");
    kill(engine);
}

#[test]
fn a_job_pauses_at_its_next_stage_and_goes_on() {
    let home = Home::new();
    // What a job does that works stage by stage.
    let script = r#"
        say() { echo "{\"kind\":\"$1\",$2}" >> "$STAGELOAD_EVENTS"; }
        for stage in one two three; do
            if [ -e "$STAGELOAD_PAUSE" ]; then
                say mark '"note":"paused"'
                while [ -e "$STAGELOAD_PAUSE" ]; do sleep 0.05; done
                say mark '"note":"resumed"'
            fi
            say stage "\"stage\":\"$stage\""
            echo "$stage+" >> written
            while [ ! -e "go-$stage" ]; do sleep 0.05; done
        done"#;
    let id = home.add(&[], script);
    let (number, go) = (id.to_string(), |stage: &str| fs::write(home.file(stage), "").unwrap());
    home.waits_until_written("one+");
    home.waits_for(id, "running");
    let seen = || (home.job(id)["stage"] == "one").then_some(());
    assert!(eventually(seen).is_some(), "{}", home.job(id));
    home.tell(&["pause", &number]);
    assert_eq!(home.state(id), "pausing");
    go("go-one");
    home.waits_for(id, "paused");
    assert_eq!(home.begun(), ["one"]);
    home.tell(&["resume", &number]);
    home.waits_until_written("two+");
    home.waits_for(id, "running");
    go("go-two");
    go("go-three");
    home.waits_for(id, "done");
    assert_eq!(home.begun(), ["one", "two", "three"]);
}

#[test]
fn a_job_that_waits_or_is_over_cannot_be_paused() {
    let home = paused();
    let id = add(&home, &[], "a");
    let ended = home.ask(&["pause", &id]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("job 1 is queued, not paused"), "{}", ended.err);
}

#[test]
fn waiting_jobs_are_moved_anywhere_in_line() {
    let home = paused();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| add(&home, &[], name));
    home.tell(&["move", &d, "--first"]);
    home.tell(&["move", &a, "--last"]);
    home.tell(&["move", &b, "--after", &c]);
    assert_eq!(let_go(&home), ["d", "c", "b", "a"]);
    let late = home.ask(&["move", &a, "--first"]);
    assert_eq!(late.code, Some(1), "{late:?}");
}

#[test]
fn a_job_moved_beside_itself_is_where_it_was() {
    let home = paused();
    let [a, _b] = ["a", "b"].map(|name| add(&home, &[], name));
    home.ask(&["move", &a, "--before", &a]);
    home.ask(&["move", &a, "--after", &a]);
    assert_eq!(let_go(&home), ["a", "b"]);
}

#[test]
fn a_higher_priority_comes_first() {
    let home = paused();
    add(&home, &[], "a");
    add(&home, &["--priority", "-3"], "low");
    add(&home, &["--priority", "7"], "high");
    add(&home, &[], "b");
    assert_eq!(let_go(&home), ["high", "a", "b", "low"]);
}

#[test]
fn owners_take_turns() {
    let home = paused();
    for name in ["ada1", "ada2", "ada3"] {
        add(&home, &["--owner", "ada"], name);
    }
    add(&home, &["--who", "bob-laptop"], "bob1");
    add(&home, &["--who", "bob-desk"], "bob2");
    assert_eq!(home.job(4)["owner"], "bob");
    assert_eq!(let_go(&home), ["ada1", "bob1", "ada2", "bob2", "ada3"]);
}

#[test]
fn a_job_that_failed_is_tried_again_and_both_attempts_are_kept() {
    let home = Home::new();
    let id = home.add(&[], "echo try; test -e ready || exit 9");
    home.waits_for(id, "failed");
    fs::write(home.file("ready"), "").unwrap();
    home.tell(&["retry", &id.to_string()]);
    home.waits_for(id, "done");
    assert_eq!(home.job(id)["attempts"], 2);
    for attempt in ["1", "2"] {
        let log = home.tell(&["log", &id.to_string(), "--attempt", attempt]);
        assert!(log.starts_with("try\n") || log.contains("\ntry\n"), "{log}");
    }
    let running = home.ask(&["retry", "99"]);
    assert_eq!(running.code, Some(1), "{running:?}");
}

#[test]
fn a_job_runs_only_after_those_it_names_and_is_held_if_one_of_them_fails() {
    let home = paused();
    let good = add(&home, &[], "good");
    let bad = home.add_writer(&[], "bad", "0", 3).to_string();
    let after_good = add(&home, &["--after", &good, "--priority", "9"], "after-good");
    let after_bad = add(&home, &["--after", &good, "--after", &bad], "after-bad");
    assert_eq!(let_go(&home), ["good", "after-good", "bad"]);
    assert_eq!(home.state(after_good.parse().unwrap()), "done");
    let held: i64 = after_bad.parse().unwrap();
    assert_eq!(home.state(held), "held");
    assert_eq!(home.why(held), format!("job {bad}, after which it comes, is failed"));
    let unknown = home.ask(&["add", "--after", "77", "--", "true"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.err.contains("77"), "{}", unknown.err);
}

#[test]
fn lanes_run_side_by_side_and_each_one_at_a_time() {
    let home = Home::new();
    let meet = |mine: &str, other: &str| {
        format!("touch {mine}; while [ ! -e {other} ]; do sleep 0.05; done")
    };
    let left = home.add(&["--lane", "left"], &meet("l", "r"));
    let behind = home.add_writer(&["--lane", "left"], "behind", "0", 0);
    let right = home.add(&["--lane", "right"], &meet("r", "l"));
    home.waits_for(left, "done");
    home.waits_for(right, "done");
    home.waits_for(behind, "done");
    let only: serde_json::Value =
        serde_json::from_str(&home.tell(&["queue", "--json", "--history", "9", "--lane", "right"]))
            .unwrap();
    assert_eq!(only["history"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_over_is_forgotten_with_its_folders_but_not_what_others_wait_for() {
    let home = Home::new();
    let first = home.add_writer(&[], "a", "0", 0);
    home.waits_for(first, "done");
    let second = home.add_writer(&[], "b", "0", 0);
    home.waits_for(second, "done");
    home.tell(&["pause"]);
    let waiting = home.add_writer(&["--after", &first.to_string()], "c", "0", 0);
    home.tell(&["clear"]);
    assert_eq!(home.states().iter().map(|(id, _)| *id).collect::<Vec<_>>(), [first, waiting]);
    assert!(home.own(&format!("jobs/{first}/1/trace.jsonl")).exists());
    assert!(!home.own(&format!("jobs/{second}")).exists());
    home.tell(&["resume"]);
    home.waits_for(waiting, "done");
    home.tell(&["clear"]);
    assert!(home.states().is_empty());
    assert_eq!(fs::read_dir(home.own("jobs")).unwrap().count(), 0);
}

#[test]
fn a_job_that_never_began_leaves_no_folder_when_it_is_forgotten() {
    let home = paused();
    let mut run = home.spawn(&mut home.run(&[], "true"));
    assert!(eventually(|| home.states().first().cloned()).is_some());
    home.tell(&["stop", "1"]);
    crate::support::eventually(|| run.try_wait().unwrap()).unwrap();
    home.tell(&["clear"]);
    let left: Vec<_> = fs::read_dir(home.own("jobs")).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_job_that_runs_is_not_forgotten() {
    let home = Home::new();
    let id = home.add(&[], "echo $$ > pid; exec sleep 300");
    let job = pid_in(&home.file("pid"));
    let ended = home.ask(&["clear", &id.to_string()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(is_alive(job) && home.states().len() == 1);
}

#[test]
fn a_job_that_waits_can_be_changed_and_one_that_is_over_cannot() {
    let home = Home::new();
    assert_eq!(home.ask(&["pause"]).code, Some(0));
    let id = home.add(&[], "true").to_string();
    let changed = home.ask(&["edit", &id, "--priority", "3", "--lane", "slow", "--owner", "ada"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let shown = home.ask(&["show", &id, "--json"]);
    let job: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(
        (&job["priority"], &job["lane"], &job["owner"]),
        (&3.into(), &"slow".into(), &"ada".into())
    );
    let none = home.ask(&["edit", &id, "--set", "grid=512"]);
    assert!(none.err.contains("was made from no preset"), "{none:?}");
    assert_eq!(home.ask(&["stop", &id]).code, Some(0));
    let late = home.ask(&["edit", &id, "--priority", "1"]);
    assert_eq!(late.code, Some(1));
    assert!(late.err.contains("is stopped, and only what waits can be changed"), "{late:?}");
}

#[test]
fn a_doctor_finds_a_preset_that_is_wrong_and_says_where() {
    let home = Home::new();
    assert_eq!(home.ask(&["doctor"]).code, Some(0));
    std::fs::create_dir_all(home.own("presets")).unwrap();
    std::fs::write(home.own("presets/bad.toml"), "name = \"bad\"\ncommand = 7\n").unwrap();
    let found = home.ask(&["doctor"]);
    assert_eq!(found.code, Some(1));
    assert!(found.out.contains("bad.toml, line 2"), "{}", found.out);
}
