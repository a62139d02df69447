//! `stageload mesh`: one picture to a textured mesh. The work is done by the worker
//! `stageload-mesh`, a process of its own that links libtorch; here it is found, guarded and shown.
//! What the picture is is the worker's business; that it is there is seen before the wait for room.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::builder::{OsStringValueParser, TypedValueParser};
use stageload::core::{Bytes, EVENTS_ENV, summarize};
use stageload::{JOB_ENV, Outcome, become_program, load_trace, run as run_job};

use crate::commands::summary::write_chart;
use crate::failure::Failure;
use crate::flags::GuardFlags;
use crate::live::Live;
use crate::output;
use crate::table::table;

const WORKER: &str = "stageload-mesh";
/// Names a worker other than the one beside this program.
const WORKER_ENV: &str = "STAGELOAD_MESH_WORKER";
/// What the worker ends with when it has not begun: usage, data, input, output.
const REFUSALS: [i32; 5] = [2, 64, 65, 66, 73];

/// Make a textured mesh (GLB) from one picture, under the guard
///
/// Exit codes: 0 done; 2 bad usage; 65 bad picture; 66 picture cannot be read; 73 output cannot be
/// created; 74 output cannot be written; 70 internal; 3, 4, 127 and 128+N as for `stageload guard`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The picture
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Where the mesh goes; IMAGE's name with .glb in the current directory if absent
    #[arg(short, long, value_name = "OUT.glb", value_parser = OsStringValueParser::new().try_map(glb))]
    out: Option<PathBuf>,

    #[command(flatten)]
    mesh: MeshFlags,

    #[command(flatten)]
    guard: GuardFlags,

    /// Some of the guard's flags were given by hand.
    #[arg(skip)]
    pub(crate) has_guard_flags: bool,
}

/// Passed to the worker as they are; it has the defaults.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Mesh")]
struct MeshFlags {
    /// Resolution of the shape
    #[arg(long, value_name = "N", value_parser = ["512", "1024"])]
    grid: Option<String>,

    /// Faces of the finished mesh
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..=5_000_000))]
    faces: Option<u32>,

    /// Largest width of the texture atlas, which is half as high
    #[arg(long, value_name = "N", value_parser = ["1024", "2048", "4096"])]
    texture: Option<String>,

    /// What the unseen side is painted with
    #[arg(long, value_name = "WAY", value_parser = ["mirror", "rim"])]
    back: Option<String>,

    /// How much of the surface's fine relief is taken from the picture, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    relief: Option<f64>,

    /// Same seed, same mesh
    #[arg(long, value_name = "N")]
    seed: Option<u32>,

    /// Keep only the current stage's models in memory, or all
    #[arg(long, value_name = "WAY", value_parser = ["staged", "eager"])]
    load: Option<String>,

    /// What computes
    #[arg(long, value_name = "WHICH", value_parser = ["auto", "cpu", "mps"])]
    device: Option<String>,

    /// The learned shape prior, or the plain inflation that it improves on
    #[arg(long, value_name = "WAY", value_parser = ["learned", "classical"])]
    shape: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<i32, Failure> {
    let worker = find_worker()?;
    check_readable(&args.image)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.image));
    let command = worker_command(worker, &args.image, &out, &args.mesh);
    if is_guarded() {
        if args.has_guard_flags {
            output::log(
                "mesh: a guard runs around this one and decides; its flags count, not these",
            );
        }
        return Err(become_worker(&command));
    }
    guarded(args, command, &out)
}

/// Whether a guard above already meters and watches this process. A guard sets both; events alone
/// are an old export, and whoever believed it would run unguarded.
fn is_guarded() -> bool {
    env::var_os(EVENTS_ENV).is_some() && env::var_os(JOB_ENV).is_some()
}

/// Half an hour of waiting for room is a long time to be told of a slip of the pen. In the worker's
/// words; a pipe is left alone, because what is read from it is gone.
fn check_readable(image: &Path) -> Result<(), Failure> {
    let read = || -> io::Result<()> {
        let kind = fs::metadata(image)?.file_type();
        if kind.is_file() || kind.is_dir() {
            let _ = File::open(image)?.read(&mut [0])?;
        }
        Ok(())
    };
    read().map_err(|error| {
        let path = image.display();
        let text = format!("cannot read {path}: {error}; check the path and its permissions");
        Failure::no_input(text)
    })
}

fn guarded(args: Args, command: Vec<OsString>, out: &Path) -> Result<i32, Failure> {
    let load = args.mesh.load.clone().unwrap_or_else(|| "staged".to_owned());
    let mut job = args.guard.job(command);
    job.env = patience();
    let is_own_trace = job.trace.is_some();
    job.trace = job.trace.or_else(|| default_trace(out));
    let trace = job.trace.clone();
    job.meta.insert("pipeline".into(), "mesh".into());
    job.meta.insert("mode".into(), load.into());
    job.meta.insert("image".into(), args.image.to_string_lossy().into());
    let mut live = Live::new(output::has_live_line(), job.policy.limit);
    let outcome = run_job(&job, &mut live)?;
    live.close();
    match trace {
        Some(trace) if is_worth_showing(&outcome) => {
            // What cannot be shown does not undo what was made.
            if let Err(failure) = show(out, &trace, outcome == Outcome::Exited(0)) {
                output::error(&failure.to_string());
            }
        }
        // The trace of a refusal says nothing; one that was asked for stays.
        Some(trace) if !is_own_trace => {
            fs::remove_file(trace).ok();
        }
        _ => {}
    }
    Ok(outcome.exit_code())
}

/// A worker that refuses its input has said why, and there is no run to show. One that failed on
/// the way has a run, and its trace is what tells why.
fn is_worth_showing(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Exited(code) => !REFUSALS.contains(code),
        Outcome::Signaled(_) | Outcome::Stopped(_) | Outcome::Interrupted(_) => true,
        Outcome::NoRoom(_) | Outcome::CannotStart(_) => false,
    }
}

/// The table, and the files of this run: a mesh that is there after a failure is an older one.
fn show(out: &Path, trace: &Path, is_done: bool) -> Result<(), Failure> {
    let records = load_trace(trace)?;
    let name = out.file_stem().unwrap_or(out.as_os_str()).to_string_lossy().into_owned();
    let chart = out.with_extension("memory.svg");
    let mut text = table(&name, &summarize(&records));
    let drawn = write_chart(&chart, &[(name, records)]);
    let preview = out.with_extension("preview.png");
    let files = [("mesh", out), ("preview", &preview), ("trace", trace), ("chart", &chart)];
    let of_this_run = if is_done { &files[..] } else { &files[2..] };
    for (what, path) in of_this_run.iter().filter(|(_, path)| path.exists()) {
        let _ = writeln!(text, "{what:<8} {}{}", path.display(), size_of(path));
    }
    output::out(&text)?;
    drawn
}

fn size_of(path: &Path) -> String {
    path.metadata().map_or_else(|_| String::new(), |file| format!(" ({})", Bytes(file.len())))
}

fn worker_command(worker: PathBuf, image: &Path, out: &Path, flags: &MeshFlags) -> Vec<OsString> {
    let mut command = vec![worker.into(), plain(image), "--out".into(), plain(out)];
    let given = [
        ("--grid", flags.grid.clone()),
        ("--faces", flags.faces.map(|n| n.to_string())),
        ("--texture", flags.texture.clone()),
        ("--back", flags.back.clone()),
        ("--relief", flags.relief.map(|share| share.to_string())),
        ("--seed", flags.seed.map(|n| n.to_string())),
        ("--load", flags.load.clone()),
        ("--device", flags.device.clone()),
        ("--shape", flags.shape.clone()),
    ];
    for (flag, value) in given {
        command.extend(value.into_iter().flat_map(|value| [flag.into(), value.into()]));
    }
    command
}

/// OpenMP's threads wait for each other by spinning. On a busy machine that took a stage from 0.2
/// to 21 seconds, so they shall sleep, unless the user has said how.
fn patience() -> Vec<(OsString, OsString)> {
    const POLICY: &str = "OMP_WAIT_POLICY";
    if env::var_os(POLICY).is_some() {
        return vec![];
    }
    vec![(POLICY.into(), "passive".into())]
}

/// Beside the mesh. In a folder that is not there the worker refuses to put the mesh, so nothing
/// may be put there before it is asked.
fn default_trace(out: &Path) -> Option<PathBuf> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.is_none_or(Path::is_dir).then(|| out.with_extension("trace.jsonl"))
}

/// A path that no parser takes for a flag.
fn plain(path: &Path) -> OsString {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        Path::new(".").join(path).into()
    } else {
        path.into()
    }
}

fn default_out(image: &Path) -> PathBuf {
    let mut name = image.file_stem().unwrap_or_else(|| "mesh".as_ref()).to_owned();
    name.push(".glb");
    name.into()
}

/// The worker that `$STAGELOAD_MESH_WORKER` names, else the one beside this program, else the
/// first in `$PATH`.
fn find_worker() -> Result<PathBuf, Failure> {
    let named = env::var_os(WORKER_ENV).map(PathBuf::from);
    let beside = env::current_exe().ok().map(|own| own.with_file_name(WORKER));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|folder| folder.join(WORKER));
    if let Some(named) = named {
        return if named.is_file() { Ok(named) } else { Err(no_worker(&named)) };
    }
    let found = beside.iter().cloned().chain(in_path).find(|path| path.is_file());
    found.ok_or_else(|| no_worker(&beside.unwrap_or_else(|| WORKER.into())))
}

fn no_worker(looked: &Path) -> Failure {
    Failure::cannot_start(format!(
        "cannot find the mesh worker {}, nor {WORKER} in $PATH; build it with `make mesh`, or name \
         it in ${WORKER_ENV}",
        looked.display()
    ))
}

fn become_worker(command: &[OsString]) -> Failure {
    // Nothing of this process is left to print afterwards.
    output::drain();
    let mut worker = Command::new(&command[0]);
    let error = become_program(worker.args(&command[1..]).envs(patience()));
    Failure::cannot_start(format!("cannot start {}: {error}", command[0].display()))
}

/// The worker's own rule.
fn glb(text: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("glb") => Ok(path),
        _ => Err("the mesh is a GLB file, so its name must end in .glb".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("must be 0 to 1".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mesh_is_named_after_the_picture_and_lands_here() {
        assert_eq!(default_out(Path::new("pictures/a.b.png")), Path::new("a.b.glb"));
        assert_eq!(default_out(Path::new("chair")), Path::new("chair.glb"));
    }

    #[test]
    fn a_path_that_looks_like_a_flag_stays_a_path() {
        assert_eq!(plain(Path::new("-x.png")), "./-x.png");
        assert_eq!(plain(Path::new("x.png")), "x.png");
    }
}
