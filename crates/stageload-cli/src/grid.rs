//! Cells on paper: text in columns for a terminal, or a table of GitHub's Markdown. What stands in
//! the cells is in `table.rs`.

use unicode_width::UnicodeWidthStr;

/// Between two columns.
const GAP: usize = 2;

/// What a table is printed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paper {
    /// A terminal: letters as wide as each other, or twice as wide.
    Text,
    /// GitHub.
    Markdown,
}

/// A table. The first column holds names, the others numbers.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Names over groups of columns after the first, and how many columns each covers.
    pub(crate) groups: Vec<(String, usize)>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) total: Vec<String>,
}

impl Paper {
    /// A line of its own.
    pub(crate) fn line(self, text: &str) -> String {
        match self {
            Self::Text => format!("{text}\n"),
            Self::Markdown => format!("{}  \n", escaped(text)),
        }
    }

    /// Between a table and the lines around it.
    pub(crate) const fn gap(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::Markdown => "\n",
        }
    }
}

impl Grid {
    pub(crate) fn on(&self, paper: Paper) -> String {
        match paper {
            Paper::Text => self.text(),
            Paper::Markdown => self.markdown(),
        }
    }

    fn text(&self) -> String {
        let widths = self.widths();
        let rule = "-".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)) + "\n";
        let rows: String = self.rows.iter().map(|row| line(row, &widths)).collect();
        let (names, header) = (self.names(&widths), line(&self.header, &widths));
        names + &header + &rule + &rows + &rule + &line(&self.total, &widths)
    }

    /// Wide enough for every cell, and for the name of its group.
    fn widths(&self) -> Vec<usize> {
        let lines = || self.rows.iter().chain([&self.header, &self.total]);
        let widest =
            |i: usize| lines().filter_map(|row| row.get(i)).map(|cell| cell.as_str().width()).max();
        let mut widths: Vec<usize> =
            (0..self.header.len()).map(|i| widest(i).unwrap_or(0)).collect();
        let mut first = 1;
        for (name, columns) in &self.groups {
            let covered = &mut widths[first..first + columns];
            let has = covered.iter().sum::<usize>() + GAP * (columns - 1);
            covered[0] += name.width().saturating_sub(has);
            first += columns;
        }
        widths
    }

    fn names(&self, widths: &[usize]) -> String {
        if self.groups.is_empty() {
            return String::new();
        }
        let mut text = " ".repeat(widths[0]);
        let mut first = 1;
        for (name, columns) in &self.groups {
            let covered = &widths[first..first + columns];
            let width = covered.iter().sum::<usize>() + GAP * (columns - 1);
            text += &" ".repeat(GAP + width - name.width());
            text += name;
            first += columns;
        }
        text + "\n"
    }

    fn markdown(&self) -> String {
        let mut header = self.header.clone();
        let owners = self.groups.iter().flat_map(|(name, n)| std::iter::repeat_n(name, *n));
        for (cell, name) in header.iter_mut().skip(1).zip(owners) {
            *cell = format!("{name}: {cell}");
        }
        let sides = format!("|---|{}\n", "---:|".repeat(header.len() - 1));
        let rows: String = self.rows.iter().chain([&self.total]).map(|row| piped(row)).collect();
        piped(&header) + &sides + &rows
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
        let space = " ".repeat(width.saturating_sub(cell.width()));
        // Names stand left, numbers right.
        let (before, after) =
            if i == 0 { (String::new(), space) } else { (" ".repeat(GAP) + &space, String::new()) };
        text.extend([&before, cell, &after].map(String::as_str));
    }
    text.trim_end().to_owned() + "\n"
}

fn piped(row: &[String]) -> String {
    let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Names come from the job, which may write anything.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(name: &str) -> Grid {
        let words = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let rows = vec![words([name, "1.0"]), words(["b", "10.0"])];
        let (header, total) = (words(["stage", "seconds"]), words(["total", "11.0"]));
        Grid { groups: Vec::new(), header, rows, total }
    }

    #[test]
    fn letters_that_are_two_columns_wide_keep_the_table_straight() {
        let text = grid("デコード段").on(Paper::Text);
        let widths: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
        assert_eq!(widths, [19; 6], "{text}");
    }

    #[test]
    fn a_group_with_a_long_name_has_room_for_it() {
        let groups = vec![("a-rather-long-name".to_owned(), 1)];
        let text = Grid { groups, ..grid("a") }.on(Paper::Text);
        assert!(
            text.starts_with("       a-rather-long-name\nstage             seconds\n"),
            "{text}"
        );
    }

    #[test]
    fn a_stage_cannot_write_into_the_markdown_around_it() {
        let text = grid("a|b<img>\n").on(Paper::Markdown);
        assert!(text.contains("| a\\|b&lt;img&gt;  | 1.0 |\n"), "{text}");
        assert!(text.starts_with("| stage | seconds |\n|---|---:|\n"), "{text}");
    }
}
