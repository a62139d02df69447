//! The job that most tests guard. It is this test binary itself, started again to run the one
//! ignored test below with a script in `$HOG`: one step a word, `name` or `name:value`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = "HOG";
const MIB: usize = 1 << 20;

/// The command line that runs a script; `with_script` sets the script.
pub(crate) fn hog() -> Vec<String> {
    let own = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let flags = ["--ignored", "--exact", "hog::works_through_its_script", "--nocapture"];
    std::iter::once(own).chain(flags.map(str::to_owned)).collect()
}

/// A hog that works through `script` with nobody guarding it.
pub(crate) fn hog_with(script: &str) -> Command {
    let words = hog();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(SCRIPT, script);
    command
}

/// A guard around a hog that works through `script`.
pub(crate) fn guarded(flags: &[&str], script: &str) -> Command {
    let mut command = crate::support::guard(flags);
    command.arg("--").args(hog()).env(SCRIPT, script);
    command
}

#[test]
#[ignore = "not a test but the job that other tests guard"]
fn works_through_its_script() {
    let Ok(script) = std::env::var(SCRIPT) else {
        return crate::support::skipped("$HOG has no script to work through");
    };
    let mut held = Vec::new();
    for step in script.split_whitespace() {
        let (name, value) = step.split_once(':').unwrap_or((step, ""));
        perform(name, value, &mut held);
    }
}

fn perform(name: &str, value: &str, held: &mut Vec<Vec<u8>>) {
    match name {
        "stage" => say(&format!(r#"{{"kind":"stage","stage":"{value}"}}"#)),
        "grow" => grow(value.parse().unwrap(), held),
        "creep" => creep(value.parse().unwrap(), held),
        "drop" => held.clear(),
        "litter" => litter(Path::new(value)),
        "sleep" => std::thread::sleep(Duration::from_millis(value.parse().unwrap())),
        "pid" => std::fs::write(value, std::process::id().to_string()).unwrap(),
        "ignore-term" => set_term_ignored(),
        "freeze" => freeze(),
        #[cfg(target_os = "linux")]
        "lend" => lend(value.parse().unwrap()),
        // The rest of a script for others is written with `,` and `=` for ` ` and `:`.
        "child" => start(value, false),
        "escape" => start(value, true),
        "exit" => std::process::exit(value.parse().unwrap()),
        other => panic!("no such step: {other}"),
    }
}

fn say(line: &str) {
    let path = std::env::var_os("STAGELOAD_EVENTS").unwrap();
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// 5 MB each 25 ms, written so that the pages are real.
fn grow(mib: usize, held: &mut Vec<Vec<u8>>) {
    for i in 0..mib.div_ceil(5) {
        held.push(vec![(i % 250) as u8 + 1; 5 * MIB]);
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// 50 MB a second.
fn creep(mib: usize, held: &mut Vec<Vec<u8>>) {
    for i in 0..mib {
        held.push(vec![(i % 250) as u8 + 1; MIB]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A hog more each 200 ms, for ever, with its number in the folder.
fn litter(folder: &Path) {
    for i in 0.. {
        let pid = folder.join(i.to_string());
        start(&format!("ignore-term pid={} grow=15 sleep=60000", pid.display()), false);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[expect(unsafe_code, reason = "a child in a session of its own")]
fn start(script: &str, own_session: bool) {
    let script = script.replace(',', " ").replace('=', ":");
    let mut command = hog_with(&script);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if own_session {
        // SAFETY: setsid is async-signal-safe, and nothing else happens in the closure.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
    }
    let child = command.spawn().unwrap();
    // Reaped by nobody: the hog ends with its children still running, as careless jobs do.
    std::mem::forget(child);
}

#[expect(unsafe_code, reason = "std does not handle signals")]
fn set_term_ignored() {
    // SAFETY: SIG_IGN is a valid disposition for SIGTERM.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

#[expect(unsafe_code, reason = "std sends no signals")]
fn freeze() {
    // SAFETY: raise takes a number and touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// A child that has this process's memory for its own for so long, as between vfork and exec.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "std makes no child like this")]
fn lend(milliseconds: u64) {
    extern "C" fn nap(milliseconds: *mut libc::c_void) -> i32 {
        let time = libc::timespec { tv_sec: 0, tv_nsec: milliseconds as i64 * 1_000_000 };
        // SAFETY: `time` is a valid timespec; nothing else is read or written in the shared memory.
        unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) }
    }
    let mut stack = vec![0u8; 64 << 10];
    // SAFETY: the stack is the child's alone and outlives it, because it is waited for.
    unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        let child = libc::clone(nap, top, flags, milliseconds as *mut libc::c_void);
        assert!(child > 0);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
