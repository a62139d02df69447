//! `stageload watch`: the queue, live, on a terminal; elsewhere a line a change.

use std::thread::sleep;
use std::time::Duration;

use stageload::core::queue::JobId;
use stageload::queue::view;
use stageload::wire::QueueView;

use super::{Queue, job_id, list};
use crate::failure::Failure;
use crate::output;
use crate::screen::Screen;

/// Between two looks.
const TURN: Duration = Duration::from_millis(500);
/// How many that are over are shown below those that are not.
const HISTORY: usize = 5;

/// Watch the queue, or one job until it is over
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job; the whole queue, until Ctrl-C, if absent
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let queue = Queue::open()?;
    if let Some(id) = args.job {
        queue.store.job(id)?.ok_or(stageload::Error::NoJob { id })?;
    }
    let mut screen = Screen::is_there().then(Screen::default);
    let mut told = String::new();
    loop {
        let mut view = view(&queue.home, &queue.store, None, HISTORY)?;
        if let Some(id) = args.job {
            only(&mut view, &queue, id)?;
        }
        let text = list::as_text(&view);
        let shown = match &mut screen {
            Some(screen) => screen.draw(&text, Screen::size()),
            None if text != told => output::stream(&text),
            None => Ok(()),
        };
        if let Err(error) = shown {
            return if error.kind() == std::io::ErrorKind::BrokenPipe {
                Ok(0)
            } else {
                Err(output::unwritable(&error))
            };
        }
        told = text;
        let goes_on = view.jobs.iter().any(|job| job.is_active || job.state == "queued");
        if args.job.is_some() && !goes_on {
            return Ok(0);
        }
        sleep(TURN);
    }
}

/// One job, wherever it stands.
fn only(view: &mut QueueView, queue: &Queue, id: JobId) -> Result<(), Failure> {
    view.jobs.retain(|job| job.id == id);
    view.history.clear();
    if view.jobs.is_empty() {
        view.history.push(stageload::queue::view_of(&queue.home, &queue.store, id)?);
    }
    Ok(())
}
