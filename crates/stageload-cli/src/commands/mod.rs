//! One file per subcommand: `guard`, `mesh`, `meter`, `summary`.

pub(crate) mod guard;
pub(crate) mod mesh;
pub(crate) mod meter;
pub(crate) mod stand_by;
pub(crate) mod summary;
