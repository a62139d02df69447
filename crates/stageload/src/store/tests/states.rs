use stageload_core::queue::{Expected, Turns};

use super::*;

#[test]
fn a_job_reads_back_as_it_was_queued() {
    let home = home();
    let mut store = open(home.path());
    let first = store.add(&new_job("mesh grid=1024")).unwrap();
    let held = Some("look at it first".to_owned());
    let new = NewJob { priority: -3, after: vec![first], hold: held, ..new_job("k") };
    let id = store.add(&new).unwrap();
    assert_eq!((first, id), (JobId(1), JobId(2)));
    drop(store);
    let row = open(home.path()).job(id).unwrap().unwrap();
    assert_eq!((row.spec, row.priority, row.after), (new.spec, -3, vec![first]));
    assert_eq!(row.state, JobState::Held { why: "look at it first".into() });
    assert_eq!(row.attempts, 0);
    assert!(row.added_utc > 1.7e9, "{}", row.added_utc);
}

#[test]
fn a_job_goes_from_queued_to_done_with_all_that_was_measured() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    assert!(store.start(id, 1).unwrap());
    assert_eq!(state(&store, id), JobState::Starting { attempt: 1 });
    assert_eq!(store.attempt(id, 1).unwrap().unwrap().supervisor, None);
    assert!(store.begin(id, 1, &supervisor("t")).unwrap());
    assert!(store.run(id, 1).unwrap());
    let stages = vec![StageTime { stage: "texture".into(), seconds: 7.5, peak: None }];
    let ended = Finish {
        peak: Some(Bytes::gib(31)),
        swap_peak: Some(Bytes::ZERO),
        stages: stages.clone(),
        ..finish("t", done())
    };
    assert!(store.finish(id, 1, &ended).unwrap());
    assert_eq!(state(&store, id), JobState::Done);
    let [attempt] = &store.attempts(id).unwrap()[..] else { panic!("one attempt") };
    assert_eq!(attempt.supervisor, Some(supervisor("t")));
    assert_eq!((attempt.ending.clone(), attempt.peak), (Some(done()), Some(Bytes::gib(31))));
    assert_eq!((attempt.swap_peak, &attempt.stages), (Some(Bytes::ZERO), &stages));
    assert!(attempt.began_utc.is_some() && attempt.ended_utc.is_some());
}

#[test]
fn an_attempt_is_started_only_from_the_queue_and_only_with_the_next_number() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    assert!(!store.start(id, 2).unwrap());
    assert!(!store.start(id, 0).unwrap());
    assert!(!store.start(JobId(99), 1).unwrap());
    assert!(store.start(id, 1).unwrap());
    assert!(!store.start(id, 2).unwrap(), "it is starting");
    let done = done_job(&mut store);
    assert!(!store.start(done, 2).unwrap());
}

#[test]
fn a_supervisor_begins_only_with_what_is_starting_and_only_once() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    assert!(!store.begin(id, 1, &supervisor("t")).unwrap(), "it is queued");
    store.start(id, 1).unwrap();
    assert!(!store.run(id, 1).unwrap(), "nobody has begun with it");
    assert!(store.begin(id, 1, &supervisor("t")).unwrap());
    assert!(!store.begin(id, 1, &supervisor("other")).unwrap());
    assert_eq!(store.attempt(id, 1).unwrap().unwrap().supervisor, Some(supervisor("t")));
    assert!(!store.begin(id, 2, &supervisor("t")).unwrap());
}

#[test]
fn a_supervisor_that_comes_too_late_does_not_begin() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    store.start(id, 1).unwrap();
    assert!(store.settle(id, Some(1), &JobState::queued()).unwrap());
    assert!(!store.begin(id, 1, &supervisor("late")).unwrap());
    assert!(store.start(id, 2).unwrap());
    assert!(!store.begin(id, 1, &supervisor("late")).unwrap());
    assert!(store.begin(id, 2, &supervisor("t")).unwrap());
    assert_eq!(store.job(id).unwrap().unwrap().attempts, 2);
}

#[test]
fn a_job_pauses_and_goes_on_only_in_that_order() {
    let home = home();
    let mut store = open(home.path());
    let id = running(&mut store, "k");
    assert!(!store.paused(id, 1).unwrap() && !store.resumed(id).unwrap());
    assert!(store.pausing(id).unwrap());
    assert!(!store.pausing(id).unwrap() && !store.paused(id, 2).unwrap());
    assert!(store.paused(id, 1).unwrap());
    assert_eq!(state(&store, id), JobState::Paused { attempt: 1 });
    assert!(store.resumed(id).unwrap());
    assert_eq!(state(&store, id), JobState::Running { attempt: 1 });
    assert!(store.pausing(id).unwrap() && store.resumed(id).unwrap(), "thought better of");
    let queued = store.add(&new_job("k")).unwrap();
    assert!(!store.pausing(queued).unwrap() && !store.resumed(queued).unwrap());
}

#[test]
fn what_nobody_has_begun_with_is_stopped_at_once_and_what_runs_is_stopping() {
    let home = home();
    let mut store = open(home.path());
    let queued = store.add(&new_job("k")).unwrap();
    assert_eq!(store.stop(queued).unwrap(), Some(JobState::Stopped));
    let starting = store.add(&new_job("k")).unwrap();
    store.start(starting, 1).unwrap();
    assert_eq!(store.stop(starting).unwrap(), Some(JobState::Stopped));
    assert!(!store.begin(starting, 1, &supervisor("t")).unwrap());
    let runs = running(&mut store, "k");
    let stopping = Some(JobState::Stopping { attempt: 1 });
    assert_eq!(store.stop(runs).unwrap(), stopping);
    assert_eq!(store.stop(runs).unwrap(), stopping, "again");
    assert!(!store.pausing(runs).unwrap() && !store.run(runs, 1).unwrap());
    assert!(store.finish(runs, 1, &finish("t", Ending::Stopped)).unwrap());
    assert_eq!(state(&store, runs), JobState::Stopped);
    assert_eq!(store.stop(runs).unwrap(), None);
    assert_eq!(store.stop(JobId(99)).unwrap(), None);
}

#[test]
fn only_what_waits_can_be_taken_from_the_queue() {
    let home = home();
    let mut store = open(home.path());
    let queued = store.add(&new_job("k")).unwrap();
    let held = store.add(&NewJob { hold: Some("?".into()), ..new_job("k") }).unwrap();
    let runs = running(&mut store, "k");
    assert!(store.stop_queued(queued).unwrap() && store.stop_queued(held).unwrap());
    assert!(!store.stop_queued(runs).unwrap() && !store.stop_queued(queued).unwrap());
}

#[test]
fn an_end_is_written_once_and_only_by_who_began() {
    let home = home();
    let mut store = open(home.path());
    let id = running(&mut store, "k");
    assert!(!store.finish(id, 1, &finish("stranger", done())).unwrap());
    assert!(!store.finish(id, 2, &finish("t", done())).unwrap());
    let at = |state| Finish { then: Then::At(state), ..finish("t", killed()) };
    assert!(!store.finish(id, 1, &at(JobState::Running { attempt: 1 })).unwrap());
    assert!(store.finish(id, 1, &at(JobState::Held { why: "ask".into() })).unwrap());
    assert_eq!(state(&store, id), JobState::Held { why: "ask".into() });
    assert!(!store.finish(id, 1, &finish("t", done())).unwrap());
    assert_eq!(store.attempt(id, 1).unwrap().unwrap().ending, Some(killed()));
}

#[test]
fn an_end_can_be_left_for_the_engine_to_decide_about() {
    let home = home();
    let mut store = open(home.path());
    let id = running(&mut store, "grid=1024");
    let ended = Finish { then: Then::AsItStands, ..finish("t", killed()) };
    assert!(store.finish(id, 1, &ended).unwrap());
    assert_eq!(state(&store, id), JobState::Running { attempt: 1 });
    assert!(!store.finish(id, 1, &ended).unwrap(), "once");
    assert!(!store.lower(id, 2, &spec("grid=512")).unwrap());
    assert!(store.lower(id, 1, &spec("grid=512")).unwrap());
    let row = store.job(id).unwrap().unwrap();
    assert_eq!((row.state, row.spec.key.as_str()), (JobState::queued(), "grid=512"));
    assert_eq!(row.attempts, 1);
}

#[test]
fn a_job_is_settled_only_from_where_it_was_believed_to_stand() {
    let home = home();
    let mut store = open(home.path());
    let waits = store.add(&new_job("k")).unwrap();
    let never = JobState::Held { why: "it can never fit".into() };
    assert!(!store.settle(waits, Some(1), &never).unwrap());
    assert!(!store.settle(waits, None, &JobState::Running { attempt: 1 }).unwrap());
    assert!(store.settle(waits, None, &never).unwrap());
    assert!(!store.settle(waits, None, &never).unwrap(), "it waits no more");
    let runs = running(&mut store, "k");
    let gone = JobState::Interrupted { why: "the machine went down".into() };
    assert!(!store.settle(runs, None, &gone).unwrap());
    assert!(!store.settle(runs, Some(2), &gone).unwrap());
    assert!(store.settle(runs, Some(1), &gone).unwrap());
    assert!(!store.finish(runs, 1, &finish("t", done())).unwrap(), "it is over");
    assert!(!store.settle(JobId(99), None, &gone).unwrap());
}

#[test]
fn what_a_job_waits_for_is_kept_while_it_waits() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    let words = vec!["busy: ltx".to_owned(), "quiet for 0 s of 60 s".to_owned()];
    assert!(store.tell(id, &words).unwrap());
    assert_eq!(state(&store, id), JobState::Queued { waits_for: words.clone() });
    store.start(id, 1).unwrap();
    assert!(!store.tell(id, &words).unwrap());
    let mode: i64 =
        store.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(mode, 2, "FULL again");
}

#[test]
fn a_job_that_is_over_is_tried_again_last_in_line_and_keeps_its_count() {
    let home = home();
    let mut store = open(home.path());
    let id = done_job(&mut store);
    let other = store.add(&new_job("k")).unwrap();
    assert!(!store.retry(other).unwrap(), "it waits already");
    assert!(store.retry(id).unwrap());
    let line: Vec<JobId> = store.unfinished().unwrap().iter().map(|job| job.id).collect();
    assert_eq!(line, [other, id]);
    assert!(!store.start(id, 1).unwrap());
    run_again(&mut store, id, 2);
    assert!(!store.retry(id).unwrap(), "it runs");
    assert_eq!(store.attempts(id).unwrap().len(), 2);
}

#[test]
fn a_job_that_is_tried_again_does_not_wait_for_what_was_cleared_away() {
    let home = home();
    let mut store = open(home.path());
    let (first, second) = (done_job(&mut store), done_job(&mut store));
    let id = store.add(&after(&[first, second])).unwrap();
    store.stop(id).unwrap();
    store.clear(Clear::Jobs(&[first])).unwrap();
    assert!(store.retry(id).unwrap());
    assert_eq!(store.job(id).unwrap().unwrap().after, [second]);
}

#[test]
fn only_what_waits_can_be_edited() {
    let home = home();
    let mut store = open(home.path());
    let first = store.add(&new_job("k")).unwrap();
    let id = store.add(&new_job("k")).unwrap();
    assert!(store.edit(id, &spec("other"), 5, &[first]).unwrap());
    let row = store.job(id).unwrap().unwrap();
    assert_eq!((row.spec.key.as_str(), row.priority, row.after), ("other", 5, vec![first]));
    let runs = running(&mut store, "k");
    assert!(!store.edit(runs, &spec("other"), 5, &[]).unwrap());
    assert!(!store.edit(JobId(99), &spec("other"), 5, &[]).unwrap());
    let round = store.edit(first, &spec("k"), 0, &[id]).unwrap_err();
    assert!(matches!(round, Error::AfterItself { id } if id == first), "{round}");
    assert!(matches!(store.edit(id, &spec("k"), 0, &[id]), Err(Error::AfterItself { .. })));
    assert!(matches!(store.edit(id, &spec("k"), 0, &[JobId(77)]), Err(Error::NoJob { .. })));
}

#[test]
fn a_pause_is_kept_with_its_reason() {
    let home = home();
    let mut store = open(home.path());
    assert_eq!(store.pause_reason().unwrap(), None);
    store.pause("by you").unwrap();
    store.pause("job 1 was interrupted").unwrap();
    drop(store);
    let mut store = open(home.path());
    assert_eq!(store.pause_reason().unwrap().as_deref(), Some("job 1 was interrupted"));
    store.resume().unwrap();
    assert_eq!(store.load().unwrap().2, None);
}

#[test]
fn an_engine_is_told_what_is_not_over_what_that_comes_after_and_who_was_served() {
    let home = home();
    let mut store = open(home.path());
    let gone = done_job(&mut store);
    let needed = done_job(&mut store);
    let held = store.add(&NewJob { hold: Some("?".into()), ..after(&[gone]) }).unwrap();
    let mut declared = after(&[needed]);
    declared.spec.declared = Some(Expected { peak: Bytes::gib(9), stage: None });
    declared.spec.key = "unknown".into();
    let waits = store.add(&declared).unwrap();
    let (jobs, turns, paused) = store.load().unwrap();
    let mut ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    ids.sort();
    assert_eq!(ids, [needed, waits], "without {held} and {gone}");
    let job = jobs.iter().find(|job| job.id == waits).unwrap();
    assert_eq!(job.expected, declared.spec.declared);
    let mut served = Turns::default();
    served.serve("ram", "me", 2);
    assert_eq!((turns, paused), (served, None));
}

#[test]
fn another_connections_writes_are_noticed() {
    let home = home();
    let (mut one, other) = (open(home.path()), open(home.path()));
    let before = other.data_version().unwrap();
    assert_eq!(other.data_version().unwrap(), before);
    one.add(&new_job("k")).unwrap();
    assert_ne!(other.data_version().unwrap(), before);
}

#[test]
fn a_folder_whose_name_is_no_text_reads_back() {
    use std::os::unix::ffi::OsStringExt;
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    store.start(id, 1).unwrap();
    let folder = std::ffi::OsString::from_vec(b"/jobs/\xff\n'".to_vec());
    let odd = Supervisor { folder: folder.into(), ..supervisor("t") };
    store.begin(id, 1, &odd).unwrap();
    assert_eq!(store.attempt(id, 1).unwrap().unwrap().supervisor, Some(odd));
}
