//! Table C.2 of the research, the rows a replay can show: what happens on the machine goes in as
//! looks on a fake clock, and what the row calls right must come out.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::{Escalation, Grace, Member, Step};

const RAM: Bytes = Bytes::gib(48);

fn policy() -> Policy {
    Policy {
        limit: None,
        swap_budget: Bytes::gib(8),
        swap_limit: None,
        kill_free: Percent::new(10).unwrap(),
        poll: Duration::from_secs(1),
    }
}

fn limited(limit: Bytes) -> Policy {
    Policy { limit: Some(limit), ..policy() }
}

fn quiet_machine() -> Baseline {
    Baseline { swap_used: Some(Bytes::ZERO), demand: Some(Bytes::gib(10)), memory: Some(RAM) }
}

fn gib(n: f64) -> Bytes {
    Bytes((n.max(0.0) * f64::from(1 << 30)) as u64)
}

/// A machine where nothing happens and a job of 1 GB runs.
fn calm() -> Reading {
    Reading {
        footprint: Some(Bytes::gib(1)),
        swap_used: Some(Bytes::ZERO),
        level: Percent::new(60),
        demand: Some(Bytes::gib(11)),
        claimable: Some(Bytes::gib(29)),
        ..Reading::default()
    }
}

/// The looks a guard takes at its own pace from second `from` on, until it stops the job or the
/// time is over, and what it decided at which second.
fn watch(
    guard: &mut Guard,
    seconds: Range<f64>,
    machine: impl Fn(f64) -> Reading,
) -> Vec<(f64, Verdict)> {
    let mut decided = Vec::new();
    let mut t = seconds.start;
    while t < seconds.end {
        let reading = Reading { t, ..machine(t) };
        let verdict = guard.observe(&reading, Moment::awake(Duration::from_secs_f64(t)));
        let is_stop = matches!(verdict, Verdict::Stop(_));
        if verdict != Verdict::Continue {
            decided.push((t, verdict));
        }
        if is_stop {
            break;
        }
        t += guard.next_look().as_secs_f64();
    }
    decided
}

fn warnings(decided: &[(f64, Verdict)]) -> usize {
    decided.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Warn(_))).count()
}

fn stop(decided: &[(f64, Verdict)]) -> Option<(f64, &Reason)> {
    decided.iter().find_map(|(t, verdict)| match verdict {
        Verdict::Stop(reason) => Some((*t, reason)),
        _ => None,
    })
}

#[test]
fn row_1_a_slow_leak_is_warned_of_at_80_percent_and_stopped_at_the_limit_within_1_percent() {
    let mut guard = Guard::new(limited(Bytes::gib(4)), quiet_machine());
    let held = |t: f64| gib(t * 0.05);
    let decided = watch(&mut guard, 0.0..200.0, |t| Reading { footprint: Some(held(t)), ..calm() });
    assert!(
        matches!(&decided[0], (t, Verdict::Warn(Warning::Close { .. })) if held(*t).as_gb() < 3.3)
    );
    let (t, _) = stop(&decided).unwrap();
    assert!(held(t) > Bytes::gib(4) && held(t).as_gb() < 4.04, "{t}");
}

#[test]
fn row_2_a_burst_from_27_to_44_gb_is_stopped_by_forecast_before_the_system_swaps() {
    // Of 48 GB, 8 are wired; the ratio falls as the job takes what was available.
    let held = |t: f64| gib(27.0 + 1.7 * (t - 5.0).max(0.0));
    let reading = |t: f64| {
        let available = 40.0 - held(t).as_gb();
        Reading {
            footprint: Some(held(t)),
            demand: Some(gib(8.0 + held(t).as_gb())),
            r: Some((available + 5.0).max(1.0) / 25.0),
            swap_used: Some(gib(held(t).as_gb() - 38.0)),
            ..calm()
        }
    };
    let mut guard = Guard::new(Policy { swap_budget: Bytes::ZERO, ..policy() }, quiet_machine());
    let decided = watch(&mut guard, 0.0..20.0, reading);
    let (t, reason) = stop(&decided).unwrap();
    assert!(reading(t).r.unwrap() >= SWAPS_BELOW, "{reason}");
    assert!(reading(t).swap_used.unwrap() == Bytes::ZERO && held(t) > Bytes::gib(30), "{reason}");
}

#[test]
fn row_3_a_sawtooth_that_peaks_at_95_percent_is_never_stopped_and_warned_of_once_a_minute() {
    let mut guard = Guard::new(limited(Bytes::gib(4)), quiet_machine());
    let held = |t: f64| gib(1.0 + 2.8 * t.fract());
    let decided = watch(&mut guard, 0.0..180.0, |t| Reading { footprint: Some(held(t)), ..calm() });
    assert_eq!(stop(&decided), None);
    assert!((1..=3).contains(&warnings(&decided)), "{decided:?}");
}

#[test]
fn row_4_a_peak_over_the_limit_that_is_gone_after_50_ms_stops_nobody() {
    for step in [0.01, 0.02, 0.05] {
        let mut guard = Guard::new(limited(Bytes::gib(4)), quiet_machine());
        let held = |t: f64| if (10.0..10.05).contains(&t) { gib(6.0) } else { gib(3.0) };
        for i in 0..2000 {
            let t = f64::from(i) * step;
            let reading = Reading { footprint: Some(held(t)), ..calm() };
            let verdict = guard.observe(&reading, Moment::awake(Duration::from_secs_f64(t)));
            assert!(!matches!(verdict, Verdict::Stop(_)), "{t}");
        }
    }
}

#[test]
fn row_10_looks_go_on_through_the_grace_and_the_floor_cuts_it() {
    let mut guard = Guard::new(policy(), quiet_machine());
    let mut escalation = Escalation::begin(Grace::default(), calm().footprint, Duration::ZERO);
    let step = |guard: &mut Guard, escalation: &mut Escalation, left: u64, ms: u64| {
        let now = Duration::from_millis(ms);
        let reading = Reading { claimable: Some(Bytes::gib(left)), ..calm() };
        let verdict = guard.observe(&reading, Moment::awake(now));
        let is_floor = matches!(&verdict, Verdict::Stop(reason) if reason.breach.is_floor());
        escalation.step(reading.footprint, is_floor, now)
    };
    assert_eq!(step(&mut guard, &mut escalation, 5, 0), Step::Wait);
    assert_eq!(step(&mut guard, &mut escalation, 1, 50), Step::Wait);
    assert_eq!(step(&mut guard, &mut escalation, 1, 200), Step::Kill);
}

#[test]
fn row_14_a_process_that_cannot_be_killed_is_given_up_and_not_waited_for_without_end() {
    let mut escalation = Escalation::begin(Grace::default(), calm().footprint, Duration::ZERO);
    let steps: Vec<Step> =
        (0..30).map(|s| escalation.step(calm().footprint, false, Duration::from_secs(s))).collect();
    assert_eq!(steps[4], Step::Wait);
    assert_eq!(steps[14], Step::Kill);
    assert_eq!(steps[15..], [Step::GiveUp; 15]);
}

#[test]
fn row_19_eight_hours_of_sleep_are_no_streak_and_after_them_only_the_floor_stops_a_job() {
    let mut guard = Guard::new(policy(), quiet_machine());
    let low = |percent, left| Reading {
        level: Percent::new(percent),
        claimable: Some(Bytes::gib(left)),
        ..calm()
    };
    let moment = |awake: u64, slept: u64| Moment {
        awake: Duration::from_millis(awake),
        total: Duration::from_millis(awake + slept),
    };
    let night = 8 * 3_600_000;
    assert_eq!(guard.observe(&low(9, 5), moment(0, 0)), Verdict::Continue);
    for ms in (2900..12_000).step_by(100) {
        let verdict = guard.observe(&low(9, 5), moment(ms, night));
        assert!(!matches!(verdict, Verdict::Stop(_)), "{ms} ms");
    }
    let mut woken = guard.clone();
    assert!(matches!(guard.observe(&low(9, 5), moment(13_000, night)), Verdict::Stop(_)));
    for ms in [12_000, 12_200] {
        woken.observe(&low(2, 1), moment(ms, 2 * night));
    }
    let Verdict::Stop(reason) = woken.observe(&low(2, 1), moment(12_400, 2 * night)) else {
        panic!()
    };
    assert!(reason.breach.is_floor(), "{reason}");
}

#[test]
fn row_20_swap_that_is_off_or_whose_total_grows_stops_nobody() {
    let mut off = Guard::new(policy(), quiet_machine());
    let none = |_| Reading { swap_total: Some(Bytes::ZERO), ..calm() };
    assert_eq!(watch(&mut off, 0.0..60.0, none), []);
    let mut added = Guard::new(policy(), quiet_machine());
    let elastic = |t: f64| Reading { swap_total: Some(gib(1.0 + t / 8.0)), ..calm() };
    assert_eq!(watch(&mut added, 0.0..60.0, elastic), []);
}

#[test]
fn row_21_swap_that_another_process_fills_is_told_and_stops_nobody_but_at_the_floor() {
    let others = |t: f64, left: f64| Reading {
        swap_used: Some(gib(0.5 * t)),
        demand: Some(gib(11.0 + 0.5 * t)),
        claimable: Some(gib(left)),
        ..calm()
    };
    let mut guard = Guard::new(policy(), quiet_machine());
    let decided = watch(&mut guard, 0.0..30.0, |t| others(t, 10.0));
    assert_eq!(stop(&decided), None);
    let [(_, Verdict::Warn(first)), ..] = &decided[..] else { panic!("{decided:?}") };
    let told: Vec<String> = decided
        .iter()
        .filter_map(|(_, v)| if let Verdict::Warn(w) = v { Some(w.to_string()) } else { None })
        .collect();
    assert!(told.iter().any(|w| w.contains("the job made 0 % of the growth")), "{told:?} {first}");
    let decided = watch(&mut guard, 30.0..40.0, |t| others(t, 1.0));
    assert!(stop(&decided).is_some_and(|(_, reason)| reason.breach.is_floor()));
}

#[test]
fn row_22_of_two_that_grow_the_one_with_the_larger_share_is_to_blame_and_both_are_told() {
    let both = |ours: f64| {
        move |t: f64| Reading {
            footprint: Some(gib(1.0 + ours * t)),
            swap_used: Some(gib(t)),
            demand: Some(gib(11.0 + t)),
            ..calm()
        }
    };
    let mut guard = Guard::new(policy(), quiet_machine());
    let decided = watch(&mut guard, 0.0..20.0, both(0.6));
    let (_, reason) = stop(&decided).unwrap();
    assert!((reason.share.unwrap() - 0.6).abs() < 0.02, "{reason:?}");
    let mut guard = Guard::new(policy(), quiet_machine());
    assert_eq!(stop(&watch(&mut guard, 0.0..20.0, both(0.4))), None);
}

#[test]
fn row_23_swap_that_was_there_before_the_start_is_not_the_jobs() {
    let full = Baseline { swap_used: Some(Bytes::gib(20)), ..quiet_machine() };
    let mut guard = Guard::new(policy(), full);
    let residue = |_| Reading { swap_used: Some(Bytes::gib(20)), ..calm() };
    assert_eq!(watch(&mut guard, 0.0..60.0, residue), []);
}

#[test]
fn row_27_a_footprint_that_follows_a_release_half_a_second_late_stops_nobody() {
    let mut guard = Guard::new(limited(Bytes::gib(20)), quiet_machine());
    // 15 GB are released at 10.0 and 12 GB loaded right after; the old pages leave at 10.5.
    let held = |t: f64| match t {
        t if t < 10.0 => 18.0,
        t if t < 10.5 => 18.0 + 12.0 * (t - 10.0) / 0.5,
        _ => 15.0,
    };
    watch(&mut guard, 0.0..10.0, |t| Reading { footprint: Some(gib(held(t))), ..calm() });
    let release = Event { nbytes: Some(Bytes::gib(15)), ..Event::new(EventKind::Release) };
    guard.hear(&release, Moment::awake(Duration::from_secs(10)));
    let decided =
        watch(&mut guard, 10.0..20.0, |t| Reading { footprint: Some(gib(held(t))), ..calm() });
    assert_eq!(stop(&decided), None);
}

#[test]
fn row_28_a_job_that_reads_60_gb_of_files_is_not_stopped_for_the_file_cache() {
    // The cache takes what is free; demand and what can be claimed stay.
    let mut guard = Guard::new(limited(Bytes::gib(4)), quiet_machine());
    assert_eq!(watch(&mut guard, 0.0..60.0, |_| calm()), []);
}

#[test]
fn row_29_values_that_are_old_or_unknown_make_no_trend_and_stop_nobody() {
    let mut guard = Guard::new(Policy { swap_budget: Bytes::ZERO, ..policy() }, quiet_machine());
    let stale = |t: f64| Reading { r: Some(0.30), age: Some(3.1 + t), ..calm() };
    assert_eq!(watch(&mut guard, 0.0..30.0, stale), []);
    let mut guard = Guard::new(policy(), quiet_machine());
    let failed = |_| Reading::default();
    let decided = watch(&mut guard, 0.0..30.0, failed);
    assert_eq!((stop(&decided), warnings(&decided)), (None, 1), "told once");
}

#[test]
fn row_36_a_value_that_swings_over_its_line_is_told_once_a_minute() {
    let mut guard = Guard::new(limited(Bytes::gib(10)), quiet_machine());
    let swing = |t: f64| if ((t * 10.0) as u64).is_multiple_of(2) { 7.9 } else { 8.1 };
    let decided =
        watch(&mut guard, 0.0..59.0, |t| Reading { footprint: Some(gib(swing(t))), ..calm() });
    assert_eq!((stop(&decided), warnings(&decided)), (None, 1));
}

#[test]
fn on_a_machine_without_swap_a_burst_is_stopped_before_the_floor() {
    let held = |t: f64| gib(1.0 + 1.7 * t);
    let reading = |t: f64| Reading {
        footprint: Some(held(t)),
        demand: Some(gib(10.0 + held(t).as_gb())),
        claimable: Some(gib(38.0 - held(t).as_gb())),
        ..calm()
    };
    let mut guard = Guard::new(policy(), quiet_machine());
    let (t, reason) = watch(&mut guard, 0.0..30.0, reading).pop().unwrap();
    assert!(matches!(reason, Verdict::Stop(_)), "{reason:?}");
    let left = reading(t).claimable.unwrap();
    assert!(left > policy().floor(RAM) && left < Bytes::gib(4), "{left}");
}

#[test]
fn a_job_to_blame_minutes_ago_is_still_to_blame_when_nothing_has_grown_since() {
    let mut guard = Guard::new(policy(), quiet_machine());
    let filled = |t: f64| {
        let held = (3.0 * t).min(34.0);
        Reading {
            footprint: Some(gib(held)),
            demand: Some(gib(10.0 + held)),
            level: Percent::new(if t < 120.0 { 20 } else { 8 }),
            claimable: Some(Bytes::gib(4)),
            ..calm()
        }
    };
    let decided = watch(&mut guard, 0.0..150.0, filled);
    let (t, reason) = stop(&decided).unwrap();
    assert!(t > 122.0 && matches!(reason.breach, Breach::LevelLow { .. }), "{reason}");
    assert_eq!(reason.share, Some(1.0));
}

proptest! {
    /// Row 18: the wall clock is in the reading and in no decision.
    #[test]
    fn row_18_a_wall_clock_that_jumps_changes_no_decision(
        looks in prop::collection::vec((1u64..2_000, 0.0..40.0f64, 0.0..12.0f64, -1e9..1e9f64), 1..40),
    ) {
        let run = |with_clock: bool| {
            let mut guard = Guard::new(limited(Bytes::gib(30)), quiet_machine());
            let mut now = Duration::ZERO;
            let judge = |(ms, held, swap, utc): &(u64, f64, f64, f64)| {
                now += Duration::from_millis(*ms);
                let reading = Reading {
                    utc: with_clock.then_some(*utc),
                    footprint: Some(gib(*held)),
                    swap_used: Some(gib(*swap)),
                    members: vec![Member { pid: 7, footprint: gib(*held) }],
                    ..calm()
                };
                guard.observe(&reading, Moment::awake(now))
            };
            looks.iter().map(judge).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(true), run(false));
    }

    /// Of each kind, whatever the readings do.
    #[test]
    fn no_warning_comes_twice_in_a_minute(
        looks in prop::collection::vec((1u64..500, 0u64..12, 0u64..10, 0u8..=100), 1..200),
    ) {
        let mut guard = Guard::new(limited(Bytes::gib(10)), quiet_machine());
        let mut now = Duration::ZERO;
        let mut told = std::collections::BTreeMap::new();
        for (ms, held, swap, level) in looks {
            now += Duration::from_millis(ms);
            let reading = Reading {
                footprint: Some(Bytes::gib(held)),
                swap_used: Some(Bytes::gib(swap)),
                level: Percent::new(level),
                ..calm()
            };
            if let Verdict::Warn(warning) = guard.observe(&reading, Moment::awake(now)) {
                let kind = format!("{:?}", std::mem::discriminant(&warning))
                    + &format!("{warning:?}").chars().take(24).collect::<String>();
                let before = told.insert(kind, now);
                prop_assert!(before.is_none_or(|before| now >= before + Duration::from_secs(60)));
            }
        }
    }
}
