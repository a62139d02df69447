//! The queue at work: an engine that starts what is due, a supervisor for each job that outlives it, and
//! the files both leave. What is due is decided in `stageload_core::queue`; what is known is kept in
//! `store`.
//!
//! Where the files are and who holds which lock: `place`. A job in a terminal: `host`. One attempt: `attempt`. The loop: `engine`.
//! Whether an attempt is alive: `life`. How the queue is shown: `view`. What it was last seen to do: `last_seen`.

mod attempt;
mod engine;
mod host;
mod last_seen;
mod life;
mod place;
mod view;

pub use attempt::{PAUSE_ENV, PAUSED, RESUMED, supervise, tell_supervisor};
pub use engine::{EngineNotice, EngineSetup, call_engine, is_engine_there, run_engine};
pub use host::{HostPlace, Turn};
pub use last_seen::LastSeen;
pub use place::{AttemptFiles, queue_home, remove_attempts};
pub use view::{view, view_of};
