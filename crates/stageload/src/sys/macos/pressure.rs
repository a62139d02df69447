//! Word of memory pressure.
//!
//! The kernel tells processes one at a time, the largest unimportant one first, and never one with
//! a footprint below 10 MB (XNU 15.4, `kern_memorystatus_notify.c`). A guard is smaller than that, so the
//! level is also looked at. Not here: what to do about it.

use std::io;
use std::thread;
use std::time::Duration;

use stageload_core::Pressure;

use super::gauges;
use super::queue::{Queue, Woken};

/// Of `sys/event.h`; libc has none of them.
const EVFILT_MEMORYSTATUS: i16 = -14;
const NORMAL: u32 = 1;
const WARN: u32 = 2;
const CRITICAL: u32 = 4;

/// Two reads of one number a second cost nothing that can be seen, and a guard that samples faster
/// than this sees the level by itself.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Calls `tell`, from a thread of its own that lives as long as the process, each time the system
/// says that memory is short, or shorter than before.
pub(crate) fn on_pressure(tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let queue = Queue::for_one(0, EVFILT_MEMORYSTATUS, NORMAL | WARN | CRITICAL)?;
    thread::Builder::new().name("pressure".into()).spawn(move || watch(&queue, tell))?;
    Ok(())
}

fn watch(queue: &Queue, tell: impl Fn()) {
    let mut before = gauges::pressure();
    loop {
        let woken = queue.wait(Some(LOOK_EVERY)).unwrap_or_else(|_| {
            thread::sleep(LOOK_EVERY);
            Woken::ByNothing
        });
        let now = gauges::pressure();
        let is_high = now.is_some_and(|now| now > Pressure::Normal);
        if is_high && (woken == Woken::ByEvent || now > before) {
            tell();
        }
        before = now;
    }
}
