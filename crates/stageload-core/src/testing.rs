//! The recorded runs that the tests of this crate replay.

pub(crate) const EAGER: &str =
    include_str!("../../../tests/fixtures/traces/qwen-eager-1.trace.jsonl");
pub(crate) const STAGED: &str =
    include_str!("../../../tests/fixtures/traces/qwen-staged-1.trace.jsonl");
pub(crate) const OFFLOAD: &str =
    include_str!("../../../tests/fixtures/traces/qwen-offload-1.trace.jsonl");
pub(crate) const TAIL: &str =
    include_str!("../../../tests/fixtures/traces/pixal3d-eager-2026-10-04-tail.jsonl");
