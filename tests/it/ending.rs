//! How jobs and guards end, and the exit codes.

use std::process::Stdio;

use crate::hog::guarded;
use crate::support::{Folder, eventually, finish, guard, is_gone, pid_in, send, wait};

fn code_of(script: &str) -> Option<i32> {
    finish(guard(&["--", "sh", "-c"]).arg(script)).code
}

#[test]
fn the_commands_own_exit_code_passes_through() {
    assert_eq!(code_of("exit 0"), Some(0));
    assert_eq!(code_of("exit 42"), Some(42));
}

#[test]
fn a_signal_from_elsewhere_is_128_plus_its_number() {
    assert_eq!(code_of("kill -9 $$"), Some(128 + 9));
    assert_eq!(code_of("kill -15 $$"), Some(128 + 15));
}

#[test]
fn the_log_reads_like_the_seeds() {
    let ended = finish(&mut guard(&["--", "true"]));
    assert!(ended.err.contains("Z guard: start, swap "), "{}", ended.err);
    assert!(ended.err.contains("Z guard: exit 0\n"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

#[test]
fn with_json_the_outcome_is_one_line_on_stdout() {
    let ended = finish(&mut guard(&["--json", "--", "sh", "-c", "exit 7"]));
    assert_eq!(ended.out, "{\"exit\":7,\"outcome\":\"exited\"}\n");
}

#[test]
fn ctrl_c_stops_the_job_in_order_before_the_guard_ends() {
    let folder = Folder::new();
    let (pid, bye) = (folder.file("pid"), folder.file("bye"));
    let script = format!(
        "trap 'echo bye > {}; exit 0' TERM; echo $$ > {}; while :; do sleep 0.1; done",
        bye.display(),
        pid.display()
    );
    let child = guard(&["--", "sh", "-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    let job = pid_in(&pid);
    send(child.id() as i32, libc::SIGINT);
    assert_eq!(wait(child), Some(128 + 2));
    assert!(bye.exists() && is_gone(job));
}

#[test]
fn a_signal_while_waiting_for_room_ends_the_wait() {
    let folder = Folder::new();
    let err = folder.file("err");
    let mut command = crate::support::stageload();
    command.args(["guard", "--wait-free", "100", "--", "true"]);
    let child = command.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let read = || std::fs::read_to_string(&err).unwrap();
    assert!(eventually(|| read().contains("waiting").then_some(())).is_some());
    send(child.id() as i32, libc::SIGTERM);
    assert_eq!(wait(child), Some(128 + 15));
    assert!(read().contains("got SIGTERM before starting the command"), "{}", read());
}

#[cfg(target_os = "linux")]
#[test]
fn a_guard_that_can_open_no_file_any_more_still_ends_its_job_and_itself() {
    let folder = Folder::new();
    let (pid, err) = (folder.file("pid"), folder.file("err"));
    let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.1; done", pid.display());
    let mut command = guard(&["--grace", "300ms", "--", "sh", "-c", &script]);
    let child = command.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let job = pid_in(&pid);
    let a_few_looks = std::time::Duration::from_millis(500);
    std::thread::sleep(a_few_looks);
    allow_no_files(child.id() as i32);
    std::thread::sleep(a_few_looks);
    assert!(std::fs::exists(format!("/proc/{job}")).unwrap(), "a guard that cannot look goes on");
    send(child.id() as i32, libc::SIGINT);
    assert_eq!(wait(child), Some(128 + 2));
    assert!(is_gone(job));
    let said = std::fs::read_to_string(&err).unwrap();
    assert!(said.contains("stopping") && !said.contains("still there"), "{said}");
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "std sets no limits")]
fn allow_no_files(pid: i32) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `none` is a valid rlimit, and nowhere is given for the old one.
    let code =
        unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const none, std::ptr::null_mut()) };
    assert_eq!(code, 0);
}

#[test]
fn a_second_signal_ends_the_grace() {
    let folder = Folder::new();
    let (pid, err) = (folder.file("pid"), folder.file("err"));
    let script = format!("ignore-term pid:{} sleep:80000", pid.display());
    let mut command = guarded(&["--grace", "80s"], &script);
    let child = command.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let job = pid_in(&pid);
    send(child.id() as i32, libc::SIGTERM);
    let says = || std::fs::read_to_string(&err).unwrap().contains("stopping").then_some(());
    assert!(eventually(says).is_some());
    send(child.id() as i32, libc::SIGTERM);
    assert_eq!(wait(child), Some(128 + 15));
    assert!(is_gone(job));
}

#[test]
fn a_hangup_that_was_ignored_at_the_start_stays_ignored() {
    let folder = Folder::new();
    let (pid, go) = (folder.file("pid"), folder.file("go"));
    let job =
        format!("echo $$ > {}; while [ ! -e {} ]; do sleep 0.1; done", pid.display(), go.display());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_stageload")]);
    command.args(["guard", "--wait-free", "0", "--kill-free", "1", "--", "sh", "-c", &job]);
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    pid_in(&pid);
    send(child.id() as i32, libc::SIGHUP);
    std::fs::write(&go, "").unwrap();
    assert_eq!(wait(child), Some(0));
}

#[test]
fn processes_that_outlive_the_command_are_named() {
    let folder = Folder::new();
    let pid = folder.file("pid");
    let script = format!("sleep 60 & echo $! > {}", pid.display());
    let ended = finish(&mut guard(&["--", "sh", "-c", &script]));
    let left = pid_in(&pid);
    assert_eq!(ended.code, Some(0));
    assert!(ended.err.contains(&format!("run on unguarded: [{left}]")), "{}", ended.err);
    send(left, libc::SIGKILL);
}
