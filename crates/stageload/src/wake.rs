//! What ends the wait for the next look early: the job's end, or a signal to the guard.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::Error;
use crate::sys::{self, SignalPipe};

/// Told to end. SIGTSTP is caught to have no effect: a guard that Ctrl-Z stopped guards nothing.
const SIGNALS: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP];

/// Something other than time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The job's leader has ended and waits to be reaped.
    Ended,
    /// The guard got this signal.
    Signal(i32),
}

/// Where wakes arrive.
#[derive(Debug)]
pub(crate) struct Wakes {
    sender: Sender<Wake>,
    receiver: Receiver<Wake>,
    _signals: SignalPipe,
}

impl Wakes {
    pub(crate) fn listen() -> Result<Self, Error> {
        let (signals, mut pipe) = SignalPipe::open(&SIGNALS)
            .map_err(|source| Error::System { doing: "listen for signals", source })?;
        let (sender, receiver) = channel();
        let to_guard = sender.clone();
        spawn("stageload-signals", move || {
            let mut byte = [0];
            while pipe.read_exact(&mut byte).is_ok() {
                let signal = i32::from(byte[0]);
                if signal != libc::SIGTSTP && to_guard.send(Wake::Signal(signal)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { sender, receiver, _signals: signals })
    }

    /// Has `Wake::Ended` sent when the child ends.
    pub(crate) fn watch_child(&self, pid: i32) -> Result<(), Error> {
        let to_guard = self.sender.clone();
        spawn("stageload-child", move || {
            sys::wait_for_exit(pid);
            // Nobody listens any more when the guard itself has reaped the child.
            to_guard.send(Wake::Ended).ok();
        })
    }

    /// The next wake within `time`, or None.
    pub(crate) fn wait(&self, time: Duration) -> Option<Wake> {
        self.receiver.recv_timeout(time).ok()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .map_err(|source| Error::System { doing: "start a thread", source })
}
