use std::fs;
use std::io::{Seek, SeekFrom, Write};

use super::*;

const NAME: &str = "queue.sqlite";

/// A queue of some size that was closed as it should be.
fn queue_with_jobs(home: &Path, jobs: usize) {
    let mut store = open(home);
    store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
    for _ in 0..jobs {
        store.add(&new_job("k")).unwrap();
    }
}

fn over_write(path: &Path, at: u64, with: &[u8]) {
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(with).unwrap();
}

/// The copy of a queue as a machine that goes down leaves it: with what is not copied back yet.
fn left_open(home: &Path, jobs: usize) -> TempDir {
    queue_with_jobs(home, jobs);
    let mut store = open(home);
    store.add(&new_job("last")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for ending in ["", "-wal"] {
        let name = format!("{NAME}{ending}");
        fs::copy(home.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

#[test]
fn whatever_the_file_is_it_is_moved_aside_and_a_new_queue_begins() {
    let home = home();
    queue_with_jobs(home.path(), 20);
    let sound = fs::read(home.path().join(NAME)).unwrap();
    let zeroed = vec![0; sound.len()];
    let garbage: Vec<u8> = (0..sound.len()).map(|i| (i * 7919 % 251) as u8).collect();
    let mut no_header = sound.clone();
    no_header[..100].fill(0);
    let cases = [
        ("empty", Vec::new()),
        ("one byte", sound[..1].to_vec()),
        ("half a header", sound[..50].to_vec()),
        ("the first page", sound[..4096].to_vec()),
        ("truncated", sound[..sound.len() / 2].to_vec()),
        ("zeroed", zeroed),
        ("no header", no_header),
        ("garbage", garbage),
        ("a text", b"{\"tasks\": []}".to_vec()),
    ];
    for (what, content) in cases {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(NAME);
        fs::write(&path, &content).unwrap();
        let Opened { mut store, moved_aside } = Store::open(home.path()).unwrap();
        let aside = moved_aside.unwrap_or_else(|| panic!("{what}: nothing was noticed"));
        let name = aside.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("queue.damaged-20"), "{what}: {name}");
        assert_eq!(fs::read(&aside).unwrap(), content, "{what}: it is what it was");
        assert_eq!(store.unfinished().unwrap(), [], "{what}");
        assert_eq!(store.pause_reason().unwrap(), None);
        store.add(&new_job("k")).unwrap();
        drop(store);
        assert_eq!(open(home.path()).unfinished().unwrap().len(), 1, "{what}");
    }
}

#[test]
fn a_header_with_any_byte_changed_is_no_panic_and_loses_nothing() {
    let home = home();
    queue_with_jobs(home.path(), 3);
    let sound = fs::read(home.path().join(NAME)).unwrap();
    for at in 0..100 {
        let home = tempfile::tempdir().unwrap();
        let mut changed = sound.clone();
        changed[at] ^= 0x55;
        fs::write(home.path().join(NAME), &changed).unwrap();
        match Store::open(home.path()) {
            Ok(Opened { moved_aside: Some(aside), .. }) => {
                assert_eq!(fs::read(aside).unwrap(), changed, "byte {at}");
            }
            Ok(Opened { store, .. }) => {
                assert_eq!(store.unfinished().unwrap().len(), 3, "byte {at}");
            }
            Err(Error::NewerQueue { .. }) => assert!((60..64).contains(&at), "byte {at}"),
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[test]
fn two_damaged_files_of_one_second_are_both_kept() {
    let home = home();
    let mut names = std::collections::BTreeSet::new();
    for content in ["one", "two", "three"] {
        fs::write(home.path().join(NAME), content).unwrap();
        let aside = Store::open(home.path()).unwrap().moved_aside.unwrap();
        assert_eq!(fs::read_to_string(&aside).unwrap(), content);
        names.insert(aside);
    }
    assert_eq!(names.len(), 3);
    for (name, content) in names.iter().zip(["one", "two", "three"]) {
        assert!(fs::read_to_string(name).is_ok(), "{content}");
    }
}

#[test]
fn what_was_not_copied_back_when_the_machine_went_down_is_there() {
    let home = home();
    let copy = left_open(home.path(), 3);
    let store = open(copy.path());
    assert_eq!(store.unfinished().unwrap()[3].spec.key, "last");
}

#[test]
fn after_the_machine_went_down_every_page_is_checked() {
    let home = home();
    let copy = left_open(home.path(), 200);
    let path = copy.path().join(NAME);
    let length = fs::metadata(&path).unwrap().len();
    over_write(&path, length / 2 / 4096 * 4096, &[0xa5; 4096]);
    let Opened { store, moved_aside } = Store::open(copy.path()).unwrap();
    let aside = moved_aside.unwrap();
    assert_eq!(fs::metadata(&aside).unwrap().len(), length);
    let log = format!("{}-wal", aside.to_str().unwrap());
    assert!(fs::metadata(log).unwrap().len() > 0, "what belongs to it went with it");
    assert_eq!(store.unfinished().unwrap(), []);
}

#[test]
fn a_damaged_page_that_a_call_meets_is_dealt_with_at_the_next_opening() {
    let home = home();
    queue_with_jobs(home.path(), 200);
    let path = home.path().join(NAME);
    let length = fs::metadata(&path).unwrap().len();
    over_write(&path, length / 2 / 4096 * 4096, &[0xa5; 4096]);
    let store = open(home.path());
    let error = store.unfinished().unwrap_err();
    assert!(matches!(error, Error::DamagedQueue { .. }), "{error}");
    drop(store);
    assert!(Store::open(home.path()).unwrap().moved_aside.is_some());
    assert!(Store::open(home.path()).unwrap().moved_aside.is_none(), "once");
}

#[test]
fn a_damaged_log_is_moved_aside_and_the_queue_waits_for_somebody_to_look() {
    for log in [vec![0; 40_000], b"no log".to_vec()] {
        let home = home();
        let copy = left_open(home.path(), 3);
        let path = copy.path().join(format!("{NAME}-wal"));
        fs::write(&path, &log).unwrap();
        let Opened { store, moved_aside } = Store::open(copy.path()).unwrap();
        assert_eq!(fs::read(moved_aside.unwrap()).unwrap(), log);
        assert_eq!(store.unfinished().unwrap().len(), 3, "without the last");
        assert!(store.pause_reason().unwrap().unwrap().contains("is lost"));
    }
}

#[test]
fn a_log_without_its_database_is_moved_aside() {
    let home = home();
    let copy = left_open(home.path(), 3);
    fs::remove_file(copy.path().join(NAME)).unwrap();
    let Opened { store, moved_aside } = Store::open(copy.path()).unwrap();
    assert!(Path::new(&format!("{}-wal", moved_aside.unwrap().to_str().unwrap())).exists());
    assert_eq!(store.unfinished().unwrap(), []);
}

#[test]
fn what_others_have_open_is_not_moved_under_them() {
    let home = home();
    queue_with_jobs(home.path(), 20);
    let path = home.path().join(NAME);
    let others = open(home.path());
    let length = fs::metadata(&path).unwrap().len();
    over_write(&path, 0, &[0; 100]);
    let error = Store::open(home.path()).unwrap_err();
    assert!(matches!(error, Error::DamagedQueue { .. } | Error::Queue { .. }), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().len(), length);
    drop(others);
    assert!(Store::open(home.path()).unwrap().moved_aside.is_some());
}

#[test]
fn of_many_that_open_a_damaged_queue_at_once_one_moves_it() {
    let home = home();
    fs::write(home.path().join(NAME), [0; 8192]).unwrap();
    let moved: Vec<bool> = std::thread::scope(|scope| {
        let open = || {
            let Opened { mut store, moved_aside } = Store::open(home.path()).unwrap();
            store.add(&new_job("k")).unwrap();
            moved_aside.is_some()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(moved.iter().filter(|moved| **moved).count(), 1);
    assert_eq!(open(home.path()).unfinished().unwrap().len(), 8, "nobody's job went with it");
}

#[test]
fn a_half_made_new_queue_is_made_again() {
    let home = home();
    fs::write(home.path().join("queue.new.sqlite"), b"half").unwrap();
    assert_eq!(open(home.path()).unfinished().unwrap(), []);
    assert!(!home.path().join("queue.new.sqlite").exists());
}

#[test]
fn an_empty_lock_file_of_somebody_who_is_gone_blocks_nobody() {
    let home = home();
    fs::write(home.path().join("open.lock"), "").unwrap();
    fs::write(home.path().join("present.lock"), "12345").unwrap();
    open(home.path());
}

#[test]
fn the_folder_and_the_queue_are_the_users_own() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let folder = home.path().join("state/stageload");
    let store = open(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join(NAME)), 0o600);
    drop(store);
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_what_to_do() {
    let home = home();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("stageload")).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the queue ") && error.contains("file"), "{error}");
    assert!(error.ends_with("choose another place"), "{error}");
}

#[test]
fn a_job_that_cannot_be_read_is_an_error_and_no_panic() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    store.connection.execute("UPDATE jobs SET after = '{'", []).unwrap();
    let error = store.job(id).unwrap_err();
    assert!(matches!(error, Error::UnreadableJob { .. }), "{error}");
    let illegal = store.connection.execute("UPDATE jobs SET state = '{\"state\":\"lost\"}'", []);
    assert!(illegal.unwrap_err().to_string().contains("CHECK"));
}

#[test]
fn a_full_disk_is_told_and_does_no_harm() {
    let home = home();
    let mut store = open(home.path());
    let id = store.add(&new_job("k")).unwrap();
    // What a full disk is to the database: it may not have another page.
    let pages: i64 =
        store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let large = NewJob { hold: Some("x".repeat(100_000)), ..new_job("k") };
    let error = store.add(&large).unwrap_err();
    assert!(matches!(error, Error::QueueDiskFull { .. }), "{error}");
    assert!(error.to_string().ends_with("free some space and try again"), "{error}");
    assert!(store.start(id, 1).unwrap(), "what fits is still written");
}
