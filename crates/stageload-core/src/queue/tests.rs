//! The queue over a store that is a plain map: each case is a report of another queue that failed in it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::{Bytes, Moment, Percent, Reading, RoomPolicy};

fn secs(s: u64) -> Moment {
    Moment::awake(Duration::from_secs(s))
}

fn job(id: i64) -> Job {
    Job {
        id: JobId(id),
        lane: "ram".into(),
        owner: "me".into(),
        priority: 0,
        position: id,
        after: Vec::new(),
        room: RoomPolicy {
            wait_free: Percent::new(40).unwrap(),
            swap_budget: Bytes::gib(8),
            swap_limit: None,
            need: None,
            quiet_for: Duration::from_secs(60),
            start_timeout: Duration::MAX,
        },
        watches_busy: false,
        expected: None,
        attempts: 0,
        lower: Lower::Nothing,
        state: JobState::queued(),
    }
}

fn owned(id: i64, owner: &str) -> Job {
    Job { owner: owner.into(), ..job(id) }
}

fn expecting(id: i64, gib: u64, stage: &str) -> Job {
    let expected = Expected { peak: Bytes::gib(gib), stage: Some(stage.into()) };
    Job { expected: Some(expected), ..job(id) }
}

fn running(job: Job) -> Job {
    Job { attempts: 1, state: JobState::Running { attempt: 1 }, ..job }
}

/// A machine of 48 GB on which everything waits for nothing, but with `free` GB to be had.
fn reading(free: u64) -> Reading {
    Reading {
        level: Percent::new(80),
        claimable: Some(Bytes::gib(free)),
        demand: Some(Bytes::gib(48 - free)),
        ..Reading::default()
    }
}

fn engine(jobs: Vec<Job>) -> Engine {
    let mut engine = Engine::new(Some(Bytes::gib(48)));
    engine.on(Event::Loaded { jobs, turns: Turns::default(), paused: None }, secs(0));
    engine
}

fn look(engine: &mut Engine, free: u64, at: u64) -> Vec<Effect> {
    look_with(engine, free, at, &[], &[])
}

fn look_with(
    engine: &mut Engine,
    free: u64,
    at: u64,
    held: &[(i64, u64)],
    busy: &[(i64, &str)],
) -> Vec<Effect> {
    let held = held.iter().map(|(id, gib)| (JobId(*id), Bytes::gib(*gib))).collect();
    let busy = busy.iter().map(|(id, name)| (JobId(*id), vec![(*name).to_owned()])).collect();
    engine.on(Event::Looked { reading: Box::new(reading(free)), held, busy }, secs(at))
}

fn found(engine: &mut Engine, id: i64, life: Life, at: u64) -> Vec<Effect> {
    engine.on(Event::Found { job: JobId(id), attempt: 1, life }, secs(at))
}

fn start(id: i64) -> Effect {
    Effect::Start { job: JobId(id), attempt: 1 }
}

fn starts(effects: &[Effect]) -> Vec<i64> {
    let start = |effect: &Effect| match effect {
        Effect::Start { job, .. } => Some(job.0),
        _ => None,
    };
    effects.iter().filter_map(start).collect()
}

fn told(effects: &[Effect], id: i64) -> String {
    let words = effects.iter().find_map(|effect| match effect {
        Effect::Tell { job, waits_for } if job.0 == id => Some(waits_for.join("; ")),
        _ => None,
    });
    words.unwrap_or_else(|| panic!("nothing told of job {id}: {effects:?}"))
}

fn settled(effects: &[Effect]) -> JobState {
    let state = effects.iter().find_map(|effect| match effect {
        Effect::Settle { state, .. } => Some(state.clone()),
        _ => None,
    });
    state.unwrap_or_else(|| panic!("nothing settled: {effects:?}"))
}

#[test]
fn jobs_of_one_lane_run_one_at_a_time_in_order() {
    let mut engine = engine(vec![job(1), job(2)]);
    assert_eq!(look(&mut engine, 40, 0), [start(1)]);
    let waits = look(&mut engine, 40, 1);
    assert_eq!((starts(&waits), told(&waits, 2)), (vec![], "job 1 is starting".to_owned()));
    let over = found(&mut engine, 1, Life::Over(Ending::Exited { code: 0, means: None }), 2);
    assert_eq!(settled(&over), JobState::Done);
    assert_eq!(look(&mut engine, 40, 3), [start(2)]);
}

#[test]
fn lanes_do_not_wait_for_each_other_but_start_one_at_a_look() {
    let mut engine = engine(vec![job(1), Job { lane: "net".into(), ..job(2) }, job(3)]);
    assert_eq!(starts(&look(&mut engine, 40, 0)).len(), 1);
    assert_eq!(starts(&look(&mut engine, 40, 1)).len(), 1);
    assert_eq!(starts(&look(&mut engine, 40, 2)), [] as [i64; 0]);
}

#[test]
fn owners_take_turns_and_nobodys_hundred_jobs_hold_up_anothers_one() {
    let mut jobs: Vec<Job> = (1..=100).map(|id| owned(id, "batch")).collect();
    jobs.push(owned(101, "me"));
    jobs.push(Job { priority: 1, ..owned(102, "batch") });
    let order: Vec<i64> = Turns::default().order(jobs.iter()).iter().map(|job| job.id.0).collect();
    assert_eq!(order[..4], [102, 101, 1, 2]);
    let all = Turns::default().order(jobs.iter()).len();
    assert_eq!(all, jobs.len());
    let mut turns = Turns::default();
    turns.serve("ram", "me", 7);
    let order: Vec<i64> = turns.order(jobs.iter()).iter().map(|job| job.id.0).collect();
    assert_eq!(order[..4], [102, 101, 1, 2], "whoever was served last comes after");
}

#[test]
fn what_a_job_waits_for_is_said_with_the_stage_that_needs_it() {
    let mut engine = engine(vec![expecting(1, 31, "texture")]);
    assert_eq!(told(&look(&mut engine, 27, 0), 1), "27.00 GB free, needs 31.00 GB in texture");
    assert_eq!(look(&mut engine, 27, 1), [], "once");
    assert_eq!(look(&mut engine, 31, 2), [start(1)]);
}

#[test]
fn a_job_that_can_never_fit_is_held_at_once() {
    let mut engine = engine(vec![expecting(1, 70, "export"), job(2)]);
    let effects = look(&mut engine, 40, 0);
    assert_eq!(
        settled(&effects),
        JobState::Held {
            why: "needs 70.00 GB, this machine has 48.00 GB: it can never fit".into()
        }
    );
    assert_eq!(look(&mut engine, 40, 1), [start(2)], "it holds up nobody");
}

#[test]
fn a_job_waits_until_the_busy_ones_have_been_gone_for_long_enough() {
    let mut engine = engine(vec![Job { watches_busy: true, ..job(1) }]);
    assert_eq!(engine.looking_out().collect::<Vec<_>>(), [JobId(1)]);
    let busy = look_with(&mut engine, 40, 0, &[], &[(1, "ltx-2-mlx")]);
    assert_eq!(told(&busy, 1), "busy: ltx-2-mlx");
    assert_eq!(told(&look(&mut engine, 40, 10), 1), "quiet for 0 s of 60 s");
    assert_eq!(starts(&look(&mut engine, 40, 69)), [] as [i64; 0]);
    assert_eq!(look(&mut engine, 40, 70), [start(1)]);
}

#[test]
fn a_busy_process_that_comes_again_and_again_lets_nothing_start_and_is_named_at_the_timeout() {
    let mut flapping = Job { watches_busy: true, ..job(1) };
    flapping.room.start_timeout = Duration::from_secs(600);
    let mut engine = engine(vec![flapping]);
    let mut last = Vec::new();
    for at in (0..=600).step_by(30) {
        let busy: &[(i64, &str)] = if at % 60 == 0 { &[(1, "ltx-2-mlx")] } else { &[] };
        last = look_with(&mut engine, 40, at, &[], busy);
        assert_eq!(starts(&last), [] as [i64; 0], "at {at}");
    }
    let JobState::Failed { why } = settled(&last) else { panic!("{last:?}") };
    assert!(why.contains("came back again and again: ltx-2-mlx (11 times)"), "{why}");
}

#[test]
fn a_night_with_the_lid_closed_is_no_quiet_time() {
    let mut engine = engine(vec![Job { watches_busy: true, ..job(1) }]);
    look(&mut engine, 40, 0);
    let morning = Moment { awake: Duration::from_secs(61), total: Duration::from_secs(30_000) };
    let looked = Event::Looked {
        reading: Box::new(reading(40)),
        held: BTreeMap::new(),
        busy: BTreeMap::new(),
    };
    assert_eq!(starts(&engine.on(looked, morning)), [] as [i64; 0]);
}

#[test]
fn memory_that_running_jobs_are_still_going_to_take_is_not_given_away() {
    let other = Job { lane: "other".into(), ..running(expecting(1, 20, "decode")) };
    let mut engine = engine(vec![other, expecting(2, 15, "decode")]);
    let waits = look_with(&mut engine, 30, 0, &[(1, 2)], &[]);
    assert!(told(&waits, 2).ends_with("18.00 GB of it are for jobs that run"), "{waits:?}");
    assert_eq!(starts(&look_with(&mut engine, 30, 1, &[(1, 19)], &[])), [2]);
}

#[test]
fn the_next_job_waits_until_the_memory_of_the_last_has_come_back() {
    let mut engine = engine(vec![running(job(1)), job(2)]);
    look_with(&mut engine, 20, 0, &[(1, 20)], &[]);
    found(&mut engine, 1, Life::Over(Ending::Exited { code: 0, means: None }), 1);
    assert_eq!(told(&look(&mut engine, 21, 2), 2), "the memory of job 1 is coming back");
    assert_eq!(look(&mut engine, 40, 3), [start(2)]);
}

#[test]
fn memory_is_waited_for_also_when_the_supervisor_has_written_the_end_itself() {
    let mut engine = engine(vec![running(job(1)), job(2)]);
    look_with(&mut engine, 20, 0, &[(1, 20)], &[]);
    let jobs = vec![job(2)];
    engine.on(Event::Loaded { jobs, turns: Turns::default(), paused: None }, secs(1));
    assert_eq!(told(&look(&mut engine, 21, 2), 2), "the memory of job 1 is coming back");
    assert_eq!(look(&mut engine, 40, 3), [start(2)]);
}

#[test]
fn a_job_that_was_stopped_before_it_began_is_stopped_and_not_put_back() {
    let stopping = Job { attempts: 1, state: JobState::Stopping { attempt: 1 }, ..job(1) };
    let mut engine = engine(vec![stopping]);
    assert_eq!(settled(&found(&mut engine, 1, Life::NeverBegan, 0)), JobState::Stopped);
}

#[test]
fn a_job_that_is_gone_after_somebody_wanted_it_stopped_is_stopped_but_not_by_a_reboot() {
    let stopping = Job { attempts: 1, state: JobState::Stopping { attempt: 1 }, ..job(1) };
    let mut engine = engine(vec![stopping.clone(), Job { id: JobId(2), ..stopping }]);
    let gone = |rebooted| Life::Vanished { rebooted, last: None };
    assert_eq!(settled(&found(&mut engine, 1, gone(false), 0)), JobState::Stopped);
    let rebooted = settled(&found(&mut engine, 2, gone(true), 0));
    assert!(matches!(rebooted, JobState::Interrupted { .. }), "{rebooted:?}");
}

#[test]
fn a_job_comes_after_those_it_names_and_is_held_if_one_of_them_fails() {
    let mut second = job(2);
    second.after = vec![JobId(1)];
    let mut engine = engine(vec![Job { position: 9, ..job(1) }, second]);
    assert_eq!(starts(&look(&mut engine, 40, 0)), [1], "though its position is later");
    found(
        &mut engine,
        1,
        Life::Over(Ending::Exited { code: 2, means: Some("bad input".into()) }),
        1,
    );
    let held = settled(&look(&mut engine, 40, 2));
    assert_eq!(held, JobState::Held { why: "job 1, after which it comes, is failed".into() });
}

#[test]
fn a_paused_queue_starts_nothing_and_says_so() {
    let mut engine = engine(vec![]);
    let paused = Some("by you".to_owned());
    engine.on(Event::Loaded { jobs: vec![job(1)], turns: Turns::default(), paused }, secs(0));
    assert!(!engine.needs_looks());
    assert_eq!(told(&look(&mut engine, 40, 0), 1), "the queue is paused: by you");
}

#[test]
fn after_a_reboot_the_job_is_interrupted_and_the_queue_paused_with_what_was_last_seen() {
    let mut engine = engine(vec![running(job(1)), job(2)]);
    let last = Some("in texture at 44.20 GB, swap +12.00 GB".to_owned());
    let effects = found(&mut engine, 1, Life::Vanished { rebooted: true, last }, 0);
    let why = "the machine went down in texture at 44.20 GB, swap +12.00 GB".to_owned();
    assert_eq!(settled(&effects), JobState::Interrupted { why: why.clone() });
    assert_eq!(effects[1], Effect::Pause { why: format!("job 1 was interrupted: {why}") });
    assert_eq!(starts(&look(&mut engine, 40, 1)), [] as [i64; 0], "nothing starts by itself");
}

#[test]
fn a_job_that_is_alive_is_adopted_and_one_that_never_began_goes_back_in_line() {
    let mut engine = engine(vec![
        running(job(1)),
        Job { lane: "b".into(), attempts: 1, state: JobState::Starting { attempt: 1 }, ..job(2) },
    ]);
    assert_eq!(found(&mut engine, 1, Life::Alive, 0), []);
    assert_eq!(settled(&found(&mut engine, 2, Life::NeverBegan, 0)), JobState::queued());
    assert_eq!(look(&mut engine, 40, 1), [Effect::Start { job: JobId(2), attempt: 2 }]);
    assert_eq!(engine.active().collect::<Vec<_>>(), [(JobId(1), 1), (JobId(2), 2)]);
}

#[test]
fn what_is_said_of_an_older_attempt_changes_nothing() {
    let mut engine =
        engine(vec![Job { attempts: 2, state: JobState::Running { attempt: 2 }, ..job(1) }]);
    assert_eq!(found(&mut engine, 1, Life::Over(Ending::Stopped), 0), []);
    assert_eq!(found(&mut engine, 9, Life::Over(Ending::Stopped), 0), []);
}

#[test]
fn after_a_kill_the_next_lower_setting_is_tried_only_if_that_was_allowed() {
    let killed = || {
        let why = "footprint 31.00 GB > limit 30.00 GB in stage texture".to_owned();
        Life::Over(Ending::Killed { rule: "limit".into(), why })
    };
    let with = |lower| engine(vec![Job { lower, ..running(job(1)) }]);
    let effects = found(&mut with(Lower::Allowed("grid 512".into())), 1, killed(), 1);
    assert_eq!(effects, [Effect::Lower { job: JobId(1), attempt: 1 }]);
    let held = settled(&found(&mut with(Lower::Ask("grid 512".into())), 1, killed(), 1));
    assert!(held.why().unwrap().ends_with("next lower: grid 512"), "{held:?}");
    let killed = settled(&found(&mut with(Lower::Nothing), 1, killed(), 1));
    assert_eq!(killed.name(), "killed");
}

#[test]
fn a_state_reads_back_as_it_was_written() {
    let states = [
        JobState::Queued { waits_for: vec!["quiet for 1 s of 60 s".into()] },
        JobState::Paused { attempt: 3 },
        JobState::Done,
        JobState::Killed { why: "swap".into() },
    ];
    for state in states {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<JobState>(&text).unwrap(), state);
        assert!(text.contains(state.name()), "{text}");
    }
}
