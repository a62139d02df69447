//! Sizes and shares as people type them, and the one place where bytes become gigabytes.
//! Durations are in `span.rs`.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A size in bytes. Prints and parses in binary units: `8G` is 8 × 2^30.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `n` × 2^20 bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// `n` × 2^30 bytes.
    pub const fn gib(n: u64) -> Self {
        Self(n * GIB)
    }

    /// The size in GB as reports print it (2^30 bytes).
    pub fn as_gb(self) -> f64 {
        self.0 as f64 / GIB as f64
    }

    /// `self - other`, or zero where that would be negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = i128;
    fn sub(self, other: Self) -> i128 {
        i128::from(self.0) - i128::from(other.0)
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= GIB => write!(f, "{:.2} GB", n as f64 / GIB as f64),
            n if n >= MIB => write!(f, "{:.0} MB", n as f64 / MIB as f64),
            n if n >= KIB => write!(f, "{:.0} KB", n as f64 / KIB as f64),
            n => write!(f, "{n} B"),
        }
    }
}

/// Why a text is not a size, a percent or a duration; names the text and shows good ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError(pub(crate) String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

impl FromStr for Bytes {
    type Err = UnitError;

    /// `8G`, `1.5GiB`, `512 MB`; the units are binary. A bare number is bytes, and one below 1024
    /// is refused: whoever types `8` means gigabytes, and an 8-byte limit would stop every job.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_unit(text);
        let refused = |why: &str| UnitError(format!("{why}: {text:?} (examples: 8G, 512M, 1.5G)"));
        let factor = size_factor(unit).ok_or_else(|| refused("not a size"))?;
        let value = scaled(number, factor).ok_or_else(|| refused("not a size"))?;
        match u64::try_from(value) {
            Err(_) => Err(refused("too large a size")),
            Ok(bytes) if unit.is_empty() && (1..KIB).contains(&bytes) => {
                Err(UnitError(format!("a size needs a unit: {text:?} (did you mean {bytes}G?)")))
            }
            Ok(bytes) => Ok(Self(bytes)),
        }
    }
}

/// The number and the unit of a text such as `1.5 GB`.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn size_factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    match unit {
        "" => Some(1),
        "k" => Some(KIB),
        "m" => Some(MIB),
        "g" => Some(GIB),
        "t" => Some(TIB),
        _ => None,
    }
}

/// `number` × `factor`, exactly: a float would lose bytes above 2^53. None if it is no number.
pub(crate) fn scaled(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > 18 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let parts: u64 = fraction.parse().ok()?;
    let factor = u128::from(factor);
    let below_one = u128::from(parts) * factor / 10u128.pow(fraction.len() as u32);
    Some(u128::from(whole) * factor + below_one)
}

/// A share of the whole, 0 to 100.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "f64", into = "u8")]
pub struct Percent(u8);

impl Percent {
    /// `value` as a percent, or None above 100.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 100 { Some(Self(value)) } else { None }
    }

    /// The number, 0 to 100.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// `part` of `whole`, rounded down; None where there is no whole.
    pub fn of(part: Bytes, whole: Bytes) -> Option<Self> {
        let share = (u128::from(part.0) * 100).checked_div(u128::from(whole.0))?;
        Some(Self(share.min(100) as u8))
    }
}

impl TryFrom<f64> for Percent {
    type Error = UnitError;
    fn try_from(value: f64) -> Result<Self, UnitError> {
        if (0.0..=100.0).contains(&value) {
            Ok(Self(value as u8))
        } else {
            Err(UnitError(format!("percent out of range 0-100: {value}")))
        }
    }
}

impl From<Percent> for u8 {
    fn from(percent: Percent) -> Self {
        percent.0
    }
}

impl FromStr for Percent {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let digits = text.trim().trim_end_matches('%');
        let value: u32 = digits
            .parse()
            .map_err(|_| UnitError(format!("not a whole percent: {text:?} (example: 40)")))?;
        u8::try_from(value)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| UnitError(format!("percent out of range 0-100: {value}")))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_binary_and_spelled_in_many_ways() {
        let table = [
            ("8G", Bytes::gib(8)),
            ("8g", Bytes::gib(8)),
            ("8GB", Bytes::gib(8)),
            ("8 GiB", Bytes::gib(8)),
            ("512M", Bytes::mib(512)),
            ("300M", Bytes::mib(300)),
            ("1.5G", Bytes::mib(1536)),
            ("2k", Bytes(2048)),
            ("1T", Bytes::gib(1024)),
            ("4096", Bytes(4096)),
            ("100B", Bytes(100)),
            ("0", Bytes::ZERO),
        ];
        for (text, want) in table {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_examples() {
        for text in ["", "G", "-8G", "8X", "eight", "1.2.3G", "8 G B", "1.G", ".5G", "99999999999T"]
        {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains("examples: 8G, 512M"), "{text}: {error}");
        }
    }

    #[test]
    fn a_size_without_unit_is_refused_with_a_hint() {
        let error = "8".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(error, "a size needs a unit: \"8\" (did you mean 8G?)");
    }

    #[test]
    fn percents_lie_between_0_and_100() {
        assert_eq!("40".parse(), Ok(Percent(40)));
        assert_eq!("100%".parse(), Ok(Percent(100)));
        for text in ["101", "-1", "300", "1.5", ""] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(Percent::of(Bytes(5), Bytes::ZERO), None);
        assert_eq!(Percent::of(Bytes(5), Bytes(10)), Some(Percent(50)));
    }

    proptest! {
        #[test]
        fn every_size_in_bytes_parses_to_itself(n in 1024u64..) {
            prop_assert_eq!(n.to_string().parse(), Ok(Bytes(n)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Percent>();
        }
    }
}
