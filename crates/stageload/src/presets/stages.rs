//! How a preset's program tells its stages: by itself, through the events file, or by lines of its
//! output that are known.

use regex::Regex;

/// No line that tells a stage is longer; a program may print a megabyte without a line's end.
const LONGEST: usize = 4096;

/// A line of output that says that a stage begins.
#[derive(Debug, Clone)]
pub(super) struct Sign {
    pub(super) stage: String,
    pub(super) line: Regex,
}

/// Reads a program's output for the stages that begin in it.
#[derive(Debug, Clone)]
pub struct StageWatch {
    signs: Vec<Sign>,
    now: Option<usize>,
}

impl StageWatch {
    pub(super) fn new(signs: &[Sign]) -> Option<Self> {
        (!signs.is_empty()).then(|| Self { signs: signs.to_vec(), now: None })
    }

    /// The stage that begins with this line, if one does. A progress bar is one line that was
    /// written over many times; what it says last counts.
    pub fn feed(&mut self, line: &str) -> Option<&str> {
        let found = line.rsplit('\r').find_map(|part| self.stage_of(part))?;
        let is_new = self
            .now
            .replace(found)
            .is_none_or(|before| self.signs[before].stage != self.signs[found].stage);
        is_new.then(|| self.signs[found].stage.as_str())
    }

    fn stage_of(&self, part: &str) -> Option<usize> {
        let longest = LONGEST.min(part.len());
        let end = (0..=longest).rev().find(|at| part.is_char_boundary(*at)).unwrap_or(0);
        let part = &part[..end];
        self.signs.iter().position(|sign| sign.line.is_match(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> StageWatch {
        let sign =
            |stage: &str, line: &str| Sign { stage: stage.into(), line: Regex::new(line).unwrap() };
        StageWatch::new(&[
            sign("denoise", r"^\s*\d+%"),
            sign("decode", "^decoding"),
            sign("denoise", "^again"),
        ])
        .unwrap()
    }

    #[test]
    fn a_stage_is_told_once_as_it_begins() {
        let mut watch = watch();
        assert_eq!(watch.feed("loading"), None);
        assert_eq!(watch.feed("  3%|#"), Some("denoise"));
        assert_eq!(watch.feed("  4%|#"), None);
        assert_eq!(watch.feed("again"), None, "another sign of the same stage");
        assert_eq!(watch.feed("decoding 1 latents"), Some("decode"));
        assert_eq!(watch.feed("again"), Some("denoise"));
    }

    #[test]
    fn of_a_line_that_was_written_over_the_last_stage_counts() {
        let mut watch = watch();
        assert_eq!(watch.feed("1%\r99%\rdecoding\rdone"), Some("decode"));
        assert_eq!(watch.feed(&"é".repeat(1 << 20)), None);
        assert!(StageWatch::new(&[]).is_none());
    }
}
