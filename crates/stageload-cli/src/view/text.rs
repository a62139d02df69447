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
        let mut piece = String::new();
        let mut rest = printable(text.trim_end_matches('\n')).peekable();
        while let Some(c) = rest.next() {
            let is_last = rest.peek().is_none();
            let room = self.width.saturating_sub(self.filled);
            if columns(c) > room || (columns(c) == room && !is_last && rest.clone().any(is_ink)) {
                self.is_cut = true;
                if room > 0 {
                    piece.push('…');
                    self.filled += 1;
                }
                break;
            }
            piece.push(c);
            self.filled += columns(c);
        }
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

fn is_ink(c: char) -> bool {
    c != ' '
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

    fn cut(text: &str, width: usize) -> String {
        let mut line = Line::new(width);
        line.push(text, Style::Plain);
        line.paint(false)
    }

    #[test]
    fn what_is_too_long_ends_in_an_ellipsis_and_never_over_the_edge() {
        assert_eq!(cut("python3", 7), "python3");
        assert_eq!(cut("python3", 6), "pytho…");
        assert_eq!(cut("ab    ", 3), "ab", "blanks are no loss");
        assert_eq!(cut("図書館", 6), "図書館");
        assert_eq!(cut("図書館", 5), "図書…");
        assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".into(), String::new()));
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
