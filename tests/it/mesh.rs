//! The mesh command around a worker; the worker here is a shell script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Finished, Folder, finish, stageload};

/// Says three stages, writes its arguments where the mesh goes.
const WORKER: &str = r#"#!/bin/sh
say() { echo "$1" >> "$STAGELOAD_EVENTS"; }
say '{"kind":"stage","stage":"mask"}'; sleep 0.3
say '{"kind":"stage","stage":"shape"}'; sleep 0.3
echo "$@" > "$3"
echo "events: $STAGELOAD_EVENTS"
exit ${WORKER_CODE:-0}
"#;

fn mesh(folder: &Folder, flags: &[&str]) -> Command {
    let worker = folder.file("worker");
    fs::write(&worker, WORKER).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stageload();
    command.arg("mesh").args(flags).args(["--wait-free", "0", "--kill-free", "1"]);
    command.env("STAGELOAD_MESH_WORKER", worker).current_dir(folder.file(""));
    command
}

fn run(folder: &Folder, flags: &[&str]) -> Finished {
    finish(&mut mesh(folder, flags))
}

#[test]
fn a_mesh_comes_with_its_trace_its_chart_and_a_table() {
    let folder = Folder::new();
    let done = run(&folder, &["pictures/chair.png", "--grid", "512", "--seed", "7"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let arguments = fs::read_to_string(folder.file("chair.glb")).unwrap();
    assert_eq!(arguments, "pictures/chair.png --out chair.glb --grid 512 --seed 7\n");
    for word in ["mask", "shape", "peak MB", "chair.glb", "chair.trace.jsonl", "chair.memory.svg"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    assert!(fs::read_to_string(folder.file("chair.memory.svg")).unwrap().starts_with("<svg"));
    assert!(done.err.contains("mesh: shape"), "one line a stage: {}", done.err);
    assert!(!done.err.contains('\r'), "no live line where nobody sees it: {}", done.err);
}

#[test]
fn the_workers_exit_code_passes_through() {
    let folder = Folder::new();
    let failed = finish(mesh(&folder, &["a.png", "-o", "y.glb"]).env("WORKER_CODE", "65"));
    assert_eq!(failed.code, Some(65), "{failed:?}");
    assert!(!failed.out.contains("seconds"), "a refusal is no run: {}", failed.out);
    assert!(!folder.file("y.trace.jsonl").exists() && !folder.file("y.memory.svg").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_mesh_on_a_full_disk_for_traces_is_still_a_mesh() {
    let folder = Folder::new();
    let done = run(&folder, &["a.png", "--trace", "/dev/full"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("cannot write the trace /dev/full"), "{}", done.err);
    assert!(folder.file("a.glb").exists());
}

#[test]
fn a_folder_that_is_not_there_is_left_to_the_worker_to_refuse() {
    let folder = Folder::new();
    let failed = finish(mesh(&folder, &["a.png", "-o", "no/a.glb"]).env("WORKER_CODE", "73"));
    assert_eq!(failed.code, Some(73), "{failed:?}");
    assert!(!folder.file("no").exists());
}

#[test]
fn under_a_guard_the_worker_is_not_guarded_twice() {
    let folder = Folder::new();
    let events = folder.file("outer-events");
    fs::write(&events, "").unwrap();
    let done = finish(mesh(&folder, &["a.png"]).env("STAGELOAD_EVENTS", &events));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains(&format!("events: {}", events.display())), "{}", done.out);
    assert!(fs::read_to_string(&events).unwrap().contains("shape"));
    assert!(!folder.file("a.trace.jsonl").exists());
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let folder = Folder::new();
    let failed = finish(mesh(&folder, &["a.png"]).env("STAGELOAD_MESH_WORKER", "/no/worker"));
    assert_eq!(failed.code, Some(127));
    assert!(failed.err.contains("cannot find the mesh worker /no/worker"), "{}", failed.err);
}

#[test]
fn bad_mesh_flags_are_refused_by_name() {
    let folder = Folder::new();
    for flags in [["--grid", "700"], ["--relief", "2"], ["--device", "tpu"], ["--limit", "8"]] {
        let refused = run(&folder, &[&["a.png"], &flags[..]].concat());
        assert_eq!(refused.code, Some(2), "{flags:?}");
        assert!(refused.err.contains(flags[0]), "{flags:?}: {}", refused.err);
    }
}
