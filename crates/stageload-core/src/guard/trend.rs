//! How fast things move: the looks of the last seconds, and rates over them. A rate counts only
//! while the value moves the same way in both halves of its window, so a single jump is no trend.

use std::collections::VecDeque;
use std::time::Duration;

use super::Look;

/// As far back as anybody asks.
const MEMORY: Duration = Duration::from_secs(10);
/// Looks closer together than this say no more than one; it also bounds the memory.
const CLOSEST: Duration = Duration::from_millis(40);
/// Rates are taken over this: two looks of a trace that has one each half second.
const WINDOW: Duration = Duration::from_millis(1100);
/// Over less than this a rate is noise.
const SHORTEST: Duration = Duration::from_millis(400);

/// The looks of the last ten seconds, oldest first.
#[derive(Debug, Clone)]
pub(super) struct Trend {
    looks: VecDeque<(Duration, Look)>,
}

impl Trend {
    pub(super) fn new() -> Self {
        let most = MEMORY.as_millis() / CLOSEST.as_millis() + 2;
        Self { looks: VecDeque::with_capacity(most as usize) }
    }

    /// Forgets everything, as after a sleep.
    pub(super) fn clear(&mut self) {
        self.looks.clear();
    }

    pub(super) fn push(&mut self, look: Look, now: Duration) {
        while self.looks.front().is_some_and(|(t, _)| now.saturating_sub(*t) > MEMORY) {
            self.looks.pop_front();
        }
        if self.looks.back().is_none_or(|(t, _)| now.saturating_sub(*t) >= CLOSEST) {
            self.looks.push_back((now, look));
        }
    }

    /// How `value` changes per second, if it has moved one way all along.
    pub(super) fn rate(&self, now: Duration, value: impl Fn(&Look) -> Option<f64>) -> Option<f64> {
        let window = |t: Duration| now.saturating_sub(t) <= WINDOW;
        let known = || {
            let inside = self.looks.iter().filter(|(t, _)| window(*t));
            inside.filter_map(|(t, look)| Some((*t, value(look)?)))
        };
        let (first, last) = (known().next()?, known().next_back()?);
        let span = last.0.saturating_sub(first.0);
        let half = first.0 + span / 2;
        let middle = known().min_by_key(|(t, _)| t.abs_diff(half))?;
        let is_steady = (last.1 - middle.1) * (middle.1 - first.1) > 0.0;
        (span >= SHORTEST && is_steady).then(|| (last.1 - first.1) / span.as_secs_f64())
    }

    /// What `value` was `ago`, by the oldest look that is no older than that, if it reaches back
    /// at least half as far.
    pub(super) fn before<T>(
        &self,
        now: Duration,
        ago: Duration,
        value: impl Fn(&Look) -> Option<T>,
    ) -> Option<T> {
        let is_inside = |t: Duration| now.saturating_sub(t) <= ago;
        let (t, look) =
            self.looks.iter().find(|(t, look)| is_inside(*t) && value(look).is_some())?;
        if now.saturating_sub(*t) < ago / 2 { None } else { value(look) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    fn trend(swap: &[u64]) -> (Trend, Duration) {
        let mut trend = Trend::new();
        let mut now = Duration::ZERO;
        for (i, mib) in swap.iter().enumerate() {
            now = Duration::from_millis(500 * i as u64);
            trend.push(Look { swap_used: Some(Bytes::mib(*mib)), ..Look::default() }, now);
        }
        (trend, now)
    }

    fn mib_per_second(swap: &[u64]) -> Option<f64> {
        let (trend, now) = trend(swap);
        let rate = trend.rate(now, |look| look.swap_used.map(|used| used.0 as f64))?;
        Some(rate / f64::from(1 << 20))
    }

    #[test]
    fn a_rate_is_over_the_last_second() {
        assert_eq!(mib_per_second(&[0, 0, 100, 200, 300]), Some(200.0));
        assert_eq!(mib_per_second(&[300, 200, 100]), Some(-200.0));
    }

    #[test]
    fn a_single_jump_is_no_trend() {
        assert_eq!(mib_per_second(&[100, 100, 900]), None);
        assert_eq!(mib_per_second(&[100, 900, 800]), None);
        assert_eq!(mib_per_second(&[100, 900]), None);
    }

    #[test]
    fn ten_seconds_are_remembered_and_no_more() {
        let mut trend = Trend::new();
        let room = trend.looks.capacity();
        for ms in 0..20_000 {
            trend.push(Look::default(), Duration::from_millis(ms));
        }
        assert!(trend.looks.len() <= 252);
        assert_eq!(trend.looks.capacity(), room, "the memory does not grow");
    }
}
