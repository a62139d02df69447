use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Barrier;

use super::*;

const HOME: &str = "STORE_WRITER_HOME";

#[test]
fn of_many_supervisors_that_race_for_an_attempt_exactly_one_begins() {
    let home = home();
    let mut store = open(home.path());
    for round in 0..20 {
        let id = store.add(&new_job("k")).unwrap();
        store.start(id, 1).unwrap();
        let gate = Barrier::new(6);
        let race = |which: usize| {
            let mut own = open(home.path());
            gate.wait();
            let token = format!("t{which}");
            own.begin(id, 1, &supervisor(&token)).unwrap().then_some(token)
        };
        let won: Vec<String> = std::thread::scope(|scope| {
            let race = &race;
            let threads: Vec<_> = (0..6).map(|which| scope.spawn(move || race(which))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        let [token] = &won[..] else { panic!("round {round}: {won:?} began") };
        let attempt = store.attempt(id, 1).unwrap().unwrap();
        assert_eq!(attempt.supervisor.unwrap().token, *token);
    }
}

#[test]
fn a_stop_and_a_begin_that_race_never_both_win() {
    let home = home();
    let mut store = open(home.path());
    for _ in 0..20 {
        let id = store.add(&new_job("k")).unwrap();
        store.start(id, 1).unwrap();
        let gate = Barrier::new(2);
        let (began, stopped) = std::thread::scope(|scope| {
            let begin = scope.spawn(|| {
                let mut own = open(home.path());
                gate.wait();
                own.begin(id, 1, &supervisor("t")).unwrap()
            });
            let stop = scope.spawn(|| {
                let mut own = open(home.path());
                gate.wait();
                own.stop(id).unwrap()
            });
            (begin.join().unwrap(), stop.join().unwrap().unwrap())
        });
        let expected = if began { JobState::Stopping { attempt: 1 } } else { JobState::Stopped };
        assert_eq!(stopped, expected);
    }
}

#[test]
fn jobs_that_many_add_at_once_are_all_there_in_a_strict_order() {
    let home = home();
    open(home.path());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut own = open(home.path());
                for _ in 0..10 {
                    own.add(&new_job("k")).unwrap();
                }
            });
        }
    });
    let positions: Vec<i64> =
        open(home.path()).unfinished().unwrap().iter().map(|job| job.position).collect();
    assert_eq!(positions.len(), 60);
    assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{positions:?}");
}

#[test]
fn a_writer_that_keeps_the_queue_to_itself_is_waited_for_and_then_told_of() {
    let home = home();
    let (one, mut other) = (open(home.path()), open(home.path()));
    other.connection.busy_timeout(Duration::from_millis(50)).unwrap();
    one.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = other.add(&new_job("k")).unwrap_err();
    assert!(matches!(error, Error::QueueBusy { .. }), "{error}");
    assert_eq!(other.unfinished().unwrap(), [], "reading waits for nobody");
    one.connection.execute_batch("COMMIT").unwrap();
    other.add(&new_job("k")).unwrap();
}

/// Says each number after its job is in the queue.
#[test]
#[ignore = "not a test but the process that another test kills"]
fn adds_jobs_until_it_is_killed() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let mut store = open(Path::new(&home));
    loop {
        let id = running(&mut store, "k");
        assert!(store.finish(id, 1, &finish("t", done())).unwrap());
        println!("\nadded {id}");
    }
}

#[test]
fn what_was_said_to_be_written_is_there_after_a_kill_in_the_middle_of_a_write() {
    let home = home();
    let mut said = Vec::new();
    for round in 1..=8 {
        said.extend(said_until_killed(home.path(), round));
        let store = open(home.path());
        for id in &said {
            assert_eq!(state(&store, *id), JobState::Done, "job {id}");
            let attempt = store.attempt(*id, 1).unwrap().unwrap();
            assert_eq!(attempt.ending, Some(done()), "job {id}");
        }
        let all = store.finished(usize::MAX).unwrap().len() + store.unfinished().unwrap().len();
        assert!(all <= said.len() + round, "one a round was not said");
    }
    assert!(said.len() >= 36, "{said:?}");
}

/// The jobs that a writer says are in the queue, until it is killed after `n` of them.
fn said_until_killed(home: &Path, n: usize) -> Vec<JobId> {
    let name = "store::tests::crowd::adds_jobs_until_it_is_killed";
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", name, "--nocapture"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let number = |line: String| line.strip_prefix("added ")?.parse().ok().map(JobId);
    let mut numbers = lines.filter_map(number);
    let mut said: Vec<JobId> = numbers.by_ref().take(n).collect();
    writer.kill().unwrap();
    writer.wait().unwrap();
    said.extend(numbers);
    said
}
