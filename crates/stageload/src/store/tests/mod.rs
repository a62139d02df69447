//! The store over real databases.
//!
//! * `states`: every step of a job's life, and where it is refused
//! * `line`: order, clearing, what comes after what
//! * `learning`: what is kept of attempts that ended
//! * `damage`: files that are no database, and what becomes of them
//! * `versions`: databases of other versions
//! * `crowd`: several at once, and one that is killed as it writes
//! * `walks`: any calls in any order
//! * `speed`: how long calls take with a long history; not a test

mod crowd;
mod damage;
mod learning;
mod line;
mod speed;
mod states;
mod versions;
mod walks;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use stageload_core::queue::{Ending, JobId, JobState, Lower};
use stageload_core::{Bytes, Grace, Percent, Policy, RoomPolicy};
use tempfile::TempDir;

use super::*;
use crate::wire::Spec;
use crate::{OnGuardDeath, ProcessId};

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(home: &Path) -> Store {
    let opened = Store::open(home).unwrap();
    assert_eq!(opened.moved_aside, None);
    opened.store
}

fn spec(key: &str) -> Spec {
    let budget = Bytes::gib(8);
    Spec {
        command: vec!["python".into(), "मेश $(touch x).png".into()],
        folder: "/tmp".into(),
        env: BTreeMap::new(),
        who: Some("me-1".into()),
        owner: "me".into(),
        lane: "ram".into(),
        room: RoomPolicy {
            wait_free: Percent::default(),
            swap_budget: budget,
            swap_limit: None,
            need: None,
            quiet_for: Duration::from_secs(60),
            start_timeout: Duration::MAX,
        },
        policy: Policy {
            limit: None,
            swap_budget: budget,
            swap_limit: None,
            kill_free: Percent::default(),
            poll: Duration::from_secs(1),
        },
        busy: Vec::new(),
        grace: Grace::Auto,
        on_guard_death: OnGuardDeath::Stop,
        preset: None,
        key: key.into(),
        declared: None,
        lower: Lower::Nothing,
        in_terminal: false,
    }
}

fn new_job(key: &str) -> NewJob {
    NewJob { spec: spec(key), priority: 0, after: Vec::new(), hold: None }
}

fn after(ids: &[JobId]) -> NewJob {
    NewJob { after: ids.to_vec(), ..new_job("k") }
}

fn supervisor(token: &str) -> Supervisor {
    Supervisor {
        process: ProcessId { pid: 42, start: u64::MAX - 1 },
        boot: "boot-1".into(),
        token: token.into(),
        folder: format!("/jobs/{token}").into(),
    }
}

fn done() -> Ending {
    Ending::Exited { code: 0, means: None }
}

fn killed() -> Ending {
    Ending::Killed { rule: "limit".into(), why: "31.00 GB > limit 30.00 GB".into() }
}

fn finish(token: &str, ending: Ending) -> Finish {
    Finish {
        token: token.into(),
        ending,
        peak: None,
        swap_peak: None,
        stages: Vec::new(),
        then: Then::ByEnding,
    }
}

fn state(store: &Store, id: JobId) -> JobState {
    store.job(id).unwrap().unwrap().state
}

/// A job of which the first attempt runs.
fn running(store: &mut Store, key: &str) -> JobId {
    let id = store.add(&new_job(key)).unwrap();
    run_again(store, id, 1);
    id
}

fn run_again(store: &mut Store, id: JobId, attempt: u32) {
    assert!(store.start(id, attempt).unwrap());
    assert!(store.begin(id, attempt, &supervisor("t")).unwrap());
    assert!(store.run(id, attempt).unwrap());
}

fn done_job(store: &mut Store) -> JobId {
    let id = running(store, "k");
    assert!(store.finish(id, 1, &finish("t", done())).unwrap());
    id
}
