//! The names of the stages over a plot: each in the lowest row that has room for it, with a thin
//! line down to its stage, so that stages too short for their names are named as well.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::svg::escaped;
use super::{LEFT, RIGHT, WIDTH};

/// Height of a row of names.
pub(super) const ROW: f64 = 15.0;
/// More rows than this nobody reads; what finds no room in them is in the tooltip only.
const MOST_ROWS: usize = 12;
/// Width of a letter, and twice of a wide one.
const LETTER: f64 = 7.4;
const LONGEST: usize = 24;
const GAP: f64 = 10.0;

/// Names with their places.
pub(super) struct Labels<'a> {
    placed: Vec<Label<'a>>,
}

struct Label<'a> {
    name: &'a str,
    /// Where its stage is.
    middle: f64,
    x: f64,
    row: usize,
}

impl<'a> Labels<'a> {
    /// Of names and the middles of their stages, from left to right.
    pub(super) fn of(stages: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let mut free_from: Vec<f64> = Vec::new();
        let mut placed = Vec::new();
        for (name, middle) in stages {
            let width = width(name);
            let x = (middle - width / 2.0).min(WIDTH - RIGHT - width).max(LEFT);
            let row = free_from.iter().position(|free| *free <= x).unwrap_or(free_from.len());
            if row == MOST_ROWS {
                continue;
            }
            match free_from.get_mut(row) {
                Some(free) => *free = x + width + GAP,
                None => free_from.push(x + width + GAP),
            }
            placed.push(Label { name, middle, x, row });
        }
        Self { placed }
    }

    /// How many rows they take.
    pub(super) fn rows(&self) -> usize {
        self.placed.iter().map(|label| label.row + 1).max().unwrap_or(1)
    }

    /// Over a plot that begins at `above`. All lines lie under all names.
    pub(super) fn draw(&self, svg: &mut String, above: f64) {
        let y = |row: usize| above - 8.0 - ROW * row as f64;
        for Label { middle, row, .. } in self.placed.iter().filter(|label| label.row > 0) {
            let _ = writeln!(
                svg,
                "<path d=\"M{middle:.1} {:.1} V{above}\" stroke=\"#94a3b8\" \
                 stroke-opacity=\"0.7\"/>",
                y(*row) + 3.0
            );
        }
        for Label { name, x, row, .. } in &self.placed {
            let _ = writeln!(
                svg,
                "<text class=\"stage\" x=\"{x:.1}\" y=\"{}\" paint-order=\"stroke\" \
                 stroke=\"#ffffff\" stroke-width=\"3\">{}</text>",
                y(*row),
                escaped(&shortened(name))
            );
        }
    }
}

fn width(name: &str) -> f64 {
    LETTER * shortened(name).width() as f64
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_too_short_for_their_names_are_all_named_and_no_two_names_overlap() {
        let names = ["mask", "structure", "shape_512", "shape_1024", "texture", "decode"];
        let labels = Labels::of(names.iter().zip(0..).map(|(n, i)| (*n, 500.0 + f64::from(i))));
        assert_eq!(labels.placed.len(), names.len());
        for (i, a) in labels.placed.iter().enumerate() {
            for b in labels.placed[i + 1..].iter().filter(|b| b.row == a.row) {
                assert!(a.x + width(a.name) <= b.x, "{} and {}", a.name, b.name);
            }
        }
        assert_eq!(labels.rows(), 6);
    }

    #[test]
    fn names_with_room_stand_in_one_row_inside_of_the_picture() {
        let labels = Labels::of([("setup", LEFT), ("a", 400.0), ("b", WIDTH - RIGHT)].into_iter());
        assert_eq!(labels.rows(), 1);
        assert!(labels.placed[0].x >= LEFT && labels.placed[2].x + width("b") <= WIDTH - RIGHT);
    }
}
