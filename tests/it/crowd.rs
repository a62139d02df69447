//! Guards that wait for the same memory: a job that is going to take it holds it from the start.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::hog::hog;
use crate::support::{Folder, eventually, pid_in, send, stageload, wait};

/// Half of what is available, and a quarter more: twice that does not fit.
fn too_much_for_two() -> String {
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let line = memory.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    format!("{}M", kib / 1024 * 62 / 100)
}

fn needing(folder: &Folder, name: &str, script: &str) -> Child {
    let mut command: Command = stageload();
    command.args(["guard", "--wait-free", "0", "--kill-free", "1", "--need", &too_much_for_two()]);
    command.args(["--poll", "100ms", "--"]).args(hog()).env("HOG", script);
    command.env("STAGELOAD_HOME", folder.file("home")).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(folder.file(name)).unwrap()).spawn().unwrap()
}

#[test]
fn of_two_jobs_that_fit_one_by_one_the_second_waits_for_the_first() {
    let folder = Folder::new();
    let pid = folder.file("pid");
    let first = needing(&folder, "first", &format!("pid:{} sleep:60000", pid.display()));
    pid_in(&pid);
    let second = needing(&folder, "second", "sleep:10");
    let said = || fs::read_to_string(folder.file("second")).unwrap();
    assert!(eventually(|| said().contains("waiting (").then_some(())).is_some());
    assert!(!said().contains("start, swap"), "{}", said());
    send(first.id() as i32, libc::SIGTERM);
    assert_eq!(wait(first), Some(128 + 15));
    assert_eq!(wait(second), Some(0));
    assert_eq!(said().matches("waiting (").count(), 1, "once per change: {}", said());
}
