//! How long calls take with a long history. Run it in release, on a disk that is one:
//! `cargo test --release -p stageload --lib -- --ignored --nocapture store::tests::speed`

use std::time::Instant;

use super::*;

const FINISHED: usize = 10_000;
const WAITING: usize = 1_000;

#[test]
#[ignore = "not a test but a measurement"]
fn calls_on_a_long_history() {
    let home = match std::env::var_os("STORE_SPEED_HOME") {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => home(),
    };
    let mut store = open(home.path());
    store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
    fill(&mut store);
    let size = std::fs::metadata(home.path().join("queue.sqlite")).unwrap().len() >> 20;
    println!("{FINISHED} finished, {WAITING} waiting, {size} MB");
    drop(store);
    time("open", || drop(open(home.path())));
    let mut store = open(home.path());
    time("unfinished()", || assert_eq!(store.unfinished().unwrap().len(), WAITING));
    time("load()", || assert_eq!(store.load().unwrap().0.len(), WAITING));
    time("finished(50)", || assert_eq!(store.finished(50).unwrap().len(), 50));
    time("history(key, 5)", || assert_eq!(store.history("k7", 5).unwrap().len(), 5));
    time("learned(key)", || drop(store.learned("k7").unwrap()));
    time("data_version()", || _ = store.data_version().unwrap());
    time("add()", || _ = store.add(&new_job("k")).unwrap());
    let id = store.add(&new_job("k")).unwrap();
    time("tell()", || assert!(store.tell(id, &["quiet for 1 s of 60 s".into()]).unwrap()));
    time("move_to(First)", || assert!(store.move_to(id, Spot::First).unwrap()));
    time("start, begin, run, finish", || _ = done_job(&mut store));
    let log = home.path().join("queue.sqlite-wal");
    let copy = tempfile::tempdir_in(home.path()).unwrap();
    std::fs::copy(&log, copy.path().join("queue.sqlite-wal")).unwrap();
    std::fs::copy(home.path().join("queue.sqlite"), copy.path().join("queue.sqlite")).unwrap();
    let start = Instant::now();
    drop(open(copy.path()));
    println!("{:<28}{:>8.2} ms", "open after a power cut", ms(start));
    let start = Instant::now();
    let removed = store.clear(Clear::Finished).unwrap().len();
    println!("{:<28}{:>8.2} ms for {removed}", "clear(Finished)", ms(start));
}

fn fill(store: &mut Store) {
    for i in 0..FINISHED {
        let id = running(store, &format!("k{}", i % 20));
        let stages = ["encode", "structure", "texture", "export"].map(|stage| StageTime {
            stage: stage.into(),
            seconds: 12.5,
            peak: Some(Bytes::gib(20)),
        });
        let ended =
            Finish { peak: Some(Bytes::gib(20)), stages: stages.to_vec(), ..finish("t", done()) };
        assert!(store.finish(id, 1, &ended).unwrap());
    }
    for i in 0..WAITING {
        store.add(&new_job(&format!("k{}", i % 40))).unwrap();
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn time(what: &str, mut call: impl FnMut()) {
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            call();
            ms(start)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what:<28}{:>8.2} ms median, {:.2} at most", times[10], times[20]);
}
