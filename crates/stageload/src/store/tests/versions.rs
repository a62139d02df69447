use std::fs;

use super::*;

const VERSION_1: &[u8] = include_bytes!("../../../../../tests/fixtures/queue/v1.sqlite");

#[test]
fn a_queue_of_version_1_opens_with_all_that_is_in_it() {
    let home = home();
    fs::write(home.path().join("queue.sqlite"), VERSION_1).unwrap();
    let mut store = open(home.path());
    assert_eq!(schema::version(&store.connection).unwrap(), schema::VERSION);
    let line = store.unfinished().unwrap();
    let states: Vec<&str> = line.iter().map(|job| job.state.name()).collect();
    assert_eq!(states, ["queued", "held", "running"]);
    assert_eq!(line[0].spec, spec("waits"));
    assert_eq!(line[0].after, [JobId(1)]);
    let over: Vec<&str> = store.finished(9).unwrap().iter().map(|job| job.state.name()).collect();
    assert_eq!(over, ["killed", "done"]);
    let attempt = store.attempt(JobId(2), 1).unwrap().unwrap();
    assert_eq!((attempt.ending, attempt.supervisor), (Some(killed()), Some(supervisor("t"))));
    assert_eq!(store.learned("k").unwrap().expected.unwrap().peak, Bytes::gib(31));
    assert_eq!(store.pause_reason().unwrap().as_deref(), Some("by you"));
    assert_eq!(store.load().unwrap().0.len(), 3, "two in line, and one comes after a third");
    assert!(store.finish(JobId(5), 1, &finish("t", done())).unwrap());
}

#[test]
#[ignore = "not a test: writes the fixture, once for each version of the schema"]
fn writes_the_fixture_of_this_version() {
    let home = home();
    let mut store = open(home.path());
    for ending in [done(), killed()] {
        let id = running(&mut store, "k");
        let stages =
            vec![StageTime { stage: "texture".into(), seconds: 7.5, peak: Some(Bytes::gib(31)) }];
        let peak = Some(Bytes::gib(31));
        store.finish(id, 1, &Finish { peak, stages, ..finish("t", ending) }).unwrap();
    }
    store.add(&NewJob { spec: spec("waits"), ..after(&[JobId(1)]) }).unwrap();
    store.add(&NewJob { hold: Some("look at it first".into()), ..new_job("k") }).unwrap();
    running(&mut store, "k");
    store.pause("by you").unwrap();
    drop(store);
    let name = format!("v{}.sqlite", schema::VERSION);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/queue");
    fs::create_dir_all(&fixtures).unwrap();
    fs::copy(home.path().join("queue.sqlite"), fixtures.join(name)).unwrap();
}

#[test]
fn a_queue_of_a_newer_version_is_refused_and_left_as_it_is() {
    let home = home();
    let store = open(home.path());
    store.connection.pragma_update(None, "user_version", 1000).unwrap();
    drop(store);
    let path = home.path().join("queue.sqlite");
    let before = fs::read(&path).unwrap();
    for _ in 0..2 {
        let error = Store::open(home.path()).unwrap_err();
        assert!(matches!(error, Error::NewerQueue { found: 1000, known: 1, .. }), "{error}");
        assert!(error.to_string().contains("Update stageload, or set STAGELOAD_HOME"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
