//! What a live meter shows, as pure text: a frame for a terminal, a line for anything else. Unknown
//! is a dash, and never 0. Where the text goes is in `screen.rs`.
//!
//! * `history`: the looks so far; `graph`: bars and sparklines; `text`: lines that keep a width

mod graph;
mod history;
#[cfg(test)]
mod tests;
mod text;

use stageload::core::{Bytes, Percent, Pressure, Reading};

use graph::{bar, spark};
pub(crate) use history::History;
use text::{Line, Style};

/// What is not known.
const UNKNOWN: &str = "–";
const LABEL: usize = 11;
const VALUE: usize = 10;
const NOTE: usize = 17;
/// Beside label, value and note, with two spaces on each side.
const AROUND_GRAPH: usize = LABEL + VALUE + NOTE + 4;
/// A narrower graph says nothing, and gets a line of its own.
const LEAST_GRAPH: usize = 20;
/// A wider one makes the eye travel.
const MOST_GRAPH: usize = 80;
/// How many processes are named.
const NAMED: usize = 5;
/// The guard's own floor is 10 %.
const LOW: u8 = 20;
const VERY_LOW: u8 = 10;
/// Less swap than this fills no sparkline.
const LEAST_SWAP: f64 = (1u64 << 30) as f64;

/// How a frame is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    /// In columns.
    pub(crate) width: usize,
    pub(crate) is_colored: bool,
}

/// One figure of the frame.
struct Row {
    label: &'static str,
    value: String,
    graph: Graph,
    note: String,
}

enum Graph {
    None,
    /// Full to this part.
    Bar(Option<f64>),
    /// The last looks, oldest first, and what is full.
    Spark(Vec<Option<f64>>, f64),
}

/// The whole view, a line each for what it says; empty before the first look.
pub(crate) fn frame(history: &History, canvas: Canvas) -> String {
    let Some(reading) = history.last() else { return String::new() };
    let mut lines = vec![header(history, reading, canvas.width)];
    for row in rows(history, reading) {
        lines.extend(row.lines(canvas.width, alarm(reading)));
    }
    if !reading.members.is_empty() {
        lines.push(Line::new(canvas.width));
    }
    for member in reading.members.iter().take(NAMED) {
        let mut line = Line::new(canvas.width);
        line.push(&format!("{:>8}", member.pid), Style::Dim);
        line.push(&format!("{:>13}  ", member.footprint.to_string()), Style::Plain);
        line.push(history.name(member.pid).unwrap_or(UNKNOWN), Style::Plain);
        lines.push(line);
    }
    lines.iter().map(|line| line.paint(canvas.is_colored) + "\n").collect()
}

/// The last look in one line; empty before the first look.
pub(crate) fn line(history: &History) -> String {
    let Some(reading) = history.last() else { return String::new() };
    let said: Vec<String> = rows(history, reading)
        .iter()
        .map(|row| format!("{} {}  {}", row.label.trim(), row.value.trim(), row.note))
        .collect();
    said.join("  ")
}

fn header(history: &History, reading: &Reading, width: usize) -> Line {
    let seconds = reading.t as u64;
    let clock = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let ruler = if width >= AROUND_GRAPH + LEAST_GRAPH { frame_width(width) } else { width };
    let room = ruler.saturating_sub(clock.len() + 2);
    let mut line = Line::new(room);
    line.push(history.title(), Style::Bold);
    line.widen(width);
    line.pad_to(room + 2);
    line.push(&clock, Style::Dim);
    line
}

/// Every figure in its order.
fn rows(history: &History, reading: &Reading) -> [Row; 5] {
    let most = history.peak().map_or(1.0, |peak| peak.0 as f64);
    let swap = history.values(|reading| reading.swap_used);
    let most_swap = swap.iter().flatten().copied().fold(LEAST_SWAP, f64::max);
    let used = history.memory().zip(reading.claimable).map(|(all, free)| all.saturating_sub(free));
    let of = |total: Option<Bytes>| format!("of {}", size(total));
    Row::all([
        (
            history.label(),
            size(history.held(reading)),
            Graph::Spark(history.values(|reading| history.held(reading)), most),
            format!("peak {}", size(history.peak())),
        ),
        ("memory", size(used), Graph::Bar(share(used, history.memory())), of(history.memory())),
        ("swap", size(reading.swap_used), Graph::Spark(swap, most_swap), of(reading.swap_total)),
        (
            "available",
            reading.level.map_or_else(|| UNKNOWN.to_owned(), |level| level.to_string()),
            Graph::Spark(history.levels(), 100.0),
            format!("pressure {}", pressure(reading.pressure)),
        ),
        (
            "compressed",
            size(reading.compressed),
            Graph::None,
            format!("to swap {}", size(reading.to_swap)),
        ),
    ])
}

impl Row {
    fn all<const N: usize>(rows: [(&'static str, String, Graph, String); N]) -> [Self; N] {
        rows.map(|(label, value, graph, note)| Self { label, value, graph, note })
    }

    /// One line, or on a narrow terminal one more for the graph.
    fn lines(&self, width: usize, alarm: Style) -> Vec<Line> {
        let mut line = Line::new(width);
        line.push(&format!("{:<LABEL$}", self.label), Style::Dim);
        line.push(&format!("{:>VALUE$}  ", self.value), Style::Plain);
        let beside = width.saturating_sub(AROUND_GRAPH);
        if beside >= LEAST_GRAPH {
            let columns = beside.min(MOST_GRAPH);
            line.push(&format!("{:<columns$}  ", self.graph.draw(columns)), alarm);
        }
        line.push(&self.note, Style::Dim);
        let mut lines = vec![line];
        if beside < LEAST_GRAPH && !matches!(self.graph, Graph::None) {
            let mut below = Line::new(width);
            below.push(&self.graph.draw(width), alarm);
            lines.push(below);
        }
        lines
    }
}

impl Graph {
    fn draw(&self, columns: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Bar(share) => bar(*share, columns),
            Self::Spark(values, most) => spark(values, *most, columns),
        }
    }
}

fn frame_width(width: usize) -> usize {
    width.min(AROUND_GRAPH + MOST_GRAPH)
}

/// The colour of the graphs: the system's own word, or how little is available.
fn alarm(reading: &Reading) -> Style {
    let level = reading.level.map_or(100, Percent::get);
    match reading.pressure {
        Some(Pressure::Critical) => Style::Red,
        _ if level < VERY_LOW => Style::Red,
        Some(Pressure::Warn) => Style::Yellow,
        _ if level < LOW => Style::Yellow,
        _ => Style::Green,
    }
}

fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| bytes.to_string())
}

fn share(part: Option<Bytes>, whole: Option<Bytes>) -> Option<f64> {
    let (part, whole) = part.zip(whole.filter(|whole| *whole > Bytes::ZERO))?;
    Some(part.0 as f64 / whole.0 as f64)
}

const fn pressure(pressure: Option<Pressure>) -> &'static str {
    match pressure {
        Some(Pressure::Normal) => "normal",
        Some(Pressure::Warn) => "warn",
        Some(Pressure::Critical) => "critical",
        None => UNKNOWN,
    }
}
