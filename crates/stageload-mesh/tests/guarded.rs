//! The whole main job: a real photo, under the real guard.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stageload_core::{Record, Summary, read_trace, summarize};
use support::{files, photos};

const STAGES: [&str; 9] = [
    "setup",
    "matte",
    "camera",
    "structure",
    "shape_512",
    "shape_1024",
    "texture",
    "decode",
    "export",
];

/// The `stageload` command, which `make test` builds before this crate.
fn stageload() -> Command {
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_stageload-mesh"));
    let program = worker.with_file_name("stageload");
    assert!(program.exists(), "build it first: cargo build -p stageload-cli, or run `make test`");
    let mut command = Command::new(program);
    // Other tests are a load of their own; how much is free is not the question here.
    command.env_remove("STAGELOAD_EVENTS").env_remove("STAGELOAD_MESH_WORKER");
    command
}

fn mesh(out: &Path, flags: &[&str]) -> Output {
    let mut command = stageload();
    command.arg("mesh").arg(photos().join("flower.jpg")).arg("-o").arg(out);
    command.args(["--wait-free", "0"]).args(flags).output().unwrap()
}

fn trace(path: &Path) -> (Vec<Record>, Summary) {
    let records = read_trace(&std::fs::read_to_string(path).unwrap()).unwrap();
    let summary = summarize(&records);
    (records, summary)
}

fn said(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr)
}

#[test]
fn a_run_leaves_mesh_preview_trace_and_chart_and_the_trace_has_every_stage_load_and_release() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dahlia.glb");
    let run = mesh(&out, &["--grid", "1024"]);
    assert!(run.status.success(), "{}", said(&run));
    let expected = ["dahlia.glb", "dahlia.memory.svg", "dahlia.preview.png", "dahlia.trace.jsonl"];
    assert_eq!(files(folder.path()), expected);
    let (_, summary) = trace(&out.with_extension("trace.jsonl"));
    let stages: Vec<&str> = summary.stages.iter().map(|s| s.stage.as_str()).collect();
    assert_eq!(stages, STAGES);
    assert_eq!(summary.loads.count, 2);
    assert_eq!(summary.releases.count, 2);
    assert_eq!(summary.loads.bytes, summary.releases.bytes);
    assert!(summary.outside_stage.is_empty());
    for stage in STAGES {
        assert!(said(&run).contains(stage), "{stage} is not in the table");
    }
}

#[test]
fn a_limit_stops_the_run_says_in_which_stage_and_leaves_no_mesh_and_without_it_the_next_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dahlia.glb");
    let reason = folder.path().join("reason.json");
    let run = stageload()
        .args(["guard", "--wait-free", "0", "--limit", "300M", "--reason"])
        .arg(&reason)
        .arg("--")
        .arg(env!("CARGO_BIN_EXE_stageload-mesh"))
        .arg(photos().join("flower.jpg"))
        .arg("--out")
        .arg(&out)
        .args(["--grid", "1024"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(3), "{}", said(&run));
    let reason = std::fs::read_to_string(reason).unwrap();
    assert!(STAGES.iter().any(|s| reason.contains(&format!("in stage {s}"))), "{reason}");
    assert_eq!(files(folder.path()), ["reason.json"]);
    let run = mesh(&out, &["--grid", "1024"]);
    assert!(run.status.success() && out.exists(), "{}", said(&run));
}

#[test]
fn under_a_guard_the_mesh_command_does_not_guard_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dahlia.glb");
    let path = folder.path().join("trace.jsonl");
    let mut command = stageload();
    let program = command.get_program().to_owned();
    command.args(["guard", "--wait-free", "0", "--trace"]).arg(&path).arg("--").arg(program);
    command.arg("mesh").arg(photos().join("flower.jpg")).arg("-o").arg(&out);
    let run = command.args(["--grid", "512", "--faces", "5000"]).output().unwrap();
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(trace(&path).1.loads.count, 2);
    assert_eq!(files(folder.path()), ["dahlia.glb", "dahlia.preview.png", "trace.jsonl"]);
}

#[test]
fn a_full_disk_leaves_nothing_and_says_to_make_room() {
    let Some(disk) = small_disk() else { return };
    let out = disk.path().join("dahlia.glb");
    let run =
        support::worker(&photos().join("flower.jpg"), &out, &["--grid", "512", "--faces", "20000"]);
    let left = files(disk.path());
    assert_eq!(run.status.code(), Some(74), "{}", said(&run));
    assert!(said(&run).contains("make room"), "{}", said(&run));
    assert!(left.is_empty(), "{left:?}");
}

/// A 64 kB file system in memory, unmounted when dropped; only root can have one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.path()).status().ok();
    }
}

fn small_disk() -> Option<SmallDisk> {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(folder.path())
        .output();
    if mounted.is_ok_and(|m| m.status.success()) {
        return Some(SmallDisk(folder));
    }
    eprintln!("skipped: only root can mount a disk to fill");
    None
}

#[test]
fn a_read_only_output_folder_is_refused_before_any_work() {
    let Some(disk) = small_disk() else { return };
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).status();
    assert!(remount.unwrap().success());
    let run = support::worker(&photos().join("flower.jpg"), &disk.path().join("a.glb"), &[]);
    assert_eq!(run.status.code(), Some(73), "{}", said(&run));
    assert!(said(&run).contains("--out"), "{}", said(&run));
}
