//! Everything is killed at every step of a job's life. Then, as the jobs themselves have written: none
//! is lost, none ran twice, none is called over while it lives, none is called done that was not.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{Home, kill, processes_of};
#[cfg(target_os = "linux")]
use crate::support::eventually;
use crate::support::{finish, is_alive, is_gone, pid_in, send, wait};

/// Jobs in lanes of their own that write their number, the even ones to end with 0 and the odd with 5.
fn add_jobs(home: &Home, count: i64) {
    home.tell(&["pause"]);
    for n in 1..=count {
        let (name, code) = (n.to_string(), if n % 2 == 0 { 0 } else { 5 });
        assert_eq!(home.add_writer(&["--lane", &name], &name, "0.15", code), n);
    }
    end_engine(home);
    home.change("DELETE FROM settings WHERE name = 'paused'");
}

fn end_engine(home: &Home) {
    if let Some(pid) = home.engine_pid() {
        send(pid, libc::SIGKILL);
        assert!(is_gone(pid));
    }
}

fn has(written: &[String], id: i64, mark: char) -> bool {
    written.iter().any(|word| *word == format!("{id}{mark}"))
}

/// What may be said of jobs at any time; `before` is what they had written before it was said.
fn check(home: &Home, before: &[String], states: &[(i64, String)]) {
    let after = home.written();
    for (id, state) in states {
        let is_begun = has(before, *id, '+');
        assert!(!(is_begun && state == "queued"), "job {id} runs and is called {state}");
        let is_over = matches!(&**state, "done" | "failed");
        assert!(!is_over || has(&after, *id, '-'), "job {id} did not end and is called {state}");
    }
    check_once(&after);
}

fn check_once(written: &[String]) {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in written {
        *counts.entry(word).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

fn look(home: &Home) {
    let before = home.written();
    check(home, &before, &home.states());
}

#[test]
fn an_engine_may_be_killed_at_any_step() {
    const JOBS: i64 = 20;
    let home = Home::new();
    add_jobs(&home, JOBS);
    let close = (0..100).step_by(4);
    for milliseconds in close.chain((150..=600).step_by(150)) {
        let mut engine = home.spawn(&mut home.command(&["engine"]));
        std::thread::sleep(Duration::from_millis(milliseconds));
        engine.kill().unwrap();
        wait(engine);
        look(&home);
    }
    let engine = home.engine();
    home.waits_until_over();
    let code = |id| if id % 2 == 0 { "done" } else { "failed" };
    let expected: Vec<_> = (1..=JOBS).map(|id| (id, code(id).to_owned())).collect();
    assert_eq!(home.states(), expected, "no supervisor was killed, so all ended by themselves");
    assert_eq!(home.written().len(), 2 * JOBS as usize, "{:?}", home.written());
    look(&home);
    kill(engine);
}

/// The supervisors of a queue that are there, by their jobs: also one that has not begun.
#[cfg(target_os = "linux")]
fn supervisors(home: &Home) -> Vec<(i64, i32)> {
    let job = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        (words.get(1) == Some(&"supervise") && words.get(3) == Some(&"1"))
            .then(|| Some((words[2].parse().ok()?, pid)))?
    };
    processes_of(&home.queue).into_iter().filter_map(job).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_may_be_killed_at_any_step() {
    const JOBS: i64 = 8;
    let home = Home::new();
    add_jobs(&home, JOBS);
    let engine = home.engine();
    let mut due: BTreeMap<i64, (i32, Instant)> = BTreeMap::new();
    let mut killed = BTreeMap::new();
    let deadline = Instant::now() + Duration::from_secs(80);
    while (killed.len() as i64) < JOBS && Instant::now() < deadline {
        for (job, pid) in supervisors(&home) {
            // The first at once, before it has begun; the others 35 ms later each.
            let delay = Duration::from_millis(35 * (job as u64 - 1));
            due.entry(job).or_insert((pid, Instant::now() + delay));
        }
        for (job, (pid, when)) in &due {
            if Instant::now() >= *when && !killed.contains_key(job) {
                if is_alive(*pid) {
                    send(*pid, libc::SIGKILL);
                }
                killed.insert(*job, *pid);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(killed.len() as i64, JOBS, "{killed:?}");
    look(&home);
    home.waits_until_over();
    look(&home);
    let states = home.states();
    assert_eq!(states.len() as i64, JOBS);
    for (id, state) in &states {
        let own = if id % 2 == 0 { "done" } else { "failed" };
        assert!(state == own || state == "interrupted", "job {id} is {state}: {}", home.why(*id));
    }
    let count = |wanted: &str| states.iter().filter(|(_, state)| state == wanted).count();
    assert!(count("interrupted") > 0, "some were killed under their jobs: {states:?}");
    let left = || (processes_of(&home.queue).len() == 1).then_some(());
    assert!(eventually(left).is_some(), "only the engine is left");
    kill(engine);
}

#[test]
fn a_terminal_may_be_killed_at_any_step() {
    const JOBS: u64 = 16;
    let home = Home::new();
    let engine = home.engine();
    let mut runs: Vec<(Child, Instant)> = Vec::new();
    for n in 0..JOBS {
        let lane = n.to_string();
        // Its own number is not known before it is queued; the lane tells them apart.
        let script = format!("echo {n}+ >> written; sleep 0.3; echo {n}- >> written; exit 5");
        let run = home.spawn(&mut home.run(&["--lane", &lane], &script));
        runs.push((run, Instant::now() + Duration::from_millis(n * 60)));
        while runs.iter().any(|(_, when)| Instant::now() >= *when) {
            let at = runs.iter().position(|(_, when)| Instant::now() >= *when).unwrap();
            kill(runs.remove(at).0);
        }
    }
    for (run, when) in runs {
        std::thread::sleep(when.saturating_duration_since(Instant::now()));
        kill(run);
    }
    home.waits_until_over();
    let written = home.written();
    check_once(&written);
    for (id, state) in home.states() {
        let n: i64 = home.job(id)["lane"].as_str().unwrap().parse().unwrap();
        match &*state {
            "failed" => assert!(has(&written, n, '-'), "{n} did not end: {}", home.why(id)),
            "stopped" => assert!(!has(&written, n, '+'), "{n} ran and is called {state}"),
            other => assert_eq!(other, "interrupted", "job {id}"),
        }
    }
    assert_eq!(home.written(), written, "and nothing runs on");
    kill(engine);
}

#[test]
fn an_add_may_be_killed_at_any_step() {
    let home = Home::new();
    home.tell(&["pause"]);
    let mut told = Vec::new();
    for milliseconds in 0..30 {
        let name = milliseconds.to_string();
        let script = format!("echo {name}+ >> written; echo {name}- >> written");
        let out = home.file("number");
        let mut add = home.command(&["add", "--wait-free", "0", "--kill-free", "1", "--"]);
        add.args(["sh", "-c", &script]).stdin(std::process::Stdio::null());
        add.stdout(std::fs::File::create(&out).unwrap()).stderr(std::process::Stdio::null());
        let mut add = add.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        add.kill().unwrap();
        wait(add);
        told.extend(std::fs::read_to_string(&out).unwrap().trim().parse::<i64>());
    }
    let states = home.states();
    let is_there = |id: &&i64| states.iter().any(|(there, _)| there == *id);
    assert_eq!(told.iter().filter(is_there).count(), told.len(), "{told:?} of {states:?}");
    // What was queued runs once, whether its number was told or not. Six of them say it for all.
    let (keep, drop) = states.split_at(states.len().min(6));
    let numbers: Vec<String> = drop.iter().map(|(id, _)| id.to_string()).collect();
    if !numbers.is_empty() {
        let words: Vec<&str> =
            std::iter::once("stop").chain(numbers.iter().map(|n| &**n)).collect();
        home.tell(&words);
    }
    home.tell(&["resume"]);
    home.waits_until_over();
    assert!(keep.iter().all(|(id, _)| home.state(*id) == "done"), "{:?}", home.states());
    let written = home.written();
    check_once(&written);
    assert_eq!(written.len(), 2 * keep.len());
}

#[test]
fn a_stop_may_be_killed_at_any_step() {
    let home = Home::new();
    let engine = home.engine();
    let mut milliseconds = 0;
    for n in 0..6 {
        let id =
            home.add(&["--lane", &n.to_string()], &format!("echo $$ > pid{n}; exec sleep 300"));
        let job = pid_in(&home.file(&format!("pid{n}")));
        while is_alive(job) {
            let mut stop = home.spawn(&mut home.command(&["stop", &id.to_string()]));
            std::thread::sleep(Duration::from_millis(milliseconds));
            stop.kill().unwrap();
            wait(stop);
            milliseconds = (milliseconds + 1) % 40;
            // What is called stopping is being stopped, whoever was killed.
            let state = home.state(id);
            assert!(is_alive(job) || state != "running");
            if state == "stopping" {
                assert!(is_gone(job));
            }
        }
        home.waits_for(id, "stopped");
    }
    kill(engine);
}

#[test]
fn everything_may_be_killed_at_once() {
    let home = Home::new();
    for n in 1..=6 {
        let name = n.to_string();
        home.add_writer(&["--lane", &name], &name, "0.4", 0);
    }
    home.waits_until_written("2+");
    // As when the system is short of memory and begins to end processes.
    for pid in processes_of(&home.queue) {
        crate::queue::send_if_there(pid, libc::SIGKILL);
    }
    look(&home);
    let ended = finish(&mut home.command(&["resume"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    home.waits_until_over();
    look(&home);
    assert_eq!(home.states().len(), 6);
    let begun = home.begun().len();
    assert_eq!(begun, 6, "{:?}", home.queue());
}
