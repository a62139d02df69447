//! Bars and sparklines out of block characters.

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The newest of `values` at the right end of so many columns, `most` being full. What is unknown is
/// a space; a known 0 is not.
pub(super) fn spark(values: &[Option<f64>], most: f64, columns: usize) -> String {
    let step = |value: f64| {
        let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        STEPS[(share * (STEPS.len() - 1) as f64).round() as usize]
    };
    let shown = &values[values.len().saturating_sub(columns)..];
    let blocks = shown.iter().map(|value| value.map_or(' ', step));
    " ".repeat(columns - shown.len()) + &blocks.collect::<String>()
}

/// A bar that is full to `share`, to an eighth of a column; blank where that is unknown.
pub(super) fn bar(share: Option<f64>, columns: usize) -> String {
    let Some(share) = share else { return " ".repeat(columns) };
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * columns as f64).round() as usize;
    let (full, rest) = (eighths / 8, eighths % 8);
    let part: String = rest.checked_sub(1).map(|i| EIGHTHS[i]).into_iter().collect();
    let empty = columns - full - usize::from(rest > 0);
    "█".repeat(full) + &part + &"░".repeat(empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_ends_with_the_newest_look_and_leaves_out_the_unknown() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0), Some(999.0)];
        assert_eq!(spark(&values, 100.0, 7), "  ▁▅ ██");
        assert_eq!(spark(&values, 100.0, 2), "██");
        assert_eq!(spark(&[Some(0.0)], 0.0, 1), "▁", "nothing of nothing");
        assert_eq!(spark(&[], 1.0, 3), "   ");
    }

    #[test]
    fn a_bar_is_full_to_an_eighth_of_a_column() {
        assert_eq!(bar(Some(0.5), 4), "██░░");
        assert_eq!(bar(Some(0.53), 4), "██▏░");
        assert_eq!((bar(Some(0.0), 3), bar(Some(7.0), 3)), ("░░░".into(), "███".into()));
        assert_eq!(bar(None, 3), "   ", "unknown is not empty");
        assert_eq!(bar(Some(1.0), 0), "");
    }
}
