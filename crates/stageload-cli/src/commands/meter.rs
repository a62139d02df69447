//! `stageload meter`: what a process tree or the machine holds, look after look. It only looks.

use std::io;
use std::time::{Duration, Instant};

use stageload::core::{Reading, Record, Span};
use stageload::{Error, LiveMeter, Watch, Woken, utc_time};

use crate::failure::Failure;
use crate::output;
use crate::screen::Screen;
use crate::view::{Canvas, History, frame, line};

/// A look takes a part of this on a machine with many processes.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// Nobody waits longer for a second look.
const MOST_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Ctrl-C is how a display is left, and no failure.
const SIGINT: i32 = 2;

/// Show what a process tree or the whole machine holds, live
///
/// On a terminal it draws one view over and over; elsewhere it prints a line a look. It changes
/// nothing and signals nobody. Exit codes: 0, also when the process ends or the reader goes away; 1
/// when there is no such process or it may not be looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The process to follow, with its descendants
    #[arg(
        long, value_name = "PID", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pid: Option<i32>,

    /// The whole machine (the default)
    #[arg(long, conflicts_with = "pid")]
    system: bool,

    /// Time from one look to the next, at least 20ms
    #[arg(
        long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true,
        value_parser = interval
    )]
    interval: Span,

    /// Print each look as a `sample` record of a trace, one line of JSON
    #[arg(long)]
    json: bool,

    /// Look once (the same as --count 1)
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// End after so many looks
    #[arg(
        long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    count: Option<u64>,
}

/// Where the looks go.
enum Show {
    Json,
    Lines(History),
    Screen { history: History, screen: Screen, is_colored: bool },
}

/// Why no more looks are taken.
enum Over {
    Counted,
    Ended,
    Left,
    Signaled(i32),
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let mut meter = args.pid.map_or_else(|| Ok(LiveMeter::system()), LiveMeter::of)?;
    let mut show = args.show(&meter);
    let watch = match show {
        Show::Screen { .. } if !args.once => Watch::with_signals(&meter)?,
        _ => Watch::of(&meter)?,
    };
    let over = args.look_on(&mut meter, &mut show, &watch)?;
    // Gives the cursor back.
    drop(show);
    match over {
        Over::Counted | Over::Left | Over::Signaled(SIGINT) => Ok(0),
        Over::Signaled(signal) => Ok(128 + signal),
        Over::Ended => {
            let pid = meter.root().map_or(0, |root| root.pid);
            output::log(&format!("meter: pid {pid} has ended"));
            Ok(0)
        }
    }
}

impl Args {
    fn show(&self, meter: &LiveMeter) -> Show {
        if self.json {
            return Show::Json;
        }
        let history = History::of(meter);
        if !Screen::is_there() {
            return Show::Lines(history);
        }
        let is_colored = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Show::Screen { history, screen: Screen::default(), is_colored }
    }

    fn look_on(
        &self,
        meter: &mut LiveMeter,
        show: &mut Show,
        watch: &Watch,
    ) -> Result<Over, Failure> {
        let count = if self.once { Some(1) } else { self.count };
        let mut next = Instant::now();
        for n in 1.. {
            let reading = meter.look();
            if meter.has_ended() {
                // Whoever asked for readings must not take none for an answer.
                return if n > 1 { Ok(Over::Ended) } else { Err(nobody(meter)) };
            }
            match show.look(meter, reading) {
                Err(error) if is_gone(&error) => return Ok(Over::Left),
                shown => shown.map_err(|error| output::unwritable(&error))?,
            }
            if count == Some(n) {
                break;
            }
            // After a look that took too long, or a sleep, looks are not made up for.
            next = (next + self.interval.0).max(Instant::now());
            match watch.wait(next.saturating_duration_since(Instant::now())) {
                Some(Woken::ByEnd) => return Ok(Over::Ended),
                Some(Woken::BySignal(signal)) => return Ok(Over::Signaled(signal)),
                Some(Woken::BySuspend) => show.suspend(watch),
                None => {}
            }
        }
        Ok(Over::Counted)
    }
}

impl Show {
    fn look(&mut self, meter: &LiveMeter, reading: Reading) -> io::Result<()> {
        let command_line = |pid| meter.command_line(pid);
        match self {
            Self::Json => output::stream(&json(reading)?),
            Self::Lines(history) => {
                history.push(reading, |_| None);
                output::stream(&format!("{} {}\n", utc_time(), line(history)))
            }
            Self::Screen { history, screen, is_colored } => {
                history.push(reading, command_line);
                let size = Screen::size();
                let canvas = Canvas { width: size.columns, is_colored: *is_colored };
                screen.draw(&frame(history, canvas), size)
            }
        }
    }

    fn suspend(&mut self, watch: &Watch) {
        if let Self::Screen { screen, .. } = self {
            screen.release();
        }
        watch.suspend();
    }
}

fn json(reading: Reading) -> io::Result<String> {
    Ok(serde_json::to_string(&Record::Sample(reading))? + "\n")
}

fn nobody(meter: &LiveMeter) -> Failure {
    Error::NoProcess { pid: meter.root().map_or(0, |root| root.pid) }.into()
}

/// The reader closed its pipe, or the terminal is gone.
fn is_gone(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(EIO)
}

fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if (LEAST_INTERVAL..=MOST_INTERVAL).contains(&span.0) {
        Ok(span)
    } else {
        Err("must be from 20ms to 24h".to_owned())
    }
}
