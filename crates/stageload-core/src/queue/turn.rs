//! Whose turn it is in a lane: the highest priority first; among those the owner who was served
//! longest ago, so that nobody's hundred jobs keep another's single one waiting; among one owner's
//! the first in line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::{Job, JobId, JobState};

/// When each owner was last served in each lane, as any number that grows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    served: BTreeMap<(String, String), i64>,
}

impl Turns {
    /// Notes that a job of `owner` started in `lane`.
    pub fn serve(&mut self, lane: &str, owner: &str, when: i64) {
        let last = self.served.entry((lane.to_owned(), owner.to_owned())).or_insert(when);
        *last = when.max(*last);
    }

    /// The job whose turn it is, of a lane's.
    pub(super) fn next<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Option<&'a Job> {
        let waiting = jobs.filter(|job| job.state.is_queued());
        waiting.min_by_key(|job| (Reverse(job.priority), self.last(job), job.position, job.id))
    }

    fn last(&self, job: &Job) -> i64 {
        let never = i64::MIN;
        self.served.get(&(job.lane.clone(), job.owner.clone())).copied().unwrap_or(never)
    }

    /// The lane's jobs that wait, in the order in which they will be served if nobody else comes.
    pub fn order<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Vec<&'a Job> {
        let mut waiting: Vec<&Job> = jobs.filter(|job| job.state.is_queued()).collect();
        waiting.sort_by_key(|job| (Reverse(job.priority), job.position, job.id));
        let mut last: BTreeMap<&str, i64> = BTreeMap::new();
        let mut next = self.served.values().max().map_or(0, |last| last.saturating_add(1));
        let mut order = Vec::with_capacity(waiting.len());
        for equals in waiting.chunk_by(|a, b| a.priority == b.priority) {
            let mut lines: BTreeMap<&str, VecDeque<&Job>> = BTreeMap::new();
            for job in equals {
                last.entry(&job.owner).or_insert_with(|| self.last(job));
                lines.entry(&job.owner).or_default().push_back(job);
            }
            while let Some(owner) = first_owner(&lines, &last) {
                order.extend(lines.get_mut(owner).and_then(VecDeque::pop_front));
                last.insert(owner, next);
                next = next.saturating_add(1);
            }
        }
        order
    }
}

/// The owner who was served longest ago, of those who have jobs left.
fn first_owner<'a>(
    lines: &BTreeMap<&'a str, VecDeque<&Job>>,
    last: &BTreeMap<&str, i64>,
) -> Option<&'a str> {
    let heads = lines.iter().filter_map(|(owner, jobs)| Some((*owner, *jobs.front()?)));
    heads.min_by_key(|(owner, job)| (last.get(owner), job.position, job.id)).map(|(owner, _)| owner)
}

/// What keeps a job from having a turn at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    /// Nothing does.
    Free,
    /// One that it comes after is not over.
    Waits(JobId),
    /// One that it comes after did not end well, or is unknown.
    Broken(JobId, &'static str),
}

/// Whether `job` may have its turn, for what it comes after.
pub(super) fn bound(job: &Job, state_of: impl Fn(JobId) -> Option<JobState>) -> Bound {
    let mut waits = None;
    for id in &job.after {
        match state_of(*id) {
            Some(JobState::Done) => {}
            Some(JobState::Held { .. }) => waits = Some(*id),
            Some(state) if state.is_over() => return Bound::Broken(*id, state.name()),
            Some(_) => waits = Some(*id),
            None => return Bound::Broken(*id, "unknown"),
        }
    }
    waits.map_or(Bound::Free, Bound::Waits)
}
