//! A trace that anybody may have written: read, summed up, replayed and drawn.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use stageload_core::{Baseline, Bytes, Percent, Policy, read_trace, replay, summarize};

fuzz_target!(|raw: &[u8]| {
    let Ok(records) = read_trace(&String::from_utf8_lossy(raw)) else { return };
    summarize(&records);
    let policy = Policy {
        limit: Some(Bytes::gib(20)),
        swap_budget: Bytes::gib(8),
        swap_limit: Some(Bytes::gib(30)),
        kill_free: Percent::new(10).unwrap_or_default(),
        poll: Duration::from_secs(1),
    };
    replay(&records, policy, Baseline::default());
    let svg = stageload::chart(&[("trace".to_owned(), records)]);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "a number that is none was drawn");
});
