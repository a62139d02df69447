//! The mesh command around a worker; the worker here is a shell script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[cfg(target_os = "linux")]
use crate::support::has_full_disk;
use crate::support::{Finished, Folder, finish, stageload};

/// Says three stages, writes its arguments where the mesh goes.
const WORKER: &str = r#"#!/bin/sh
say() { echo "$1" >> "$STAGELOAD_EVENTS"; }
say '{"kind":"stage","stage":"mask"}'; sleep 0.3
say '{"kind":"stage","stage":"shape"}'; sleep 0.3
echo "$@" > "$3"
echo "events: $STAGELOAD_EVENTS, waiting: $OMP_WAIT_POLICY"
exit ${WORKER_CODE:-0}
"#;

fn mesh(folder: &Folder, flags: &[&str]) -> Command {
    let mut command = bare(folder, flags);
    command.args(["--wait-free", "0", "--kill-free", "1"]);
    command
}

/// Without flags of the guard.
fn bare(folder: &Folder, flags: &[&str]) -> Command {
    let worker = folder.file("worker");
    fs::write(&worker, WORKER).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(folder.file("pictures")).unwrap();
    for picture in ["a.png", "pictures/chair.png"] {
        fs::write(folder.file(picture), "a picture, as far as the worker cares").unwrap();
    }
    let mut command = stageload();
    command.env_remove("OMP_WAIT_POLICY").arg("mesh").args(flags);
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

#[test]
fn a_worker_that_fails_on_the_way_leaves_its_trace_and_its_table() {
    for code in ["70", "74", "101"] {
        let folder = Folder::new();
        let failed = finish(mesh(&folder, &["a.png"]).env("WORKER_CODE", code));
        assert_eq!(failed.code.map(|code| code.to_string()).as_deref(), Some(code));
        assert!(folder.file("a.trace.jsonl").exists(), "{code}");
        assert!(failed.out.contains("seconds"), "{code}: {}", failed.out);
        assert!(failed.out.contains("a.trace.jsonl") && !failed.out.contains("a.glb"), "{code}");
    }
}

#[test]
fn a_refusal_leaves_no_trace_whatever_was_refused() {
    for code in ["2", "64", "65", "66", "73"] {
        let folder = Folder::new();
        finish(mesh(&folder, &["a.png"]).env("WORKER_CODE", code));
        assert!(!folder.file("a.trace.jsonl").exists(), "{code}");
    }
}

#[test]
fn the_worker_waits_patiently_even_if_its_path_reads_like_an_assignment() {
    let folder = Folder::new();
    let mut command = mesh(&folder, &["a.png"]);
    let worker = folder.file("a=b");
    fs::rename(folder.file("worker"), &worker).unwrap();
    let done = finish(command.env("STAGELOAD_MESH_WORKER", &worker));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("waiting: passive"), "{}", done.out);
    let as_told = finish(command.env("OMP_WAIT_POLICY", "active"));
    assert!(as_told.out.contains("waiting: active"), "{}", as_told.out);
}

#[test]
fn a_worker_that_cannot_be_started_is_said_so_and_leaves_no_trace() {
    let folder = Folder::new();
    let mut command = mesh(&folder, &["a.png"]);
    fs::set_permissions(folder.file("worker"), fs::Permissions::from_mode(0o644)).unwrap();
    let failed = finish(&mut command);
    assert_eq!(failed.code, Some(127), "{failed:?}");
    assert!(failed.err.contains("guard: cannot start"), "{}", failed.err);
    assert!(!folder.file("a.trace.jsonl").exists());
}

#[test]
fn bad_input_is_refused_before_the_wait_for_room() {
    let folder = Folder::new();
    let full = ["--wait-free", "100", "--start-timeout", "80s"];
    let table: [(&[&str], i32, &str); 7] = [
        (&["no.png"], 66, "stageload: cannot read no.png: "),
        (&["no.png"], 66, "; check the path and its permissions"),
        (&["pictures"], 66, "cannot read pictures: "),
        (&["a.png", "-o", "a.obj"], 2, "must end in .glb"),
        (&["a.png", "--faces", "999"], 2, "--faces"),
        (&["a.png", "--faces", "5000001"], 2, "--faces"),
        (&["a.png", "--seed", "4294967296"], 2, "--seed"),
    ];
    for (flags, code, words) in table {
        let refused = finish(bare(&folder, flags).args(full));
        assert_eq!(refused.code, Some(code), "{flags:?}: {refused:?}");
        assert!(refused.err.contains(words), "{flags:?}: {}", refused.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_mesh_on_a_full_disk_for_traces_is_still_a_mesh() {
    if !has_full_disk() {
        return;
    }
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
    let mut command = mesh(&folder, &["a.png"]);
    let done = finish(command.env("STAGELOAD_EVENTS", &events).env("STAGELOAD_JOB", "outer"));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("waiting: passive"), "{}", done.out);
    // The test's own flags are the guard's.
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(done.err.contains("a guard runs around this one and decides"), "{}", done.err);
    assert!(done.out.contains(&format!("events: {}", events.display())), "{}", done.out);
    assert!(fs::read_to_string(&events).unwrap().contains("shape"));
    assert!(!folder.file("a.trace.jsonl").exists());
    let mut plain = bare(&folder, &["a.png"]);
    let quiet = finish(plain.env("STAGELOAD_EVENTS", &events).env("STAGELOAD_JOB", "outer"));
    assert_eq!(quiet.err, "", "no flags, nothing to warn of");
}

#[test]
fn an_old_export_of_the_event_file_does_not_pass_for_a_guard() {
    let folder = Folder::new();
    let events = folder.file("old-events");
    let done = finish(mesh(&folder, &["a.png"]).env("STAGELOAD_EVENTS", &events));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("guard: start"), "{}", done.err);
    assert!(folder.file("a.trace.jsonl").exists() && !events.exists());
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
