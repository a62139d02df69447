//! What an observer can and cannot do to a job. A file of its own: one process guards one job at
//! a time.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;
use std::time::{Duration, Instant};

use stageload::core::{Bytes, Grace, Percent, Policy, RoomPolicy};
use stageload::{Job, Notice, Observer, OnGuardDeath, Outcome, run};

/// Keeps the guard waiting in its notice until the job has ended.
#[derive(Default)]
struct Slow {
    saw_it_end: bool,
}

impl Observer for Slow {
    fn notice(&mut self, notice: &Notice) {
        let Notice::Stopping { pid, .. } = notice else { return };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.saw_it_end && Instant::now() < deadline {
            self.saw_it_end = has_ended(*pid);
        }
    }
}

fn has_ended(pid: i32) -> bool {
    let shown = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
    state.is_empty() || state.starts_with('Z')
}

fn job_over_its_limit() -> Job {
    let swap_budget = Bytes::gib(1000);
    Job {
        command: vec!["sleep".into(), "60".into()],
        env: Vec::new(),
        room: RoomPolicy {
            wait_free: Percent::new(0).unwrap(),
            swap_budget,
            swap_limit: None,
            need: None,
            quiet_for: Duration::ZERO,
            start_timeout: Duration::from_secs(1),
        },
        policy: Policy {
            limit: Some(Bytes(1)),
            swap_budget,
            swap_limit: None,
            kill_free: Percent::new(0).unwrap(),
            poll: Duration::from_millis(100),
        },
        busy: Vec::new(),
        grace: Grace::Fixed(Duration::from_secs(30)),
        on_guard_death: OnGuardDeath::Stop,
        warden: None,
        dry_run: false,
        trace: None,
        reason: None,
        events: None,
        token: None,
        meta: serde_json::Map::new(),
    }
}

#[test]
fn an_observer_that_blocks_on_the_notice_of_a_stop_does_not_hold_the_stop_up() {
    let mut slow = Slow::default();
    let outcome = run(&job_over_its_limit(), &mut slow).unwrap();
    assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
    assert!(slow.saw_it_end, "the signals came only after the notice");
}
