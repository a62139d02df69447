//! Sizes and durations as people type them, and the one place where bytes become gigabytes.

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
