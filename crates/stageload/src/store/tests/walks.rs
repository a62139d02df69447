//! Any calls in any order leave every job in a state that it can be in.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Call {
    Add { after: Option<i64>, is_held: bool },
    Start { attempt: u32 },
    Begin { attempt: u32 },
    Run { attempt: u32 },
    Pausing,
    Paused { attempt: u32 },
    Resumed,
    Finish { attempt: u32, ending: Ending, then: Then },
    Settle { attempt: Option<u32>, state: JobState },
    Lower { attempt: u32 },
    Tell,
    Stop,
    StopQueued,
    Retry,
    Edit { after: Option<i64> },
    Move(Spot),
    Clear,
    Reopen,
}

fn any_state() -> impl Strategy<Value = JobState> {
    prop_oneof![
        Just(JobState::queued()),
        Just(JobState::Running { attempt: 1 }),
        Just(JobState::Held { why: "?".into() }),
        Just(JobState::Interrupted { why: "?".into() }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let attempt = || 0..4u32;
    let other = || 1..9i64;
    let then = prop_oneof![
        2 => Just(Then::ByEnding),
        1 => any_state().prop_map(Then::At),
        1 => Just(Then::AsItStands),
    ];
    let spot = prop_oneof![
        Just(Spot::First),
        Just(Spot::Last),
        other().prop_map(|id| Spot::Before(JobId(id))),
        other().prop_map(|id| Spot::After(JobId(id))),
    ];
    let ending = prop_oneof![Just(done()), Just(killed()), Just(Ending::Stopped)];
    prop_oneof![
        3 => (prop::option::of(other()), any::<bool>())
            .prop_map(|(after, is_held)| Call::Add { after, is_held }),
        4 => attempt().prop_map(|attempt| Call::Start { attempt }),
        4 => attempt().prop_map(|attempt| Call::Begin { attempt }),
        4 => attempt().prop_map(|attempt| Call::Run { attempt }),
        1 => Just(Call::Pausing),
        1 => attempt().prop_map(|attempt| Call::Paused { attempt }),
        1 => Just(Call::Resumed),
        3 => (attempt(), ending, then)
            .prop_map(|(attempt, ending, then)| Call::Finish { attempt, ending, then }),
        2 => (prop::option::of(attempt()), any_state())
            .prop_map(|(attempt, state)| Call::Settle { attempt, state }),
        1 => attempt().prop_map(|attempt| Call::Lower { attempt }),
        1 => Just(Call::Tell),
        1 => Just(Call::Stop),
        1 => Just(Call::StopQueued),
        2 => Just(Call::Retry),
        1 => prop::option::of(other()).prop_map(|after| Call::Edit { after }),
        3 => spot.prop_map(Call::Move),
        1 => Just(Call::Clear),
        1 => Just(Call::Reopen),
    ]
}

fn list(after: Option<i64>) -> Vec<JobId> {
    after.map(JobId).into_iter().collect()
}

/// Whether the call did anything; a refusal is an answer, a failure is none.
fn make(store: &mut Store, id: JobId, call: &Call) -> bool {
    let made = match call.clone() {
        Call::Add { after, is_held } => {
            let hold = is_held.then(|| "?".to_owned());
            store.add(&NewJob { after: list(after), hold, ..new_job("k") }).map(|_| true)
        }
        Call::Start { attempt } => store.start(id, attempt),
        Call::Begin { attempt } => store.begin(id, attempt, &supervisor("t")),
        Call::Run { attempt } => store.run(id, attempt),
        Call::Pausing => store.pausing(id),
        Call::Paused { attempt } => store.paused(id, attempt),
        Call::Resumed => store.resumed(id),
        Call::Finish { attempt, ending, then } => {
            store.finish(id, attempt, &Finish { then, ..finish("t", ending) })
        }
        Call::Settle { attempt, state } => store.settle(id, attempt, &state),
        Call::Lower { attempt } => store.lower(id, attempt, &spec("lower")),
        Call::Tell => store.tell(id, &["room".to_owned()]),
        Call::Stop => store.stop(id).map(|state| state.is_some()),
        Call::StopQueued => store.stop_queued(id),
        Call::Retry => store.retry(id),
        Call::Edit { after } => store.edit(id, &spec("edited"), 1, &list(after)),
        Call::Move(spot) => store.move_to(id, spot),
        Call::Clear => store.clear(Clear::Jobs(&[id])).map(|removed| !removed.is_empty()),
        Call::Reopen => Ok(true),
    };
    match made {
        Ok(did) => did,
        Err(Error::NoJob { .. } | Error::AfterItself { .. }) => false,
        Err(error) => panic!("{call:?}: {error}"),
    }
}

fn all(store: &Store) -> BTreeMap<JobId, JobRow> {
    let (open, over) = (store.unfinished().unwrap(), store.finished(usize::MAX).unwrap());
    let positions: Vec<i64> = open.iter().map(|job| job.position).collect();
    assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{positions:?}");
    let count = open.len() + over.len();
    let all: BTreeMap<_, _> = open.into_iter().chain(over).map(|job| (job.id, job)).collect();
    assert_eq!(all.len(), count, "each is in one list, once");
    all
}

fn check(store: &Store, jobs: &BTreeMap<JobId, JobRow>) {
    for job in jobs.values() {
        let attempts = store.attempts(job.id).unwrap();
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..=job.attempts).collect::<Vec<_>>(), "one row for each attempt");
        if let Some(active) = job.state.attempt() {
            assert_eq!(active, job.attempts, "only the last can be active");
        }
        let has_begun = attempts.last().is_some_and(|attempt| attempt.supervisor.is_some());
        let is_starting = matches!(job.state, JobState::Starting { .. });
        assert!(!job.state.is_active() || is_starting || has_begun, "{:?}", job.state);
        if job.state == JobState::Done {
            assert_eq!(attempts.last().unwrap().ending, Some(done()), "done, and did not end so");
        }
        for attempt in &attempts {
            assert_eq!(attempt.ending.is_some(), attempt.ended_utc.is_some());
            assert!(attempt.ending.is_none() || attempt.supervisor.is_some());
        }
        for id in &job.after {
            let is_open = matches!(job.state, JobState::Held { .. }) || !job.state.is_over();
            assert!(!is_open || jobs.contains_key(id), "{} comes after {id}", job.id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_calls_in_any_order_leave_every_job_where_it_can_stand_and_change_only_that_one(
        calls in prop::collection::vec((1..7i64, call()), 1..60),
    ) {
        let home = home();
        let mut store = open(home.path());
        store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
        let mut before = all(&store);
        for (id, call) in &calls {
            let id = JobId(*id);
            if matches!(call, Call::Reopen) {
                drop(store);
                store = open(home.path());
            }
            let did = make(&mut store, id, call);
            let jobs = all(&store);
            check(&store, &jobs);
            for (other, was) in before.iter().filter(|(other, _)| **other != id || !did) {
                let is = &jobs[other];
                prop_assert_eq!((&is.state, &is.spec), (&was.state, &was.spec), "{:?}", call);
            }
            before = jobs;
        }
        // Nothing that was added is lost but what was cleared away, and an engine can take it in.
        let mut engine = stageload_core::queue::Engine::default();
        let (jobs, turns, paused) = store.load().unwrap();
        let now = stageload_core::Moment::awake(Duration::from_secs(1));
        let loaded = stageload_core::queue::Event::Loaded { jobs, turns, paused };
        engine.on(loaded, now);
        let active = before.values().filter_map(|job| Some((job.id, job.state.attempt()?)));
        prop_assert_eq!(engine.active().collect::<Vec<_>>(), active.collect::<Vec<_>>());
    }
}
