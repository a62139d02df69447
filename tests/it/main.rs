//! End to end: the real binary, real processes, real signals. Mounted from stageload-cli.
//!
//! * `bounds`: limits are held, over the whole tree, and nobody is stopped without cause
//! * `ending`: how jobs and guards end, and the exit codes
//! * `starting`: waiting for room, bad flags, commands that cannot start
//! * `traces`: events and looks in one file, on bad disks too; `summary`
//! * `mesh`: the mesh command around a worker
//! * `hog`: the job that most tests guard; `support`: what the tests share
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod ending;
mod hog;
mod mesh;
mod starting;
mod support;
mod traces;
