use stageload_core::queue::Expected;

use super::*;

fn stage(name: &str, seconds: f64, gib: u64) -> StageTime {
    StageTime { stage: name.into(), seconds, peak: Some(Bytes::gib(gib)) }
}

fn run(gib: u64, stages: Vec<StageTime>) -> Run {
    Run { ended_utc: 0.0, was_killed: false, peak: Some(Bytes::gib(gib)), stages }
}

#[test]
fn the_peak_is_the_most_of_the_last_five_with_its_stage() {
    let runs = [20, 31, 22, 21, 20, 70].map(|gib| {
        run(gib, vec![stage("encode", 1.0, 9), stage("texture", 2.0, gib), stage("export", 1.0, 5)])
    });
    let expected = Expected { peak: Bytes::gib(31), stage: Some("texture".into()) };
    assert_eq!(learn(&runs).expected, Some(expected), "the sixth is forgotten");
}

#[test]
fn a_kill_teaches_the_peak_but_no_times() {
    let killed = Run { was_killed: true, ..run(30, vec![stage("texture", 0.1, 30)]) };
    let learned = learn(&[killed.clone(), run(20, vec![stage("texture", 8.0, 20)]), killed]);
    assert_eq!(learned.expected.unwrap().peak, Bytes::gib(30));
    assert_eq!(learned.times, [], "one was done");
}

#[test]
fn times_are_medians_from_two_runs_on_and_in_the_order_of_the_last() {
    let of =
        |encode, texture| run(1, vec![stage("encode", encode, 1), stage("texture", texture, 1)]);
    assert_eq!(learn(&[of(1.0, 2.0)]).times, []);
    let two = learn(&[of(1.0, 2.0), of(3.0, 10.0)]).times;
    assert_eq!(two, [("encode".to_owned(), 2.0), ("texture".to_owned(), 6.0)]);
    let three = learn(&[of(1.0, 2.0), of(3.0, 10.0), of(100.0, 4.0)]).times;
    assert_eq!(three, [("encode".to_owned(), 3.0), ("texture".to_owned(), 4.0)]);
}

#[test]
fn a_stage_that_comes_again_is_one_and_one_that_came_once_has_no_time_yet() {
    let last = run(1, vec![stage("a", 1.0, 1), stage("b", 5.0, 1), stage("a", 2.0, 1)]);
    let before = run(1, vec![stage("a", 5.0, 1)]);
    assert_eq!(learn(&[last, before]).times, [("a".to_owned(), 4.0)]);
}

#[test]
fn nothing_is_learned_from_nothing() {
    assert_eq!(learn(&[]), Learned::default());
    let unmeasured = Run { peak: None, ..run(0, vec![]) };
    assert_eq!(learn(&[unmeasured]), Learned::default());
    let no_stage = learn(&[run(3, vec![])]).expected;
    assert_eq!(no_stage, Some(Expected { peak: Bytes::gib(3), stage: None }));
}

fn end(store: &mut Store, key: &str, ending: Ending, gib: u64) -> JobId {
    let id = running(store, key);
    let ended = Finish {
        peak: Some(Bytes::gib(gib)),
        stages: vec![stage("texture", gib as f64, gib)],
        ..finish("t", ending)
    };
    assert!(store.finish(id, 1, &ended).unwrap());
    id
}

#[test]
fn what_ended_well_or_by_the_guard_is_kept_newest_first_also_when_the_jobs_are_cleared() {
    let home = home();
    let mut store = open(home.path());
    for (ending, gib) in
        [(done(), 1), (killed(), 2), (Ending::Stopped, 90), (done(), 4), (done(), 3)]
    {
        end(&mut store, "k", ending, gib);
    }
    end(&mut store, "other", done(), 50);
    let peaks = |store: &Store, n| {
        let runs = store.history("k", n).unwrap();
        runs.iter().map(|run| run.peak.unwrap().0 >> 30).collect::<Vec<_>>()
    };
    assert_eq!(peaks(&store, 10), [3, 4, 2, 1]);
    assert_eq!(store.clear(Clear::Finished).unwrap().len(), 6);
    assert_eq!(peaks(&store, 2), [3, 4]);
    let learned = store.learned("k").unwrap();
    assert_eq!(learned.times, [("texture".to_owned(), 3.0)]);
    store.add(&new_job("k")).unwrap();
    let expected = store.load().unwrap().0[0].expected.clone();
    assert_eq!(expected, Some(Expected { peak: Bytes::gib(4), stage: Some("texture".into()) }));
}

#[test]
fn an_attempt_is_learned_from_under_the_key_that_it_ran_with() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("grid=1024")).unwrap();
    store.edit(id, &spec("grid=512"), 0, &[]).unwrap();
    run_again(&mut store, id, 1);
    store.finish(id, 1, &finish("t", done())).unwrap();
    let kept = ["grid=1024", "grid=512"].map(|key| store.history(key, 9).unwrap().len());
    assert_eq!(kept, [0, 1]);
}

#[test]
fn fifty_of_a_key_are_kept() {
    let home = home();
    let mut store = open(home.path());
    store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
    end(&mut store, "other", done(), 7);
    for gib in 1..=60 {
        end(&mut store, "k", done(), gib);
    }
    let runs = store.history("k", usize::MAX).unwrap();
    let ends = [runs[0].peak, runs[49].peak].map(|peak| peak.unwrap().0 >> 30);
    assert_eq!((runs.len(), ends), (50, [60, 11]));
    assert_eq!(store.history("other", 9).unwrap().len(), 1);
}
