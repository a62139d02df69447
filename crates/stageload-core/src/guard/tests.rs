use proptest::prelude::*;

use super::*;
use crate::read_trace;
use crate::testing::{EAGER, OFFLOAD, STAGED, TAIL};

fn policy() -> Policy {
    Policy { poll: millis(100), ..crate::testing::policy() }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn level(percent: u8) -> Reading {
    Reading { level: Percent::new(percent), ..Reading::default() }
}

fn footprint(mib: u64) -> Reading {
    Reading { footprint: Some(Bytes::mib(mib)), ..Reading::default() }
}

fn swap(gib: u64) -> Reading {
    Reading { swap_used: Some(Bytes::gib(gib)), ..Reading::default() }
}

fn at(ms: u64) -> Moment {
    Moment::awake(millis(ms))
}

fn guard(policy: Policy) -> Guard {
    Guard::new(policy, Baseline::default())
}

fn swap_at_start(gib: u64) -> Baseline {
    Baseline { swap_used: Some(Bytes::gib(gib)), ..Baseline::default() }
}

/// The decisions over a recorded run.
fn decisions(text: &str, policy: Policy, baseline: Baseline) -> Vec<crate::Decision> {
    crate::replay(&read_trace(text).unwrap(), policy, baseline)
}

/// The first look of a trace at which the guard stops, and why.
fn replay(text: &str, policy: Policy) -> Option<(f64, Reason)> {
    let last = decisions(text, policy, Baseline::default()).pop()?;
    match last.verdict {
        Verdict::Stop(reason) => Some((last.t, reason)),
        _ => None,
    }
}

#[test]
fn the_eager_run_may_load_its_models_and_is_stopped_in_decode_before_its_swap_is_over_the_budget() {
    let (t, reason) = replay(EAGER, policy()).unwrap();
    assert_eq!(reason.stage.as_deref(), Some("decode"));
    assert!((108.3..118.4).contains(&t), "{t}");
    assert!(reason.forecast.is_some(), "{reason}");
    let Breach::SwapBudget { swap_used, baseline, budget } = reason.breach else { panic!() };
    assert!(swap_used < baseline + budget);
}

#[test]
fn the_staged_run_is_neither_stopped_nor_warned_of_even_with_a_budget_of_nearly_nothing() {
    for budget in [Bytes::gib(8), Bytes::mib(100)] {
        let policy = Policy { swap_budget: budget, ..policy() };
        assert_eq!(decisions(STAGED, policy, Baseline::default()), []);
    }
}

#[test]
fn the_offloaded_run_is_stopped_by_its_swap_although_its_footprint_is_small() {
    let (t, reason) = replay(OFFLOAD, policy()).unwrap();
    let Breach::SwapBudget { swap_used, baseline, budget } = reason.breach else { panic!() };
    assert!(swap_used <= baseline + budget, "{reason}");
    assert_eq!(reason.stage.as_deref(), Some("decode"));
    assert!(t < 103.5, "{t}");
}

#[test]
fn the_burst_of_pixal3d_is_stopped_while_it_still_grows() {
    // That run had 14.8 GB in swap at its start; the tail begins later.
    let start = Bytes((14.8 * f64::from(1 << 30)) as u64);
    let baseline = Baseline { swap_used: Some(start), ..Baseline::default() };
    let stopped = decisions(TAIL, policy(), baseline).pop().unwrap();
    assert!(matches!(stopped.verdict, Verdict::Stop(_)));
    assert!((421.7..=423.9).contains(&stopped.t), "{}", stopped.t);
    assert!(stopped.footprint.unwrap() <= Bytes(40_300_000_000), "{:?}", stopped.footprint);
}

#[test]
fn a_job_over_its_limit_that_still_rises_is_stopped_within_50_ms_and_the_sentence_says_it_all() {
    let mut guard = guard(Policy { limit: Some(Bytes::mib(300)), ..policy() });
    let stage = Event { stage: Some("shape_1024".into()), ..Event::new(EventKind::Stage) };
    guard.hear(&stage, at(0));
    guard.observe(&footprint(200), at(0));
    for (ms, mib) in [(50, 301), (70, 320), (90, 340)] {
        assert!(!is_stop(&guard.observe(&footprint(mib), at(ms))), "{ms}");
    }
    let Verdict::Stop(reason) = guard.observe(&footprint(360), at(110)) else { panic!() };
    assert_eq!(reason.to_string(), "footprint 360 MB > limit 300 MB in stage shape_1024");
    let json = serde_json::to_value(&reason).unwrap();
    assert_eq!(json["rule"], "limit");
    assert_eq!(json["footprint"], 360 << 20);
}

#[test]
fn a_job_over_its_limit_that_holds_still_is_stopped_after_300_ms() {
    let mut guard = guard(Policy { limit: Some(Bytes::mib(300)), ..policy() });
    for ms in [0, 100, 200] {
        assert!(!is_stop(&guard.observe(&footprint(310), at(ms))), "{ms}");
    }
    assert!(is_stop(&guard.observe(&footprint(310), at(300))));
}

#[test]
fn swap_counts_from_the_start_of_the_job() {
    let mut guard = Guard::new(policy(), swap_at_start(20));
    assert!(!is_stop(&guard.observe(&swap(28), at(0))));
    assert!(!is_stop(&guard.observe(&swap(29), at(100))));
    let Verdict::Stop(reason) = guard.observe(&swap(29), at(1100)) else { panic!() };
    assert_eq!(reason.to_string(), "swap 29.00 GB > 28.00 GB (20.00 GB at start + budget 8.00 GB)");
}

#[test]
fn an_absolute_swap_limit_holds_whatever_the_baseline() {
    let limited = Policy { swap_limit: Some(Bytes::gib(10)), ..policy() };
    let mut guard = Guard::new(limited, swap_at_start(9));
    guard.observe(&swap(11), at(0));
    let Verdict::Stop(reason) = guard.observe(&swap(11), at(1000)) else { panic!() };
    assert_eq!(reason.to_string(), "swap 11.00 GB > swap limit 10.00 GB");
}

#[test]
fn a_forecast_says_how_fast_and_how_far() {
    let mut guard = Guard::new(policy(), swap_at_start(0));
    let mut verdict = Verdict::Continue;
    for (ms, mib) in [(0, 0), (500, 3000), (1000, 6000)] {
        assert_eq!(verdict, Verdict::Continue);
        let reading = Reading { swap_used: Some(Bytes::mib(mib)), ..Reading::default() };
        verdict = guard.observe(&reading, at(ms));
    }
    let Verdict::Stop(reason) = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        reason.to_string(),
        "swap 5.86 GB grows 5.86 GB/s, over 8.00 GB (0 B at start + budget 8.00 GB) within 1.1 s"
    );
    assert_eq!(serde_json::to_value(&reason).unwrap()["forecast"]["seconds"], 1.05);
}

#[test]
fn a_dip_of_the_level_is_waited_out_and_a_low_level_is_not() {
    let mut guard = guard(policy());
    for (ms, percent) in [(0, 9), (1000, 9), (2900, 9), (2950, 12), (3000, 9), (5900, 9)] {
        assert!(!is_stop(&guard.observe(&level(percent), at(ms))), "{ms}");
    }
    let Verdict::Stop(reason) = guard.observe(&level(9), at(6000)) else { panic!() };
    assert_eq!(reason.to_string(), "memory available 9% < 10% for 3.0 s");
}

#[test]
fn a_level_under_a_third_of_the_floor_stops_once_it_is_still_there_100_ms_later() {
    let mut guard = guard(Policy { poll: millis(10), ..policy() });
    for ms in [0, 10, 99] {
        assert!(!is_stop(&guard.observe(&level(3), at(ms))), "{ms}");
    }
    let Verdict::Stop(reason) = guard.observe(&level(3), at(100)) else { panic!() };
    assert_eq!(reason.to_string(), "memory available 3% < 10% for 0.1 s");
}

#[test]
fn a_single_look_far_below_the_floor_stops_nobody_even_among_low_ones() {
    let mut guard = guard(policy());
    for (ms, percent) in [(0, 9), (100, 3), (200, 4), (300, 2), (400, 50)] {
        assert!(!is_stop(&guard.observe(&level(percent), at(ms))), "{ms}");
    }
}

#[test]
fn a_guard_that_looks_seldom_looks_again_at_once_when_a_rule_is_broken() {
    let seldom = Policy { poll: millis(5000), limit: Some(Bytes::gib(300)), ..policy() };
    let over = Reading { footprint: Some(Bytes::gib(310)), ..level(50) };
    for (broken, soon) in [(level(3), 20), (level(9), 50), (over, 20)] {
        let mut guard = guard(seldom);
        let fine = Reading { footprint: Some(Bytes::mib(1)), ..level(50) };
        guard.observe(&fine, at(0));
        guard.observe(&fine, at(4000));
        assert_eq!(guard.next_look(), millis(1000), "calm");
        assert!(!is_stop(&guard.observe(&broken, at(5000))));
        assert_eq!(guard.next_look(), millis(soon));
        guard.observe(&fine, at(5050));
        guard.observe(&fine, at(5100));
        assert_eq!(guard.next_look(), millis(1000));
    }
}

#[test]
fn looks_come_more_often_while_memory_moves_or_a_line_is_near_but_never_later_than_the_poll() {
    let near = Policy { limit: Some(Bytes::gib(3)), poll: millis(5000), ..policy() };
    let mut guard = guard(near);
    assert_eq!(guard.next_look(), millis(50), "nothing is known yet");
    let hold = |mib| Reading { footprint: Some(Bytes::mib(mib)), ..level(50) };
    guard.observe(&hold(72), at(0));
    assert_eq!(guard.next_look(), millis(50), "it has just started");
    guard.observe(&hold(72), at(4000));
    assert_eq!(guard.next_look(), millis(250), "half of what filling 3000 MB takes");
    guard.hear(&Event { stage: Some("a".into()), ..Event::new(EventKind::Stage) }, at(4000));
    assert_eq!(guard.next_look(), millis(50), "it has just said something");
    guard.observe(&hold(72), at(5100));
    guard.observe(&hold(172), at(5350));
    assert_eq!(guard.next_look(), millis(50), "it moves");
    guard.observe(&hold(3000), at(5400));
    assert_eq!(guard.next_look(), millis(20), "it will be over before the next look");
    guard.observe(&hold(3000), at(5420));
    assert_eq!(guard.next_look(), millis(50), "it is near but holds still");
    let often = Guard::new(Policy { poll: millis(10), ..near }, Baseline::default());
    assert_eq!(often.next_look(), millis(10));
}

#[test]
fn an_unknown_level_neither_breaks_a_row_nor_adds_to_it() {
    let mut guard = guard(policy());
    guard.observe(&level(9), at(0));
    for ms in [500, 2000, 4000] {
        assert!(!is_stop(&guard.observe(&Reading::default(), at(ms))));
    }
    assert!(matches!(guard.observe(&level(9), at(4100)), Verdict::Stop(_)));
}

#[test]
fn a_row_does_not_reach_over_a_gap() {
    let mut guard = guard(policy());
    guard.observe(&level(9), at(0));
    assert!(!is_stop(&guard.observe(&level(9), at(60_000))));
}

#[test]
fn a_guard_that_looks_seldom_still_sees_a_row() {
    let mut guard = guard(Policy { poll: millis(30_000), ..policy() });
    guard.observe(&level(9), at(0));
    assert!(matches!(guard.observe(&level(9), at(30_000)), Verdict::Stop(_)));
}

fn is_stop(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Stop(_))
}

fn any_reading() -> impl Strategy<Value = Reading> {
    let bytes = || prop::option::of((0u64..64).prop_map(Bytes::gib));
    (bytes(), bytes(), prop::option::of((0u8..=100).prop_map(|p| Percent::new(p).unwrap())))
        .prop_map(|(footprint, swap_used, level)| Reading {
            footprint,
            swap_used,
            level,
            ..Reading::default()
        })
}

fn verdicts(readings: &[(u64, Reading)], offset: Duration) -> Vec<Verdict> {
    let limited = Policy { limit: Some(Bytes::gib(30)), ..policy() };
    let mut guard = guard(limited);
    let mut now = offset;
    let observe = |(step, reading): &(u64, Reading)| {
        now += millis(*step);
        guard.observe(reading, Moment::awake(now))
    };
    readings.iter().map(observe).collect()
}

proptest! {
    #[test]
    fn unknown_readings_never_stop_a_job(steps in prop::collection::vec(0u64..20_000, 0..50)) {
        let unknown: Vec<_> = steps.into_iter().map(|ms| (ms, Reading::default())).collect();
        prop_assert!(!verdicts(&unknown, Duration::ZERO).iter().any(is_stop));
    }

    #[test]
    fn the_verdict_does_not_depend_on_what_time_it_is(
        readings in prop::collection::vec((0u64..5_000, any_reading()), 0..40),
        offset in 0u64..10_000_000,
    ) {
        let at_zero = verdicts(&readings, Duration::ZERO);
        prop_assert_eq!(at_zero, verdicts(&readings, Duration::from_secs(offset)));
    }

    #[test]
    fn a_job_inside_all_its_limits_is_never_stopped_but_by_a_forecast(
        looks in prop::collection::vec((0u64..5_000, 0u64..=30, 5u64..=13, 10u8..=100), 0..40),
    ) {
        let readings: Vec<_> = looks
            .into_iter()
            .map(|(ms, footprint, swap, level)| (ms, Reading {
                footprint: Some(Bytes::gib(footprint)),
                swap_used: Some(Bytes::gib(swap)),
                level: Percent::new(level),
                ..Reading::default()
            }))
            .collect();
        let first_swap = readings.first().and_then(|(_, r)| r.swap_used).unwrap_or_default();
        prop_assume!(readings.iter().all(|(_, r)| r.swap_used.unwrap() <= first_swap + Bytes::gib(8)));
        for verdict in verdicts(&readings, Duration::ZERO) {
            if let Verdict::Stop(reason) = verdict {
                prop_assert!(reason.forecast.is_some(), "{}", reason);
            }
        }
    }

    #[test]
    fn somebody_is_told_of_one_thing_at_most_once_a_minute(
        readings in prop::collection::vec((0u64..5_000, any_reading()), 0..80),
    ) {
        let limited = Policy { limit: Some(Bytes::gib(30)), ..policy() };
        let mut guard = guard(limited);
        let (mut now, mut told) = (Duration::ZERO, Vec::new());
        for (step, reading) in readings {
            now += millis(step);
            if let Verdict::Warn(warning) = guard.observe(&reading, Moment::awake(now)) {
                told.push((now, std::mem::discriminant(&warning), warning.rule()));
            }
        }
        for (i, (at, kind, rule)) in told.iter().enumerate() {
            let again = told[i + 1..].iter().find(|(_, k, r)| k == kind && r == rule);
            prop_assert!(again.is_none_or(|(later, ..)| *later >= *at + Duration::from_secs(60)));
        }
    }

    #[test]
    fn the_wall_clock_and_the_time_asleep_decide_nothing(
        readings in prop::collection::vec((0u64..5_000, any_reading(), 0.0..4e9), 0..40),
    ) {
        let looks = |with_clock: bool| {
            let mut guard = guard(Policy { limit: Some(Bytes::gib(30)), ..policy() });
            let mut now = Duration::ZERO;
            let observe = |(step, reading, utc): &(u64, Reading, f64)| {
                now += millis(*step);
                let utc = with_clock.then_some(*utc);
                guard.observe(&Reading { utc, ..reading.clone() }, Moment::awake(now))
            };
            readings.iter().map(observe).collect::<Vec<_>>()
        };
        prop_assert_eq!(looks(true), looks(false));
    }
}
