//! What Stageload decides. Plain data in, plain data out: no clock, no files, no threads.
//!
//! A [`Reading`] is one look at the job and the machine. [`Room`] decides from looks when a job
//! may start, [`Guard`] when it must stop. A trace is a list of [`Record`]s; [`summarize`] says
//! what it amounts to. Sizes are [`Bytes`], and `now` is always an argument.
#![forbid(unsafe_code)]

mod escalation;
mod event;
mod guard;
mod moment;
pub mod queue;
mod reading;
mod recovery;
mod replay;
mod room;
mod span;
mod summary;
#[cfg(test)]
mod testing;
mod trace;
mod tripped;
mod units;

pub use escalation::{Escalation, Grace, Step};
pub use event::{EVENTS_ENV, Event, EventKind, PAUSE_ENV, PAUSED, RESUMED, printable};
pub use guard::{Baseline, Blame, Breach, Forecast, Guard, Policy, Reason, Verdict, Warning};
pub use moment::Moment;
pub use reading::{Member, Pressure, Reading};
pub use recovery::{Recovery, Return};
pub use replay::{Decision, first_swap, replay};
pub use room::{Crowd, Entry, Room, RoomPolicy, Want};
pub use span::Span;
pub use summary::{Failure, Loads, Releases, StageUse, Summary, SwapUse, summarize};
pub use trace::{BadLine, End, Record, read_trace};
pub use tripped::Tripped;
pub use units::{Bytes, Percent, UnitError};
