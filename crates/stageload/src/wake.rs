//! What ends the wait for the next look early: the job's end, a signal to the guard, or the
//! system's word that memory is short.

use std::io::{PipeReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::sys::{self, Change, Grip, SignalPipe};

/// What tells this process to end, and SIGTSTP, which is not to stop it unawares.
pub(crate) const SIGNALS: [i32; 5] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP];

/// Something other than time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The job's leader has ended and waits to be reaped.
    Ended,
    /// The job's leader was stopped, as by Ctrl-Z.
    Suspended,
    /// The guard is asked to stand still: Ctrl-Z in a pipeline, or while it waits for room.
    CtrlZ,
    /// The system says that memory is getting short: time for a look.
    Pressure,
    /// The guard got this signal.
    Signal(i32),
}

/// The guard that gets the signals now. The pipe they come through and the thread that reads it
/// live as long as the process.
struct Listener {
    guard: Option<Sender<Wake>>,
    has_thread: bool,
}

static LISTENER: Mutex<Listener> = Mutex::new(Listener { guard: None, has_thread: false });

fn lock_listener() -> MutexGuard<'static, Listener> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forward(mut pipe: &PipeReader) {
    let mut byte = [0];
    while pipe.read_exact(&mut byte).is_ok() {
        let wake = match i32::from(byte[0]) {
            libc::SIGTSTP => Wake::CtrlZ,
            signal => Wake::Signal(signal),
        };
        if let Some(guard) = &lock_listener().guard {
            // A guard that is done listens no more.
            guard.send(wake).ok();
        }
    }
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
        sys::survive_file_limits();
        let (sender, receiver) = channel();
        let mut listener = lock_listener();
        let (signals, pipe) = SignalPipe::open(&SIGNALS)
            .map_err(|source| Error::System { doing: "listen for signals", source })?;
        if !listener.has_thread {
            spawn("stageload-signals", move || forward(pipe))?;
            listener.has_thread = true;
        }
        listener.guard = Some(sender.clone());
        Ok(Self { sender, receiver, _signals: signals })
    }

    /// A thread that is ready to wait for a child that is not there yet.
    pub(crate) fn child_watcher(&self) -> Result<ChildWatcher, Error> {
        let to_guard = self.sender.clone();
        let (to_watcher, child) = channel();
        spawn("stageload-child", move || {
            // Without a number the child was never started.
            let Ok(pid) = child.recv() else { return };
            while sys::wait_for_change(pid) == Change::Stopped {
                to_guard.send(Wake::Suspended).ok();
            }
            // Nobody listens any more when the guard itself has reaped the child.
            to_guard.send(Wake::Ended).ok();
        })?;
        Ok(ChildWatcher(to_watcher))
    }

    /// Has `Wake::Ended` sent when a process that is nobody's child here is over.
    pub(crate) fn watch_stranger(&self, process: Grip) -> Result<(), Error> {
        let to_guard = self.sender.clone();
        spawn("stageload-stranger", move || {
            process.wait();
            to_guard.send(Wake::Ended).ok();
        })
    }

    /// Sends `Wake::Ended` for a job that was over before anybody watched it.
    pub(crate) fn wake_ended(&self) {
        self.sender.send(Wake::Ended).ok();
    }

    /// Has `Wake::Pressure` sent from now on, where the system says such a thing.
    pub(crate) fn watch_pressure(&self) {
        let to_guard = self.sender.clone();
        // Without it the looks come at their own pace.
        sys::on_pressure(move || {
            to_guard.send(Wake::Pressure).ok();
        })
        .ok();
    }

    /// The next wake within `time`, or None.
    pub(crate) fn wait(&self, time: Duration) -> Option<Wake> {
        self.receiver.recv_timeout(time).ok()
    }
}

/// Started before the child, so that no failure can leave a child that nobody watches.
#[derive(Debug)]
pub(crate) struct ChildWatcher(Sender<i32>);

impl ChildWatcher {
    /// Has `Wake::Ended` sent when this child ends.
    pub(crate) fn watch(self, pid: i32) {
        // The thread waits for nothing else.
        self.0.send(pid).ok();
    }
}

/// A thread that ends by itself.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .map_err(|source| Error::System { doing: "start a thread", source })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[expect(unsafe_code, reason = "std sends no signals")]
    fn hang_up() {
        // SAFETY: raise takes a number and touches no memory.
        unsafe { libc::raise(libc::SIGHUP) };
    }

    // One test, because one process has one listener at a time.
    #[test]
    fn a_second_guard_hears_signals_and_the_end_of_its_child_as_the_first_did() {
        for _ in 0..2 {
            let wakes = Wakes::listen().unwrap();
            hang_up();
            assert_eq!(wakes.wait(SOON), Some(Wake::Signal(libc::SIGHUP)));
            let watcher = wakes.child_watcher().unwrap();
            let mut child = Command::new("true").spawn().unwrap();
            watcher.watch(child.id() as i32);
            assert_eq!(wakes.wait(SOON), Some(Wake::Ended));
            child.wait().unwrap();
            drop(wakes.child_watcher().unwrap());
            assert_eq!(wakes.wait(Duration::from_millis(50)), None, "never started, never ended");
        }
    }
}
