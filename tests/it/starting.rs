//! Waiting for room, bad flags, commands that cannot start.

use std::process::{Command, Stdio};

use crate::support::{Folder, finish, guard, stageload};

#[test]
fn a_command_that_is_not_there_is_127() {
    let ended = finish(&mut guard(&["--", "/no/such/command"]));
    assert_eq!(ended.code, Some(127));
    assert!(ended.err.contains("cannot start /no/such/command: No such file"), "{}", ended.err);
}

#[test]
fn no_room_in_time_is_4_and_the_reason_says_what_was_missing() {
    let folder = Folder::new();
    let (ran, reason) = (folder.file("ran"), folder.file("reason.json"));
    let mut command = stageload();
    command.args(["guard", "--wait-free", "100", "--start-timeout", "300ms", "--reason"]);
    let ended = finish(command.arg(&reason).args(["--", "touch"]).arg(&ran));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.err.matches("guard: waiting (memory available").count(), 1, "{}", ended.err);
    assert!(ended.err.contains("guard: no room after"), "{}", ended.err);
    assert_eq!(folder.json("reason.json")["rule"], "no-room");
    assert!(!ran.exists());
}

#[test]
fn a_busy_process_holds_the_start_and_the_guard_itself_is_not_busy() {
    let mut busy = Command::new("sleep").arg("86.4213").stdin(Stdio::null()).spawn().unwrap();
    let flags = ["--busy", r"sleep 86\.4213", "--quiet-for", "0s", "--start-timeout"];
    let held = finish(&mut guard(&[&flags[..], &["300ms", "--", "true"]].concat()));
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert_eq!(held.code, Some(4), "{held:?}");
    assert!(held.err.contains("busy: sleep 86.4213"), "{}", held.err);
    let free = finish(&mut guard(&[&flags[..], &["60s", "--", "true"]].concat()));
    assert_eq!(free.code, Some(0), "{free:?}");
}

#[test]
fn the_machine_must_have_been_quiet_for_a_while() {
    let flags = ["--busy", "no-such-process-8f3a", "--quiet-for", "1s", "--", "true"];
    let ended = finish(&mut guard(&flags));
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.err.matches("waiting (quiet for 0 s of 1 s)").count(), 1, "{}", ended.err);
}

#[test]
fn bad_values_are_refused_by_the_name_of_their_flag() {
    let table: [&[&str]; 10] = [
        &["--wait-free", "101"],
        &["--kill-free", "0"],
        &["--kill-free", "-1"],
        &["--swap-budget", "8"],
        &["--limit", "0"],
        &["--limit", "lots"],
        &["--busy", "(unclosed"],
        &["--poll", "0s"],
        &["--quiet-for", "soon"],
        &["--swap-limit", "99999999999T"],
    ];
    for flags in table {
        let mut command = stageload();
        let refused = finish(command.arg("guard").args(flags).args(["--", "true"]));
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.err.contains(flags[0]), "{flags:?}: {}", refused.err);
    }
}

#[test]
fn a_reason_that_is_no_file_is_never_removed() {
    let folder = Folder::new();
    let reason = folder.file("reason");
    std::os::unix::fs::symlink("/dev/null", &reason).unwrap();
    let ended = finish(&mut guard(&["--reason", reason.to_str().unwrap(), "--", "true"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(reason.is_symlink(), "nor would the device be");
}

#[test]
fn a_guard_without_a_command_is_refused() {
    let refused = finish(&mut guard(&[]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("COMMAND"), "{}", refused.err);
}
