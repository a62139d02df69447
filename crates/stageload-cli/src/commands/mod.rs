//! One file per subcommand: `guard`, `mesh`, `meter`, `replay`, `summary`.

pub(crate) mod guard;
pub(crate) mod mesh;
pub(crate) mod meter;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod stand_by;
pub(crate) mod summary;
