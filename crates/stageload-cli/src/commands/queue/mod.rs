//! The queue's commands. What is due is decided by the engine in the `stageload` library; these put
//! jobs in, show them, and say what somebody wants of them. All work with no app running.

pub(crate) mod add;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod engine;
pub(crate) mod flags;
pub(crate) mod list;
pub(crate) mod presets;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod watch;
pub(crate) mod what;

use std::path::{Path, PathBuf};

use stageload::core::queue::JobId;
use stageload::queue::{call_engine, queue_home};
use stageload::store::Store;

use crate::failure::Failure;
use crate::output;

/// The queue's folder and the queue.
pub(crate) struct Queue {
    pub(crate) home: PathBuf,
    pub(crate) store: Store,
}

impl Queue {
    pub(crate) fn open() -> Result<Self, Failure> {
        let home = queue_home()?;
        let opened = Store::open(&home)?;
        if let Some(path) = opened.moved_aside {
            let path = path.display();
            output::log(&format!(
                "queue: it was damaged; what could not be read is kept as {path}"
            ));
        }
        Ok(Self { home, store: opened.store })
    }

    /// Has an engine run the queue, if none does.
    pub(crate) fn call_engine(&self) -> Result<(), Failure> {
        Ok(call_engine(&self.home, &engine::command(&self.home)?)?)
    }
}

/// How this very program is started again.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::unavailable(format!("cannot find my own program: {error}")))
}

fn job_id(text: &str) -> Result<JobId, String> {
    match text.parse() {
        Ok(number @ 1..) => Ok(JobId(number)),
        _ => Err("a job has a number from 1 on; `stageload queue` lists them".to_owned()),
    }
}

/// A path as it was meant by whoever typed it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
