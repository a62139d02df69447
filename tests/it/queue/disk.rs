//! Disks that are full. Linux lets a test have a small one of its own.

use std::fs;
use std::process::Command;

use super::{Home, writer};
use crate::support::{finish, skipped};

/// Runs a script in a mount namespace of its own, in which `small` is a disk of 3 MB; None where the
/// system lets nobody do that.
fn with_small_disk(home: &Home, script: &str) -> Option<crate::support::Finished> {
    fs::create_dir(home.file("small")).unwrap();
    let mount = "mount -t tmpfs -o size=3m none small";
    let may = |flags: &str| {
        let mut tried = Command::new("unshare");
        tried.args([flags, "sh", "-c", mount]).current_dir(home.file(""));
        tried.output().is_ok_and(|it| it.status.success())
    };
    let Some(flags) = ["-m", "-Urm"].into_iter().find(|flags| may(flags)) else {
        skipped("this system has no disk for a test");
        return None;
    };
    let mut command = Command::new("unshare");
    let program = env!("CARGO_BIN_EXE_stageload");
    let prelude = format!(
        "set -e; {mount}; export STAGELOAD_HOME=$PWD/small/queue
        s='{program}'; at_once='--wait-free 0 --kill-free 1'
        ends() {{ for i in $(seq 300); do
            \"$s\" show --json $1 | grep -q \"\\\"state\\\": \\\"$2\\\"\" && return; sleep 0.1
        done; \"$s\" show $1; exit 1; }}"
    );
    command.args([flags, "sh", "-c", &format!("{prelude}\n{script}")]);
    Some(finish(command.current_dir(home.file(""))))
}

#[test]
fn a_full_disk_ends_neither_the_engine_nor_a_job_that_runs_and_what_waits_goes_on_after_it() {
    let home = Home::new();
    let (first, second) = (writer("a", "1.5", 5), writer("b", "0", 0));
    let script = format!(
        r#""$s" engine 2> engine-said & engine=$!
        for i in $(seq 100); do "$s" queue --json | grep -q '"engine": true' && break; sleep 0.05; done
        "$s" add $at_once -- sh -c '{first}'
        ends 1 running
        "$s" add $at_once -- sh -c '{second}'
        dd if=/dev/zero of=small/full bs=1k 2>/dev/null || true
        for i in $(seq 100); do grep -q a- written && break; sleep 0.1; done
        sleep 2
        kill -0 $engine && echo it lives
        "$s" add $at_once -- true > added 2>&1 || echo refused: $?
        rm small/full
        ends 1 failed
        ends 2 done
        "$s" show 1
        kill $engine; wait $engine"#
    );
    let Some(ended) = with_small_disk(&home, &script) else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("it lives"), "{}", ended.out);
    assert!(ended.out.contains("exit code 5"), "{}", ended.out);
    assert_eq!(home.written(), ["a+", "a-", "b+", "b-"]);
}

#[test]
fn a_job_that_could_not_write_its_result_is_failed_and_not_done() {
    if !crate::support::has_full_disk() {
        return;
    }
    let home = Home::new();
    let id = home.add(&[], "echo result > /dev/full");
    home.waits_for(id, "failed");
    assert!(home.why(id).starts_with("exit code "), "{}", home.why(id));
}
