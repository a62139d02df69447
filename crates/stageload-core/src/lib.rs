//! What Stageload decides. Plain data in, plain data out: no clock, no files, no threads.
#![forbid(unsafe_code)]

mod event;
mod units;

pub use event::{EVENTS_ENV, Event, EventKind};
pub use units::Bytes;
