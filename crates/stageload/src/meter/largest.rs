//! The machine's largest processes.
//!
//! Listing them costs one `status` of each process there is (20 µs each on Linux, measured at 480),
//! so whoever looks often gets the same list for a while.

use std::cmp::Reverse;
use std::time::Duration;

use stageload_core::Member;

use super::TOLD;
use crate::sys::{self, Machine};

/// Listing takes at most this part of the time.
const TIME_SHARE: u32 = 20;

/// What was listed last.
#[derive(Debug, Default)]
pub(crate) struct Largest {
    members: Vec<Member>,
    listed: Option<Listing>,
}

#[derive(Debug, Clone, Copy)]
struct Listing {
    at: Duration,
    took: Duration,
}

impl Largest {
    /// The largest processes, largest first; those that cannot be read are left out.
    pub(crate) fn list(&mut self, machine: &Machine) -> Vec<Member> {
        let now = sys::now();
        let is_due = |last: Listing| now.saturating_sub(last.at) >= last.took * TIME_SHARE;
        if self.listed.is_none_or(is_due) {
            self.members = list(machine);
            self.listed = Some(Listing { at: now, took: sys::now().saturating_sub(now) });
        }
        self.members.clone()
    }
}

fn list(machine: &Machine) -> Vec<Member> {
    let member = |pid| Some(Member { pid, footprint: machine.footprint(pid)? });
    let mut members: Vec<Member> = machine.pids().into_iter().filter_map(member).collect();
    members.sort_unstable_by_key(|member| (Reverse(member.footprint), member.pid));
    members.truncate(TOLD);
    members
}
