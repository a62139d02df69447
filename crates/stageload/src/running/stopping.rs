//! How a running job is stopped, and what is waited for afterwards. When it is: `running.rs`.

use std::fmt::Display;
use std::time::Duration;

use stageload_core::{Escalation, Reading, Reason, Recovery, Return, Step, Verdict};

use super::Run;
use crate::Notice;
use crate::job::Stop;
use crate::sys::{self, ProcessId};
use crate::wake::Wake;

/// Between two steps of a stopping: short, because the job may still be growing.
const TURN: Duration = Duration::from_millis(20);
/// Between two looks at memory that is coming back.
const RETURNING: Duration = Duration::from_millis(100);

impl Run<'_> {
    /// None if the job ended by itself before it could be stopped.
    pub(super) fn stop_for(&mut self, reason: Reason) -> Option<Stop> {
        if self.is_over() {
            return None;
        }
        let at_verdict = self.last.clone();
        let t = at_verdict.t;
        let survivors = self.stop(&reason);
        let grew = self.grown();
        self.wait_for_memory(&at_verdict);
        Some(Stop { reason, t, signalled: self.meter.signalled(), survivors, grew })
    }

    /// Ends the job: SIGTERM, SIGCONT so that a stopped process gets to see it, a grace, SIGKILL.
    pub(super) fn stop(&mut self, why: &dyn Display) -> Vec<ProcessId> {
        self.ask_to_end();
        let why = why.to_string();
        let mut escalation = Escalation::begin(self.job.grace, self.last.footprint, sys::now());
        // Said after it is done: an observer that blocks must not keep the job alive.
        self.observer.notice(&Notice::Stopping { pid: self.leader.pid(), why: why.clone() });
        self.show(true);
        self.mark(&format!("stopping: {why}"));
        let mut is_urgent = false;
        loop {
            if self.is_over() {
                return Vec::new();
            }
            match escalation.step(self.last.footprint, is_urgent, sys::now()) {
                Step::Wait => self.ask_to_end(),
                Step::Kill => self.meter.signal_all(libc::SIGKILL, self.leader.group()),
                Step::GiveUp => return self.survivors(),
            }
            let wake = self.wakes.wait(TURN);
            let verdict = self.look();
            let is_at_floor = matches!(&verdict, Verdict::Stop(reason) if reason.breach.is_floor());
            is_urgent = is_at_floor || matches!(wake, Some(Wake::Signal(_)));
        }
    }

    /// Whoever was not asked yet: a process may have been forked since. One that was stopped must be
    /// continued to hear it.
    fn ask_to_end(&mut self) {
        self.meter.signal_new(libc::SIGTERM);
        self.meter.signal_new(libc::SIGCONT);
    }

    /// That nobody was seen is believed only when the system says that the leader has ended.
    fn is_over(&mut self) -> bool {
        self.meter.found_nobody() && self.leader.has_ended()
    }

    /// Who is there in spite of SIGKILL. A meter that cannot look knows only who was there, so the
    /// system is asked in ways that need no file.
    fn survivors(&mut self) -> Vec<ProcessId> {
        let leader = self.leader.pid();
        let has_ended = self.leader.has_ended();
        let is_there = |id: &ProcessId| {
            if id.pid == leader { !has_ended } else { sys::exists(id.pid) }
        };
        let survivors: Vec<ProcessId> = self.meter.members().filter(is_there).collect();
        if !survivors.is_empty() {
            let pids = survivors.iter().map(|id| id.pid).collect();
            self.observer.notice(&Notice::Survivors(pids));
        }
        survivors
    }

    /// The next job must not be judged on a machine that this one has not left yet.
    fn wait_for_memory(&mut self, at_verdict: &Reading) {
        let recovery = Recovery::begin(at_verdict, sys::now());
        loop {
            match recovery.observe(&self.last, sys::now()) {
                Return::Back => return,
                Return::Stranded(bytes) => {
                    return self.observer.notice(&Notice::Stranded(bytes));
                }
                Return::Waiting => {}
            }
            if let Some(Wake::Signal(_)) = self.wakes.wait(RETURNING) {
                return;
            }
            self.look();
        }
    }
}
