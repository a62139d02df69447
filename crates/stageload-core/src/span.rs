//! Durations as people type them: `30m`, `1h30m`, `250ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::UnitError;
use crate::units::{scaled, split_unit};

/// A length of time that parses from `30m`, `90s`, `1h30m`, `250ms`; a bare number is seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text).map(Self).ok_or_else(|| {
            UnitError(format!("not a duration: {text:?} (examples: 30m, 90s, 1h30m, 250ms)"))
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    let mut parts = 0;
    while !rest.is_empty() {
        let (number, tail) = split_unit(rest);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let nanos = nanos_in(&tail[..end], parts == 0 && end == tail.len())?;
        total = total.checked_add(nanoseconds(scaled(number, nanos)?)?)?;
        rest = tail[end..].trim_start();
        parts += 1;
    }
    (parts > 0).then_some(total)
}

/// `alone` allows the missing unit: `90` is seconds, but `1h30` could be anything.
fn nanos_in(unit: &str, alone: bool) -> Option<u64> {
    match unit.to_ascii_lowercase().as_str() {
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        "" if alone => Some(1_000_000_000),
        _ => None,
    }
}

fn nanoseconds(nanos: u128) -> Option<Duration> {
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, _) if self.0.subsec_millis() > 0 => {
                write!(f, "{} s", self.0.as_millis() as f64 / 1000.0)
            }
            (0, 0, s) => write!(f, "{s} s"),
            (0, m, s) => write!(f, "{m} min {s:02} s"),
            (h, m, _) => write!(f, "{h} h {m:02} min"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_spelled_in_many_ways() {
        let table = [
            ("30m", 1_800_000),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("250ms", 250),
            ("5", 5_000),
            ("1.5", 1_500),
            ("0", 0),
            ("0.5h", 1_800_000),
        ];
        for (text, millis) in table {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_examples() {
        for text in ["", "m", "-5s", "5d", "1h30", "soon", "99999999999999999999h"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("examples: 30m, 90s"), "{text}: {error}");
        }
    }

    #[test]
    fn spans_print_in_the_units_of_a_reader() {
        let printed = |millis| Span(Duration::from_millis(millis)).to_string();
        assert_eq!(printed(100), "0.1 s");
        assert_eq!(printed(5_000), "5 s");
        assert_eq!(printed(90_000), "1 min 30 s");
        assert_eq!(printed(5_400_000), "1 h 30 min");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = text.parse::<Span>();
        }
    }
}
