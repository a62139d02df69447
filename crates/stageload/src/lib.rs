//! What Stageload does: reads memory, starts and stops jobs, writes traces.
//!
//! [`run`] takes a [`Job`] and an [`Observer`] and returns an [`Outcome`]. What is decided on the
//! way (whether there is room, when to stop) is decided in `stageload_core`, which is re-exported
//! as [`core`]. [`LiveMeter`] only looks. [`load_trace`] reads a trace back, [`chart()`] draws it. Nothing here
//! prints.
//!
//! ```no_run
//! use stageload::core::{Bytes, Grace, Percent, Policy, RoomPolicy};
//! use stageload::{Job, OnGuardDeath, Silent, run};
//! use std::time::Duration;
//!
//! let budget = Bytes::gib(8);
//! let job = Job {
//!     command: vec!["python".into(), "generate.py".into()],
//!     env: Vec::new(),
//!     room: RoomPolicy {
//!         wait_free: Percent::new(40).unwrap_or_default(),
//!         swap_budget: budget,
//!         swap_limit: None,
//!         need: None,
//!         quiet_for: Duration::ZERO,
//!         start_timeout: Duration::from_secs(1800),
//!     },
//!     policy: Policy {
//!         limit: Some(Bytes::gib(20)),
//!         swap_budget: budget,
//!         swap_limit: None,
//!         kill_free: Percent::new(10).unwrap_or_default(),
//!         poll: Duration::from_secs(1),
//!     },
//!     busy: Vec::new(),
//!     grace: Grace::Auto,
//!     on_guard_death: OnGuardDeath::Stop,
//!     warden: None,
//!     dry_run: false,
//!     trace: Some("trace.jsonl".into()),
//!     reason: None,
//!     events: None,
//!     token: None,
//!     meta: Default::default(),
//! };
//! let outcome = run(&job, &mut Silent)?;
//! std::process::exit(outcome.exit_code());
//! # Ok::<(), stageload::Error>(())
//! ```

mod busy;
mod chart;
mod error;
#[cfg(all(test, target_os = "linux"))]
mod fake_proc;
mod gate;
mod job;
mod leader;
mod line;
mod live_meter;
mod logs;
mod meter;
mod notice;
mod others;
pub mod presets;
pub mod queue;
mod reason;
mod running;
mod stand_by;
pub mod store;
mod supervisor;
mod sys;
mod tail;
mod thinning;
mod trace_file;
mod utc;
mod wake;
mod warden;
mod watch;
pub mod wire;

use std::process::Command;

pub use stageload_core as core;

pub use chart::chart;
pub use error::Error;
pub use job::{JOB_ENV, Job, OnGuardDeath, Outcome, Signalled, Stop};
pub use live_meter::LiveMeter;
pub use logs::{Log, read_log};
pub use notice::{Notice, Observer, Silent};
pub use others::Grown;
pub use stand_by::stand_by;
pub use supervisor::run;
pub use sys::ProcessId;
pub use trace_file::load_trace;
pub use utc::{utc_date_time, utc_time};
pub use watch::{Watch, Woken};

/// Reads these bytes as each of the files that the meter reads from `/proc`.
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub fn read_any_proc_file(raw: &[u8]) {
    sys::read_anything(raw);
}

/// Replaces this process by the command; returns only if that fails.
pub fn become_program(command: &mut Command) -> std::io::Error {
    sys::become_program(command)
}
