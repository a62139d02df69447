//! The recorded runs that the tests of this crate replay.

pub(crate) const EAGER: &str =
    include_str!("../../../tests/fixtures/traces/qwen-eager-1.trace.jsonl");
pub(crate) const STAGED: &str =
    include_str!("../../../tests/fixtures/traces/qwen-staged-1.trace.jsonl");
pub(crate) const OFFLOAD: &str =
    include_str!("../../../tests/fixtures/traces/qwen-offload-1.trace.jsonl");
pub(crate) const TAIL: &str =
    include_str!("../../../tests/fixtures/traces/pixal3d-eager-2026-10-04-tail.jsonl");

/// The rules of `stageload guard` without a flag.
pub(crate) fn policy() -> crate::Policy {
    crate::Policy {
        limit: None,
        swap_budget: crate::Bytes::gib(8),
        swap_limit: None,
        kill_free: crate::Percent::new(10).unwrap_or_default(),
        poll: std::time::Duration::from_secs(1),
    }
}
