//! End to end: the real binary, real processes, real signals. Mounted from stageload-cli.
//!
//! * `bounds`: limits are held, over the whole tree, and nobody is stopped without cause
//! * `scenarios`: what jobs do to their guard, from slow leaks to litters of processes
//! * `guard_death`: what becomes of a job whose guard is killed
//! * `crowd`: guards that wait for the same memory
//! * `hostile`: limits on files, pipes for files, long command lines, borrowed memory
//! * `terminal`: Ctrl-C, Ctrl-Z and hang-ups, on a terminal
//! * `ending`: how jobs and guards end, and the exit codes
//! * `starting`: waiting for room, bad flags, commands that cannot start
//! * `traces`: events and looks in one file, on bad disks too; `summary`
//! * `reports`: what `replay` and `summary` tell of a trace
//! * `meter`: live readings, on a terminal and elsewhere
//! * `queue`: jobs that wait, and all that is killed under them
//! * `mesh`: the mesh command around a worker
//! * `hog`: the job that most tests guard; `support`: what the tests share
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
#[cfg(target_os = "linux")]
mod crowd;
mod ending;
mod guard_death;
mod hog;
mod hostile;
mod mesh;
mod meter;
mod queue;
mod reports;
mod scenarios;
mod starting;
mod support;
mod terminal;
mod traces;
