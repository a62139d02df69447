//! Answers of a call that is rate-limited and then hands out its last answer again, as macOS does
//! with host statistics: 2 to 10 fresh ones a second for all programs together (XNU `host.c`). Pure,
//! so every system tests it.

use std::time::Duration;

/// A copy older than the limiter's window of a second means that the call fails or is stuck. Three
/// of them leave room for a sampler that was itself held up.
const TOO_OLD: Duration = Duration::from_secs(3);

/// The latest answer and when it was first seen.
#[derive(Debug, Clone)]
pub(super) struct Copies<T> {
    latest: Option<(T, Duration)>,
}

impl<T: Copy + PartialEq> Copies<T> {
    pub(super) const fn none_yet() -> Self {
        Self { latest: None }
    }

    /// Takes in what the call said at `now` (nothing, if it failed) and gives the latest answer with
    /// its age: 0 for one that was not seen before.
    pub(super) fn take(&mut self, answer: Option<T>, now: Duration) -> Option<(T, Duration)> {
        let known = self.latest.map(|(latest, _)| latest);
        if answer.is_some() && answer != known {
            self.latest = answer.map(|answer| (answer, now));
        }
        let (latest, since) = self.latest?;
        let age = now.saturating_sub(since);
        (age <= TOO_OLD).then_some((latest, age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_answer_that_comes_again_grows_old() {
        let mut copies = Copies::none_yet();
        assert_eq!(copies.take(Some('a'), ms(1000)), Some(('a', ms(0))));
        assert_eq!(copies.take(Some('a'), ms(1100)), Some(('a', ms(100))));
        assert_eq!(copies.take(Some('a'), ms(1900)), Some(('a', ms(900))));
        assert_eq!(copies.take(Some('b'), ms(2000)), Some(('b', ms(0))));
    }

    #[test]
    fn a_call_that_fails_once_is_bridged_by_the_answer_before() {
        let mut copies = Copies::none_yet();
        assert_eq!(copies.take(None, ms(0)), None);
        copies.take(Some('a'), ms(100));
        assert_eq!(copies.take(None, ms(200)), Some(('a', ms(100))));
    }

    #[test]
    fn an_answer_that_never_changes_is_none_in_the_end() {
        let mut copies = Copies::none_yet();
        copies.take(Some('a'), ms(0));
        assert!(copies.take(Some('a'), ms(3000)).is_some());
        assert_eq!(copies.take(Some('a'), ms(3001)), None);
        assert_eq!(copies.take(Some('b'), ms(3100)), Some(('b', ms(0))), "until it does");
    }
}
