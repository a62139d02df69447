use super::*;

fn line(store: &Store) -> Vec<i64> {
    store.unfinished().unwrap().iter().map(|job| job.id.0).collect()
}

fn four(store: &mut Store) {
    for _ in 0..4 {
        store.add(&new_job("k")).unwrap();
    }
}

#[test]
fn jobs_are_moved_to_any_place_in_line() {
    let home = home();
    let mut store = open(home.path());
    four(&mut store);
    assert_eq!(line(&store), [1, 2, 3, 4]);
    let table = [
        (4, Spot::First, [4, 1, 2, 3]),
        (4, Spot::Last, [1, 2, 3, 4]),
        (4, Spot::Before(JobId(2)), [1, 4, 2, 3]),
        (1, Spot::After(JobId(4)), [4, 1, 2, 3]),
        (1, Spot::After(JobId(4)), [4, 1, 2, 3]),
        (4, Spot::After(JobId(3)), [1, 2, 3, 4]),
        (2, Spot::Before(JobId(1)), [2, 1, 3, 4]),
    ];
    for (id, spot, expected) in table {
        assert!(store.move_to(JobId(id), spot).unwrap());
        assert_eq!(line(&store), expected, "{id} to {spot:?}");
    }
}

#[test]
fn a_job_is_not_moved_beside_itself_or_beside_what_is_over_and_not_while_it_runs() {
    let home = home();
    let mut store = open(home.path());
    let over = done_job(&mut store);
    let runs = running(&mut store, "k");
    let id = store.add(&new_job("k")).unwrap();
    for spot in [Spot::Before(id), Spot::After(over), Spot::Before(JobId(99))] {
        assert!(!store.move_to(id, spot).unwrap(), "{spot:?}");
    }
    assert!(!store.move_to(runs, Spot::Last).unwrap());
    assert!(store.move_to(id, Spot::Before(runs)).unwrap());
    assert_eq!(line(&store), [id.0, runs.0]);
}

#[test]
fn a_gap_that_is_used_up_is_made_anew() {
    let home = home();
    let mut store = open(home.path());
    four(&mut store);
    for i in 0..100 {
        let (moved, other) = if i % 2 == 0 { (4, 3) } else { (3, 4) };
        assert!(store.move_to(JobId(moved), Spot::Before(JobId(other))).unwrap());
        let [first, second] = if i % 2 == 0 { [4, 3] } else { [3, 4] };
        assert_eq!(line(&store), [1, 2, first, second], "{i}");
    }
}

#[test]
fn finished_jobs_are_listed_the_last_first() {
    let home = home();
    let mut store = open(home.path());
    let ids: Vec<JobId> = (0..3).map(|_| done_job(&mut store)).collect();
    let listed: Vec<JobId> = store.finished(2).unwrap().iter().map(|job| job.id).collect();
    assert_eq!(listed, [ids[2], ids[1]]);
    assert_eq!(line(&store), [] as [i64; 0]);
}

#[test]
fn a_job_that_another_still_comes_after_is_not_cleared_away() {
    let home = home();
    let mut store = open(home.path());
    let (free, needed) = (done_job(&mut store), done_job(&mut store));
    let waits = store.add(&after(&[needed])).unwrap();
    let runs = running(&mut store, "k");
    let removed = store.clear(Clear::Finished).unwrap();
    assert_eq!(removed, [Removed { id: free, folders: vec!["/jobs/t".into()] }]);
    assert_eq!(store.job(free).unwrap(), None);
    assert_eq!(store.attempts(free).unwrap(), []);
    assert_eq!(store.clear(Clear::Jobs(&[needed, waits, runs, JobId(99)])).unwrap(), []);
    store.stop(waits).unwrap();
    let ids = |removed: Vec<Removed>| removed.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(ids(store.clear(Clear::Finished).unwrap()), [needed, waits]);
    assert_eq!(store.add(&new_job("k")).unwrap(), JobId(5), "no number is given twice");
}

#[test]
fn a_held_job_is_cleared_away_only_by_its_number() {
    let home = home();
    let mut store = open(home.path());
    let held = store.add(&NewJob { hold: Some("?".into()), ..new_job("k") }).unwrap();
    assert_eq!(store.clear(Clear::Finished).unwrap(), []);
    assert_eq!(store.clear(Clear::Jobs(&[held])).unwrap().len(), 1);
}

#[test]
fn a_job_cannot_come_after_one_that_is_not_there() {
    let home = home();
    let mut store = open(home.path());
    let refused = store.add(&after(&[JobId(7)])).unwrap_err().to_string();
    assert_eq!(refused, "there is no job 7; `stageload queue` lists them");
    assert_eq!(line(&store), [] as [i64; 0]);
}
