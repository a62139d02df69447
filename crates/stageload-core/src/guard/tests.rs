use proptest::prelude::*;

use super::*;
use crate::testing::{EAGER, OFFLOAD, STAGED, TAIL};
use crate::{Record, read_trace};

fn policy() -> Policy {
    Policy {
        limit: None,
        swap_budget: Bytes::gib(8),
        swap_limit: None,
        kill_free: Percent::new(10).unwrap(),
        poll: millis(100),
    }
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

/// The first look of a trace at which the guard stops, and why.
fn replay(text: &str, policy: Policy) -> Option<(f64, Reason)> {
    let mut guard = Guard::new(policy, None);
    for record in read_trace(text).unwrap() {
        match record {
            Record::Event(event) => guard.hear(&event),
            Record::Sample(reading) => {
                let now = Duration::from_secs_f64(reading.t);
                if let Verdict::Stop(reason) = guard.observe(&reading, now) {
                    return Some((reading.t, reason));
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn the_eager_run_stays_just_inside_an_8_gb_budget() {
    assert_eq!(replay(EAGER, policy()), None);
    let tighter = Policy { swap_budget: Bytes::gib(7), ..policy() };
    let (_, reason) = replay(EAGER, tighter).unwrap();
    assert_eq!(reason.stage.as_deref(), Some("decode"));
}

#[test]
fn the_staged_run_is_never_stopped_even_with_a_budget_of_nothing() {
    assert_eq!(replay(STAGED, Policy { swap_budget: Bytes::mib(1), ..policy() }), None);
}

#[test]
fn the_offloaded_run_is_stopped_by_its_swap_although_its_footprint_is_small() {
    let (t, reason) = replay(OFFLOAD, policy()).unwrap();
    assert!(matches!(reason.breach, Breach::SwapBudget { .. }), "{reason}");
    assert_eq!(reason.stage.as_deref(), Some("decode"));
    assert!(t < 104.0);
}

#[test]
fn the_burst_of_pixal3d_is_stopped_while_it_still_grows() {
    // That run had 14.8 GB in swap at its start; the tail begins later.
    let mut guard = Guard::new(policy(), Some(Bytes(14_800_000_000)));
    let mut stopped = None;
    for record in read_trace(TAIL).unwrap() {
        if let Record::Sample(reading) = record {
            let verdict = guard.observe(&reading, Duration::from_secs_f64(reading.t));
            if stopped.is_none() && verdict != Verdict::Continue {
                stopped = Some(reading.t);
            }
        }
    }
    assert!(stopped.unwrap() <= 423.3, "{stopped:?}");
}

#[test]
fn a_job_just_over_its_limit_is_stopped_at_the_second_look() {
    let mut guard = Guard::new(Policy { limit: Some(Bytes::mib(300)), ..policy() }, None);
    assert_eq!(guard.observe(&footprint(310), millis(0)), Verdict::Continue);
    assert_eq!(guard.observe(&footprint(299), millis(100)), Verdict::Continue);
    assert_eq!(guard.observe(&footprint(310), millis(200)), Verdict::Continue);
    assert!(matches!(guard.observe(&footprint(310), millis(300)), Verdict::Stop(_)));
}

#[test]
fn a_job_far_over_its_limit_is_stopped_at_once_and_the_sentence_says_it_all() {
    let mut guard = Guard::new(Policy { limit: Some(Bytes::mib(300)), ..policy() }, None);
    let stage = Event { stage: Some("shape_1024".into()), ..Event::new(EventKind::Stage) };
    guard.hear(&stage);
    let Verdict::Stop(reason) = guard.observe(&footprint(331), millis(0)) else { panic!() };
    assert_eq!(reason.to_string(), "footprint 331 MB > limit 300 MB in stage shape_1024");
    let json = serde_json::to_value(&reason).unwrap();
    assert_eq!(json["rule"], "limit");
    assert_eq!(json["footprint"], 331 << 20);
}

#[test]
fn swap_counts_from_the_start_of_the_job() {
    let mut guard = Guard::new(policy(), Some(Bytes::gib(20)));
    assert_eq!(guard.observe(&swap(28), millis(0)), Verdict::Continue);
    let Verdict::Stop(reason) = guard.observe(&swap(29), millis(100)) else { panic!() };
    assert_eq!(reason.to_string(), "swap 29.00 GB > 28.00 GB (20.00 GB at start + budget 8.00 GB)");
}

#[test]
fn an_absolute_swap_limit_holds_whatever_the_baseline() {
    let limited = Policy { swap_limit: Some(Bytes::gib(10)), ..policy() };
    let mut guard = Guard::new(limited, Some(Bytes::gib(9)));
    let Verdict::Stop(reason) = guard.observe(&swap(11), millis(0)) else { panic!() };
    assert_eq!(reason.to_string(), "swap 11.00 GB > swap limit 10.00 GB");
}

#[test]
fn a_dip_of_the_level_is_waited_out_and_a_low_level_is_not() {
    let mut guard = Guard::new(policy(), None);
    for (ms, percent) in [(0, 9), (1000, 9), (2900, 9), (2950, 12), (3000, 9), (5900, 9)] {
        assert_eq!(guard.observe(&level(percent), millis(ms)), Verdict::Continue, "{ms}");
    }
    let Verdict::Stop(reason) = guard.observe(&level(9), millis(6000)) else { panic!() };
    assert_eq!(reason.to_string(), "memory available 9% < 10% for 3.0 s");
}

#[test]
fn a_level_under_a_third_of_the_floor_stops_once_it_is_still_there_100_ms_later() {
    let mut guard = Guard::new(Policy { poll: millis(10), ..policy() }, None);
    for ms in [0, 10, 99] {
        assert_eq!(guard.observe(&level(3), millis(ms)), Verdict::Continue, "{ms}");
    }
    let Verdict::Stop(reason) = guard.observe(&level(3), millis(100)) else { panic!() };
    assert_eq!(reason.to_string(), "memory available 3% < 10% for 0.1 s");
}

#[test]
fn a_single_look_far_below_the_floor_stops_nobody_even_among_low_ones() {
    let mut guard = Guard::new(policy(), None);
    for (ms, percent) in [(0, 9), (100, 3), (200, 4), (300, 2), (400, 50)] {
        assert_eq!(guard.observe(&level(percent), millis(ms)), Verdict::Continue, "{ms}");
    }
}

#[test]
fn a_guard_that_looks_seldom_looks_again_at_once_when_a_rule_is_broken() {
    let seldom = Policy { poll: millis(5000), limit: Some(Bytes::mib(300)), ..policy() };
    for broken in [level(3), level(9), footprint(310)] {
        let mut guard = Guard::new(seldom, None);
        assert_eq!(guard.next_look(), millis(5000));
        assert_eq!(guard.observe(&broken, millis(0)), Verdict::Continue);
        assert_eq!(guard.next_look(), millis(200));
        let fine = Reading { footprint: Some(Bytes::mib(1)), ..level(50) };
        assert_eq!(guard.observe(&fine, millis(200)), Verdict::Continue);
        assert_eq!(guard.next_look(), millis(5000));
    }
    let mut often = Guard::new(policy(), None);
    often.observe(&level(3), millis(0));
    assert_eq!(often.next_look(), millis(100), "never later than the poll");
}

#[test]
fn an_unknown_level_neither_breaks_a_row_nor_adds_to_it() {
    let mut guard = Guard::new(policy(), None);
    guard.observe(&level(9), millis(0));
    for ms in [500, 2000, 4000] {
        assert_eq!(guard.observe(&Reading::default(), millis(ms)), Verdict::Continue);
    }
    assert!(matches!(guard.observe(&level(9), millis(4100)), Verdict::Stop(_)));
}

#[test]
fn a_row_does_not_reach_over_a_gap() {
    let mut guard = Guard::new(policy(), None);
    guard.observe(&level(9), millis(0));
    assert_eq!(guard.observe(&level(9), millis(60_000)), Verdict::Continue);
}

#[test]
fn a_guard_that_looks_seldom_still_sees_a_row() {
    let mut guard = Guard::new(Policy { poll: millis(30_000), ..policy() }, None);
    guard.observe(&level(9), millis(0));
    assert!(matches!(guard.observe(&level(9), millis(30_000)), Verdict::Stop(_)));
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
    let mut guard = Guard::new(limited, None);
    let mut now = offset;
    let observe = |(step, reading): &(u64, Reading)| {
        now += millis(*step);
        guard.observe(reading, now)
    };
    readings.iter().map(observe).collect()
}

proptest! {
    #[test]
    fn unknown_readings_never_stop_a_job(steps in prop::collection::vec(0u64..20_000, 0..50)) {
        let unknown: Vec<_> = steps.into_iter().map(|ms| (ms, Reading::default())).collect();
        prop_assert!(verdicts(&unknown, Duration::ZERO).iter().all(|v| *v == Verdict::Continue));
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
    fn a_job_inside_all_its_limits_is_never_stopped(
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
        prop_assert!(verdicts(&readings, Duration::ZERO).iter().all(|v| *v == Verdict::Continue));
    }
}
