//! A part of the terminal that is drawn over again and again, below what was there before. No
//! alternate screen: the last frame stays when the display is over.

use std::fmt::Write;
use std::io::{self, IsTerminal};

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::UnicodeWidthChar;

use crate::output;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Before the line is written: behind a full one the cursor still stands on the last character.
const CLEAR_LINE: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Of a terminal that does not say.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// How large the terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// What is drawn over. The cursor is hidden while frames come, and shown when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// How wide each line of the last frame is.
    drawn: Vec<usize>,
    is_hidden: bool,
}

impl Screen {
    /// Whether standard output is a terminal on which a frame can be drawn over.
    pub(crate) fn is_there() -> bool {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        io::stdout().is_terminal() && !is_dumb
    }

    /// As it is now.
    pub(crate) fn size() -> Size {
        let known = |(Width(columns), Height(rows))| Size {
            columns: usize::from(columns),
            rows: usize::from(rows),
        };
        let said = terminal_size_of(io::stdout()).map(known);
        said.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(USUAL)
    }

    /// Replaces the last frame.
    pub(crate) fn draw(&mut self, frame: &str, size: Size) -> io::Result<()> {
        let text = self.redrawn(frame, size);
        self.is_hidden = true;
        output::stream(&text)
    }

    /// Leaves the last frame where it is and gives the cursor back; the next goes below.
    pub(crate) fn release(&mut self) {
        self.drawn.clear();
        if std::mem::take(&mut self.is_hidden) {
            // A terminal that is gone has no cursor either.
            output::stream(SHOW_CURSOR).ok();
        }
    }

    /// In one piece, so that nothing flickers. More lines than fit could not be drawn over.
    fn redrawn(&mut self, frame: &str, size: Size) -> String {
        let up = height(&self.drawn, size.columns).min(size.rows - 1);
        let mut text = HIDE_CURSOR.to_owned();
        if up > 0 {
            let _ = write!(text, "\x1b[{up}A\r");
        }
        self.drawn.clear();
        for line in frame.lines().take(size.rows - 1) {
            let _ = writeln!(text, "{CLEAR_LINE}{line}");
            self.drawn.push(columns(line));
        }
        text + CLEAR_BELOW
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.release();
    }
}

/// How many rows lines take that were drawn when the terminal may have been wider.
fn height(lines: &[usize], columns: usize) -> usize {
    lines.iter().map(|line| line.div_ceil(columns).max(1)).sum()
}

/// How wide what is seen of a line is.
fn columns(line: &str) -> usize {
    let mut is_seen = true;
    let seen = |c: &char| {
        let was_seen = is_seen;
        match *c {
            '\x1b' => is_seen = false,
            'm' if !was_seen => is_seen = true,
            _ => return was_seen,
        }
        false
    };
    line.chars().filter(seen).filter_map(UnicodeWidthChar::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before() {
        let mut screen = Screen::default();
        let size = Size { columns: 10, rows: 5 };
        assert_eq!(screen.redrawn("a\nb\n", size), "\x1b[?25l\x1b[2Ka\n\x1b[2Kb\n\x1b[J");
        assert_eq!(screen.redrawn("c\n", size), "\x1b[?25l\x1b[2A\r\x1b[2Kc\n\x1b[J");
    }

    #[test]
    fn a_frame_is_cut_where_it_could_not_be_drawn_over() {
        let mut screen = Screen::default();
        let text = screen.redrawn("1\n2\n3\n4\n", Size { columns: 10, rows: 3 });
        assert_eq!(text.matches('\n').count(), 2);
        assert_eq!(screen.redrawn("", Size { columns: 10, rows: 1 }), "\x1b[?25l\x1b[J");
    }

    #[test]
    fn lines_that_wrapped_because_the_window_shrank_are_drawn_over_too() {
        let mut screen = Screen::default();
        screen.redrawn("\x1b[2m12345678\x1b[0m\n\nx\n", Size { columns: 10, rows: 24 });
        assert_eq!(screen.drawn, [8, 0, 1]);
        let text = screen.redrawn("x\n", Size { columns: 4, rows: 24 });
        assert!(text.contains("\x1b[4A"), "{text:?}");
        screen.redrawn("図書館\n", Size { columns: 10, rows: 24 });
        assert_eq!(screen.drawn, [6], "wide letters wrap sooner");
    }
}
