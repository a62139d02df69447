//! Which looks are worth a line in the trace. At 10 looks a second a day would be 860 000 lines;
//! the seed's traces have one each half second, and that shows everything but a burst.

use stageload_core::{Bytes, Reading};

/// The pace of a quiet trace, as in the seed's.
const PACE: f64 = 0.5;
/// A footprint that moved by more than a part in 256 since the last line is news,
const SHARE: u64 = 256;
/// unless it moved by less than this.
const TRIFLE: Bytes = Bytes::mib(1);

/// Chooses the looks to keep.
#[derive(Debug, Default)]
pub(crate) struct Thinning {
    last: Option<Reading>,
    force: bool,
}

impl Thinning {
    /// The next look is kept whatever it says, because something happened.
    pub(crate) fn next_counts(&mut self) {
        self.force = true;
    }

    pub(crate) fn keeps(&mut self, reading: &Reading) -> bool {
        let keeps = self.force || self.last.as_ref().is_none_or(|last| is_news(last, reading));
        if keeps {
            self.last = Some(reading.clone());
            self.force = false;
        }
        keeps
    }
}

fn is_news(last: &Reading, reading: &Reading) -> bool {
    reading.t - last.t >= PACE
        || last.swap_used != reading.swap_used
        || match (last.footprint, reading.footprint) {
            (Some(a), Some(b)) => a.0.abs_diff(b.0) > TRIFLE.0.max(a.0 / SHARE),
            (a, b) => a.is_some() != b.is_some(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(t: f64, mib: u64) -> Reading {
        Reading { t, footprint: Some(Bytes::mib(mib)), ..Reading::default() }
    }

    #[test]
    fn a_quiet_job_has_two_lines_a_second_and_a_burst_has_all() {
        let mut thinning = Thinning::default();
        let quiet = (0..20).filter(|i| thinning.keeps(&at(f64::from(*i) * 0.1, 500))).count();
        assert_eq!(quiet, 4);
        let burst = |i: u32| at(2.0 + f64::from(i) * 0.1, 600 + u64::from(i) * 100);
        assert_eq!((0..20).filter(|i| thinning.keeps(&burst(*i))).count(), 20);
    }

    #[test]
    fn the_look_after_an_event_is_kept() {
        let mut thinning = Thinning::default();
        assert!(thinning.keeps(&at(0.0, 1)));
        assert!(!thinning.keeps(&at(0.1, 1)));
        thinning.next_counts();
        assert!(thinning.keeps(&at(0.2, 1)));
    }
}
