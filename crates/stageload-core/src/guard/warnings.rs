//! What a person is told while the job runs on, at most once a minute of each kind.

use std::time::Duration;

use super::{
    BLIND_FOR, Breach, CLOSE_PERCENT, Guard, Look, NEAR_SWAP, Verdict, WARN_EVERY, Warning,
};
use crate::Bytes;

impl Guard {
    pub(super) fn warning(&mut self, look: &Look, now: Duration) -> Verdict {
        let found = [self.blind(look, now), self.close(look), near_swap(look)];
        for warning in found.into_iter().flatten() {
            if let verdict @ Verdict::Warn(_) = self.warn(warning, now) {
                return verdict;
            }
        }
        Verdict::Continue
    }

    pub(super) fn warn(&mut self, warning: Warning, now: Duration) -> Verdict {
        let last = &mut self.warned[kind(&warning)];
        if last.is_some_and(|last| now.saturating_sub(last) < WARN_EVERY) {
            return Verdict::Continue;
        }
        *last = Some(now);
        Verdict::Warn(warning)
    }

    fn close(&self, look: &Look) -> Option<Warning> {
        let limit = look
            .footprint
            .zip(self.policy.limit)
            .map(|(footprint, limit)| (Breach::Limit { footprint, limit }, footprint, limit));
        let swap = look.swap_used.zip(self.baseline.swap_used).map(|(swap_used, baseline)| {
            let budget = self.policy.swap_budget;
            let grown = swap_used.saturating_sub(baseline);
            (Breach::SwapBudget { swap_used, baseline, budget }, grown, budget)
        });
        let close = |(breach, used, most): (Breach, Bytes, Bytes)| {
            let percent = u128::from(used.0) * 100 / u128::from(most.0.max(1));
            let is_close = most > Bytes::ZERO && percent >= u128::from(CLOSE_PERCENT);
            is_close.then_some(Warning::Close { breach, percent: percent.min(255) as u8 })
        };
        limit.and_then(close).or_else(|| swap.and_then(close))
    }

    /// Gauges that a rule needs. What a system never tells is no fault of this run, but somebody
    /// who relies on the rule should know.
    fn blind(&mut self, look: &Look, now: Duration) -> Option<Warning> {
        let gauges = [
            ("the job's footprint", look.footprint.is_none()),
            ("swap in use", look.swap_used.is_none()),
            ("memory available", look.level.is_none()),
        ];
        let gap = self.policy.gap();
        let mut blind = None;
        for ((gauge, is_unknown), streak) in gauges.into_iter().zip(&mut self.blind) {
            let streak = streak.look(is_unknown, now, gap);
            if streak.held_for(BLIND_FOR, now) {
                let seconds = streak.lasted(now).as_secs_f64();
                blind = blind.or(Some(Warning::Blind { gauge, seconds }));
            }
        }
        blind
    }
}

fn near_swap(look: &Look) -> Option<Warning> {
    look.r.filter(|r| *r < NEAR_SWAP).map(|r| Warning::NearSwap { r })
}

fn kind(warning: &Warning) -> usize {
    let rule = |breach: &Breach| match breach {
        Breach::Limit { .. } => 0,
        Breach::SwapBudget { .. } => 1,
        Breach::SwapLimit { .. } => 2,
        Breach::LevelLow { .. } => 3,
        _ => 4,
    };
    match warning {
        Warning::NotOurs { breach, .. } => rule(breach),
        Warning::Close { breach, .. } => 5 + rule(breach),
        Warning::NearSwap { .. } => 10,
        Warning::Blind { .. } => 11,
    }
}
