//! The stageload command.
fn main() {}
