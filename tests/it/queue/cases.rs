//! What other queues were reported to do wrong. The first line of each test's story is its report's.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{AT_ONCE, Home, kill, processes_of};
use crate::support::{eventually, finish, is_alive, is_gone, pid_in, send};

/// The machine goes down under a job that runs: nothing that ran then runs any more, and the machine
/// has another mark.
fn reboot(home: &Home, engine: std::process::Child, id: i64) {
    let supervisor = home.supervisor(id);
    kill(engine);
    send(supervisor, libc::SIGKILL);
    let job = pid_in(&home.file("pid"));
    assert!(is_gone(job) && is_gone(supervisor));
    let left = || processes_of(&home.queue).is_empty().then_some(());
    eventually(left);
    home.change("UPDATE attempts SET boot = 'before'");
}

/// A job with a stage, a look or two, and no end.
const ENDLESS: &str = r#"echo '{"kind":"stage","stage":"texture"}' >> "$STAGELOAD_EVENTS"
    echo $$ > pid; echo x+ >> written; exec sleep 300"#;

#[test]
fn the_queue_its_order_and_its_settings_outlive_the_engine() {
    let home = Home::new();
    let engine = home.engine();
    home.tell(&["pause"]);
    let ids: Vec<i64> = ["a", "b", "c"].map(|name| home.add_writer(&[], name, "0", 0)).into();
    home.tell(&["move", &ids[2].to_string(), "--first"]);
    let before = home.queue();
    kill(engine);
    let after = home.queue();
    assert_eq!((&before["jobs"], &before["paused"]), (&after["jobs"], &after["paused"]));
    let engine = home.engine();
    home.tell(&["resume"]);
    home.waits_until_over();
    assert_eq!(home.begun(), ["c", "a", "b"]);
    kill(engine);
}

#[test]
fn after_the_machine_went_down_nothing_starts_by_itself_and_it_is_said_why() {
    let home = Home::new();
    let engine = home.engine();
    let id = home.add(&[], ENDLESS);
    let next = home.add_writer(&[], "next", "0", 0);
    home.waits_for(id, "running");
    let seen = || (home.job(id)["stage"] == "texture").then_some(());
    assert!(eventually(seen).is_some());
    reboot(&home, engine, id);
    let engine = home.engine();
    home.waits_for(id, "interrupted");
    let why = home.why(id);
    assert!(why.starts_with("the machine went down in texture at "), "{why}");
    let paused = home.queue()["paused"].as_str().unwrap().to_owned();
    assert_eq!(paused, format!("job {id} was interrupted: {why}"));
    let told = home.ask(&["add", "--", "true"]);
    assert!(told.err.contains("the machine went down in texture"), "{}", told.err);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(home.state(next), "queued");
    // And it is not run again at each start until somebody says so.
    home.tell(&["stop", "3"]);
    home.tell(&["resume"]);
    home.waits_for(next, "done");
    assert_eq!(home.state(id), "interrupted");
    assert_eq!(home.begun(), ["x", "next"]);
    home.tell(&["retry", &id.to_string()]);
    home.waits_for(id, "running");
    assert_eq!(home.begun(), ["x", "next", "x"]);
    kill(engine);
}

#[test]
fn nothing_stays_running_that_is_gone() {
    let home = Home::new();
    let engine = home.engine();
    let id = home.add(&[], ENDLESS);
    home.waits_for(id, "running");
    let supervisor = home.supervisor(id);
    let job = pid_in(&home.file("pid"));
    kill(engine);
    send(supervisor, libc::SIGKILL);
    assert!(is_gone(job));
    let next = home.add_writer(&[], "next", "0", 0);
    home.waits_for(next, "done");
    assert_eq!(home.state(id), "interrupted");
}

#[test]
fn a_number_that_is_unknown_is_no_job_and_not_done() {
    let home = Home::new();
    for words in [["show", "7"], ["stop", "7"], ["log", "7"], ["retry", "7"], ["pause", "7"]] {
        let ended = home.ask(&words);
        assert_eq!(ended.code, Some(1), "{words:?}: {ended:?}");
        assert!(ended.err.contains('7') && ended.out.is_empty(), "{words:?}: {ended:?}");
    }
    for number in ["0", "-1", "x", "9223372036854775808"] {
        assert_eq!(home.ask(&["show", "--", number]).code, Some(2), "{number}");
    }
}

#[test]
fn a_number_is_never_given_twice() {
    let home = Home::new();
    let first = home.add(&[], "true");
    home.waits_for(first, "done");
    home.tell(&["clear"]);
    assert_eq!(home.add(&[], "true"), first + 1);
}

#[test]
fn after_pause_and_resume_everything_that_waits_runs_once() {
    let home = Home::new();
    let engine = home.engine();
    let ids: Vec<i64> = (0..5).map(|n| home.add_writer(&[], &n.to_string(), "0", 0)).collect();
    for _ in 0..5 {
        home.tell(&["pause"]);
        home.tell(&["resume"]);
    }
    home.waits_until_over();
    assert_eq!(home.begun(), ["0", "1", "2", "3", "4"]);
    assert!(ids.iter().all(|id| home.state(*id) == "done"));
    kill(engine);
}

#[test]
fn a_pause_during_the_first_job_of_a_new_engine_counts() {
    let home = Home::new();
    let first = home.add_writer(&[], "a", "0.5", 0);
    let second = home.add_writer(&[], "b", "0", 0);
    home.waits_until_written("a+");
    home.tell(&["pause"]);
    home.waits_for(first, "done");
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(home.state(second), "queued");
    assert!(home.tell(&["queue"]).starts_with("paused: by hand\n"));
}

#[test]
fn jobs_that_are_queued_at_the_same_time_all_run() {
    let home = Home::new();
    let adds: Vec<_> = (0..6)
        .map(|n| {
            let script = format!("echo {n}+ >> written");
            let words = ["--lane", &n.to_string(), "--", "sh", "-c", &script];
            home.spawn(&mut home.command(&[&["add"], &AT_ONCE[..], &words].concat()))
        })
        .collect();
    let codes: Vec<_> = adds.into_iter().map(crate::support::wait).collect();
    assert_eq!(codes, [Some(0); 6], "{}", home.said());
    assert_eq!(home.states().len(), 6);
    home.waits_until_over();
    let mut begun = home.begun();
    begun.sort();
    assert_eq!(begun, (0..6).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_time_a_job_took_does_not_count_its_wait() {
    let home = Home::new();
    home.tell(&["pause"]);
    let id = home.add_writer(&[], "a", "0.3", 0);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(home.job(id)["seconds"].is_null());
    home.tell(&["resume"]);
    home.waits_for(id, "done");
    let seconds = home.job(id)["seconds"].as_f64().unwrap();
    assert!((0.3..1.4).contains(&seconds), "{seconds}");
}

#[test]
fn what_a_job_prints_is_bounded_on_disk_and_read_as_head_and_tail() {
    let home = Home::new();
    // 60 MB, and a line at either end.
    let script =
        "echo the beginning; yes 0123456789abcdef | head -c 60000000; echo the end; sleep 3";
    let id = home.add(&[], script);
    let output = home.own(&format!("jobs/{id}/1/output.log"));
    home.waits_for(id, "done");
    let file = fs::metadata(&output).unwrap();
    assert!(file.len() > 60_000_000);
    assert!(file.blocks() * 512 < 24 << 20, "{} on disk", file.blocks() * 512);
    let log = home.tell(&["log", &id.to_string()]);
    assert!(log.len() < 24 << 20, "{}", log.len());
    assert!(log.lines().take(10).any(|line| line == "the beginning"));
    let end: Vec<&str> = log.lines().rev().take(10).collect();
    assert!(end.iter().any(|line| line.ends_with("the end")), "{end:?}");
    assert!(log.contains("left out here]"));
}

#[test]
fn a_queue_that_was_zeroed_is_kept_aside_and_said_to_be() {
    let home = Home::new();
    let id = home.add(&[], "true");
    home.waits_for(id, "done");
    let pid = home.engine_pid().unwrap();
    send(pid, libc::SIGKILL);
    assert!(is_gone(pid));
    for name in ["queue.sqlite-wal", "queue.sqlite-shm"] {
        fs::remove_file(home.own(name)).ok();
    }
    let length = fs::metadata(home.own("queue.sqlite")).unwrap().len();
    let zeros = vec![0; usize::try_from(length).unwrap().max(4096)];
    fs::write(home.own("queue.sqlite"), &zeros).unwrap();
    let listed = home.ask(&["queue"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.err.contains("it was damaged"), "{}", listed.err);
    let kept = listed.err.split("kept as ").nth(1).unwrap().trim();
    assert_eq!(fs::read(kept).unwrap(), zeros, "what was there is still there");
    let next = home.add(&[], "true");
    home.waits_for(next, "done");
}

#[test]
fn an_empty_or_strange_lock_file_keeps_no_engine_from_starting() {
    for text in ["", "not a number", "1\n", "999999999"] {
        let home = Home::new();
        fs::create_dir_all(home.queue.clone()).unwrap();
        fs::write(home.own("engine.lock"), text).unwrap();
        let id = home.add(&[], "true");
        home.waits_for(id, "done");
    }
}

#[test]
fn a_killed_job_leaves_a_trace_of_how() {
    let home = Home::new();
    let id = home.add(&[], "kill -KILL $$");
    let next = home.add_writer(&[], "next", "0", 0);
    home.waits_for(id, "failed");
    assert_eq!(home.why(id), "ended by SIGKILL");
    home.waits_for(next, "done");
}

#[test]
fn words_of_any_kind_arrive_as_they_are() {
    let home = Home::new();
    let words: [&[u8]; 9] = [
        b"with spaces.png",
        b"'single' \"double\" `back`",
        b"$(touch x).png",
        b"; rm -rf nothing & | > <",
        b"two\nlines",
        b"\xff\xfe not text",
        "\u{0939}\u{093f}\u{0928}\u{094d}\u{0926}\u{0940} \u{202e}".as_bytes(),
        b"",
        b"--looks-like=a-flag",
    ];
    let mut command = home.command(&[&["add"], &AT_ONCE[..], &["--", "sh", "-c"]].concat());
    command.arg("for word; do printf '%s\\0' \"$word\"; done > words").arg("sh");
    command.args(words.map(OsStr::from_bytes));
    let added = finish(&mut command);
    assert_eq!(added.code, Some(0), "{added:?}");
    home.waits_for(added.out.trim().parse().unwrap(), "done");
    let written = fs::read(home.file("words")).unwrap();
    let arrived: Vec<&[u8]> = written.strip_suffix(b"\0").unwrap().split(|b| *b == 0).collect();
    assert_eq!(arrived, words);
    assert!(!home.file("x").exists());
    let listed = home.tell(&["queue", "--history", "1"]);
    assert_eq!(listed.lines().count(), 2, "one line for a job, whatever its words: {listed:?}");
}

#[test]
fn a_job_runs_in_the_folder_where_it_was_queued_whatever_its_name_is() {
    let home = Home::new();
    let folder = home.file("").join(OsStr::from_bytes(b"$(touch x) \xff\n'a'"));
    fs::create_dir_all(&folder).unwrap();
    let words = [&["add"], &AT_ONCE[..], &["--", "sh", "-c", "echo here > there"]].concat();
    let added = finish(home.command(&words).current_dir(&folder));
    assert_eq!(added.code, Some(0), "{added:?}");
    home.waits_for(1, "done");
    assert_eq!(fs::read(folder.join("there")).unwrap(), b"here\n");
    let gone = finish(
        home.command(&[&["add"], &AT_ONCE[..], &["--", "true"]].concat()).current_dir(&folder),
    );
    assert_eq!(gone.code, Some(0));
}

#[test]
fn a_folder_that_is_gone_when_the_turn_comes_is_named() {
    let home = Home::new();
    home.tell(&["pause"]);
    let folder = home.file("soon gone");
    fs::create_dir(&folder).unwrap();
    let words = [&["add"], &AT_ONCE[..], &["--", "true"]].concat();
    assert_eq!(finish(home.command(&words).current_dir(&folder)).code, Some(0));
    fs::remove_dir(&folder).unwrap();
    home.tell(&["resume"]);
    home.waits_for(1, "failed");
    assert!(home.why(1).contains("soon gone"), "{}", home.why(1));
}

#[test]
fn secrets_of_the_terminal_are_not_written_down() {
    let home = Home::new();
    let words = [&["add"], &AT_ONCE[..], &["--env", "GIVEN", "--", "sh", "-c"]].concat();
    let mut command = home.command(&words);
    command.arg("echo \"[$HF_TOKEN$MY_PASSWORD] [$GIVEN] [$HF_HOME]\"");
    command.env("HF_TOKEN", "hf_secret1").env("MY_PASSWORD", "secret2");
    command.env("GIVEN", "on purpose").env("HF_HOME", "/models");
    assert_eq!(finish(&mut command).code, Some(0));
    home.waits_for(1, "done");
    let log = home.tell(&["log", "1"]);
    assert!(log.contains("[on purpose] [/models]"), "{log}");
    for file in ["queue.sqlite", "queue.sqlite-wal", "engine.log"] {
        let bytes = fs::read(home.own(file)).unwrap_or_default();
        for secret in [b"hf_secret1" as &[u8], b"secret2"] {
            let is_there = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!is_there, "{} is in {file}", String::from_utf8_lossy(secret));
        }
    }
}

#[test]
fn a_busy_process_that_comes_and_goes_lets_no_job_start_and_the_timeout_says_so() {
    let home = Home::new();
    let engine = home.engine();
    // Each for 200 ms, with 200 ms of quiet between them.
    let flap = "while [ ! -e enough ]; do sleep 0.2173; sleep 0.2; done";
    let mut flapping =
        Command::new("sh").args(["-c", flap]).current_dir(home.file("")).spawn().unwrap();
    let flags = ["--busy", r"sleep 0\.2173", "--quiet-for", "1500ms", "--start-timeout", "4s"];
    let began = Instant::now();
    let run = finish(&mut home.run(&flags, "touch ran"));
    let took = began.elapsed();
    fs::write(home.file("enough"), "").unwrap();
    flapping.wait().unwrap();
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(!home.file("ran").exists());
    assert!(took >= Duration::from_secs(4), "{took:?}");
    let why = home.why(1);
    assert!(why.starts_with("no room in time: "), "{why}");
    assert!(why.contains("sleep 0.2173") || why.contains("quiet for"), "{why}");
    let free = finish(&mut home.run(&flags, "touch ran"));
    assert_eq!(free.code, Some(0), "{free:?}");
    kill(engine);
}

#[test]
fn a_job_that_nothing_can_hold_is_held_at_once_with_what_it_needs() {
    let home = Home::new();
    let id = home.add(&["--need", "100000G"], "touch ran");
    home.waits_for(id, "held");
    assert!(home.why(id).contains("100000.00 GB"), "{}", home.why(id));
    let next = home.add_writer(&[], "next", "0", 0);
    home.waits_for(next, "done");
}

#[test]
fn a_job_of_which_a_process_closed_everything_and_outlived_its_supervisor_is_not_called_dead() {
    let home = Home::new();
    // `continue` lets it live on when its supervisor and its warden are killed.
    let flags = ["--on-guard-death", "continue"];
    let script = r#"exec bash -c 'for fd in {0..255}; do eval "exec $fd>&-"; done
        echo $$ > pid; sleep 2.5; echo x- >> written'"#;
    let id = home.add(&flags, script);
    let next = home.add_writer(&[], "next", "0", 0);
    let job = pid_in(&home.file("pid"));
    home.waits_for(id, "running");
    let others: Vec<i32> = processes_of(&home.queue)
        .into_iter()
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "stageload\n")
        })
        .filter(|pid| Some(*pid) != home.engine_pid())
        .collect();
    for pid in others {
        send(pid, libc::SIGKILL);
    }
    while is_alive(job) {
        assert_eq!(home.begun(), [] as [&str; 0], "two at once");
        std::thread::sleep(Duration::from_millis(20));
    }
    home.waits_for(next, "done");
    assert_eq!(home.state(id), "interrupted");
    assert_eq!(home.written(), ["x-", "next+", "next-"]);
}
