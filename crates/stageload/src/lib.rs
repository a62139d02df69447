//! What Stageload does.
