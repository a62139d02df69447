//! Lines that are never wider than their terminal: one that wraps would leave its start behind when
//! it is drawn over.

use stageload::core::printable;

/// How a piece of text looks, where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

impl Style {
    const fn code(self) -> Option<u8> {
        match self {
            Self::Plain => None,
            Self::Bold => Some(1),
            Self::Dim => Some(2),
            Self::Green => Some(32),
            Self::Yellow => Some(33),
            Self::Red => Some(31),
        }
    }
}

/// One line in the making.
#[derive(Debug)]
pub(super) struct Line {
    width: usize,
    filled: usize,
    is_cut: bool,
    pieces: Vec<(String, Style)>,
}

impl Line {
    pub(super) const fn new(width: usize) -> Self {
        Self { width, filled: 0, is_cut: false, pieces: Vec::new() }
    }

    /// Adds as much as there is room for; an ellipsis says that there was more.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if self.is_cut {
            return;
        }
        let room = self.width.saturating_sub(self.filled);
        let mut piece: String = printable(text).collect();
        self.is_cut = width_of(&piece) > room;
        if self.is_cut {
            piece = cut(piece.trim_end(), room);
        }
        self.filled += width_of(&piece);
        self.pieces.push((piece, style));
    }

    /// Gives more room, for what follows a piece that had to stay short.
    pub(super) fn widen(&mut self, width: usize) {
        self.width = width;
        self.is_cut = false;
    }

    pub(super) fn pad_to(&mut self, column: usize) {
        let blanks = column.min(self.width).saturating_sub(self.filled);
        self.push(&" ".repeat(blanks), Style::Plain);
    }

    pub(super) fn paint(&self, is_colored: bool) -> String {
        let painted = |(text, style): &(String, Style)| match style.code().filter(|_| is_colored) {
            Some(code) if !text.trim().is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.clone(),
        };
        self.pieces.iter().map(painted).collect::<String>().trim_end().to_owned()
    }
}

/// What fits into `room` columns, an ellipsis included if something does not.
fn cut(text: &str, room: usize) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut filled = 1;
    let fits = |c: &char| {
        filled += columns(*c);
        filled <= room
    };
    let kept: String = text.chars().take_while(fits).collect();
    if room > 0 { kept + "…" } else { kept }
}

fn width_of(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// At most so many columns: what is neither of an alphabet nor one of our own blocks may be wide.
const fn columns(c: char) -> usize {
    match c {
        '\0'..'\u{1100}' | '\u{2000}'..='\u{25ff}' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(text: &str, width: usize) -> String {
        let mut line = Line::new(width);
        line.push(text, Style::Plain);
        line.paint(false)
    }

    #[test]
    fn what_is_too_long_ends_in_an_ellipsis_and_never_over_the_edge() {
        assert_eq!(fitted("python3", 7), "python3");
        assert_eq!(fitted("python3", 6), "pytho…");
        assert_eq!(fitted("ab    ", 3), "ab", "blanks are no loss");
        assert_eq!(fitted("図書館", 6), "図書館");
        assert_eq!(fitted("図書館", 5), "図書…");
        assert_eq!((fitted("abc", 1), fitted("abc", 0)), ("…".into(), String::new()));
    }

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        let mut line = Line::new(20);
        line.push("swap", Style::Dim);
        line.push("  ", Style::Red);
        line.push("5", Style::Red);
        assert_eq!(line.paint(false), "swap  5");
        assert_eq!(line.paint(true), "\x1b[2mswap\x1b[0m  \x1b[31m5\x1b[0m");
    }
}
