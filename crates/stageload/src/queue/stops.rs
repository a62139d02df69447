//! Stops that were written down and perhaps never told: whoever wanted one may have been killed between
//! the two. The queue's own word counts, and the supervisor is told again.

use std::collections::BTreeMap;
use std::time::Duration;

use stageload_core::queue::{JobId, JobState};

use crate::store::JobRow;

/// From what is written down to the signal, and from that to the end of most jobs.
const IS_LATE: Duration = Duration::from_secs(2);

/// Since when jobs are to stop; None once that was told again.
#[derive(Debug, Default)]
pub(super) struct Stops(BTreeMap<(JobId, u32), Option<Duration>>);

impl Stops {
    /// Forgets those of jobs that stand elsewhere by now.
    pub(super) fn keep(&mut self, rows: &BTreeMap<JobId, JobRow>) {
        self.0.retain(|(id, attempt), _| {
            let stopping = JobState::Stopping { attempt: *attempt };
            rows.get(id).is_some_and(|row| row.state == stopping)
        });
    }

    /// Whether to tell the supervisor of a job that is alive; once, for it may be about to end.
    pub(super) fn is_due(&mut self, row: &JobRow, now: Duration) -> bool {
        let JobState::Stopping { attempt } = row.state else { return false };
        let since = self.0.entry((row.id, attempt)).or_insert(Some(now));
        let is_due = since.is_some_and(|since| now.saturating_sub(since) >= IS_LATE);
        if is_due {
            *since = None;
        }
        is_due
    }
}
