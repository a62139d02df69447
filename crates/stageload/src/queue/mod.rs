//! The queue at work: an engine that starts what is due, a supervisor for each job that outlives it, and
//! the files both leave. What is due is decided in `stageload_core::queue`; what is known is kept in
//! `store`.
//!
//! Where the files are and who holds which lock: `place`. The loop: `engine`, and what it says: `notice`.
//! One attempt: `attempt`, with stages read from output: `stage_lines`; in a terminal: `host`; with less
//! after a kill: `lowered`. Whether one is alive: `life`. What is shown: `view`, `last_seen`.
//! Stops that nobody may have been told of: `stops`.

mod attempt;
mod engine;
mod host;
mod last_seen;
mod life;
mod lowered;
mod notice;
mod place;
mod stage_lines;
mod stops;
mod view;

pub use attempt::{supervise, tell_supervisor};
pub use engine::{EngineSetup, call_engine, is_engine_there, run_engine};
pub use host::{HostPlace, Turn};
pub use last_seen::LastSeen;
pub use notice::EngineNotice;
pub use place::{AttemptFiles, queue_home, remove_attempts};
pub use view::{view, view_of};
