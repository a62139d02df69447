//! The wait between two looks of a live meter: it ends early when the process is over, and where
//! asked for, at a signal, so that a display can put the terminal in order first.
//!
//! A guard has a listener of its own (`wake.rs`), and the two share the one pipe that signals come
//! through: not both in one process.

use std::io::{PipeReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::sys::{self, Grip, SignalPipe};
use crate::wake::{SIGNALS, spawn};
use crate::{Error, LiveMeter};

/// What ended a wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The process has ended.
    ByEnd,
    /// This process was told to end, by the signal of this number.
    BySignal(i32),
    /// Ctrl-Z: time for [`Watch::suspend`].
    BySuspend,
}

/// Where a live meter waits.
#[derive(Debug)]
pub struct Watch {
    woken: Receiver<Woken>,
    /// Keeps the channel open where nobody sends.
    sender: Sender<Woken>,
    _signals: Option<SignalPipe>,
}

impl Watch {
    /// Waits that end early when the meter's process does; signals do what they always do.
    pub fn of(meter: &LiveMeter) -> Result<Self, Error> {
        let (sender, woken) = channel();
        if meter.root().is_some() {
            let (grip, sender) = (meter.grip(), sender.clone());
            spawn("stageload-end", move || {
                // None if it is over already.
                grip.iter().for_each(Grip::wait);
                sender.send(Woken::ByEnd).ok();
            })?;
        }
        Ok(Self { woken, sender, _signals: None })
    }

    /// The same, and SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGTSTP end a wait instead of this process,
    /// as long as this lives. One at a time, and not in a process that guards a job.
    pub fn with_signals(meter: &LiveMeter) -> Result<Self, Error> {
        let plain = Self::of(meter)?;
        let (signals, pipe) = SignalPipe::open(&SIGNALS)
            .map_err(|source| Error::System { doing: "listen for signals", source })?;
        let sender = plain.sender.clone();
        spawn("stageload-signals", move || forward(pipe, &sender))?;
        Ok(Self { _signals: Some(signals), ..plain })
    }

    /// Waits for `time`; None when it is over.
    pub fn wait(&self, time: Duration) -> Option<Woken> {
        self.woken.recv_timeout(time).ok()
    }

    /// Stands still until the shell continues this process.
    pub fn suspend(&self) {
        sys::suspend_self();
    }
}

fn forward(mut pipe: &PipeReader, to: &Sender<Woken>) {
    let mut byte = [0];
    while pipe.read_exact(&mut byte).is_ok() {
        let woken = match i32::from(byte[0]) {
            libc::SIGTSTP => Woken::BySuspend,
            signal => Woken::BySignal(signal),
        };
        if to.send(woken).is_err() {
            return;
        }
    }
}
