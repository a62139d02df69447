//! The queue: what waits, what runs, and what happens next. Everything here is plain calls on plain
//! data: what is on disk comes in as a [`Event::Loaded`], what shall be done goes out as an [`Effect`].
//! Who keeps the jobs and starts processes is the `stageload` crate.
//!
//! What a job is and where it stands: `job.rs`. Whose turn it is: `turn.rs`. The decisions: `engine.rs`.

#[cfg(test)]
mod crashes;
mod engine;
mod job;
#[cfg(test)]
mod tests;
mod turn;

pub use engine::{Effect, Engine, Event};
pub use job::{Ending, Expected, Job, JobId, JobState, Life, Lower};
pub use turn::Turns;
