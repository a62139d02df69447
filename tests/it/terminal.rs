//! Ctrl-C, Ctrl-Z and hang-ups, in a shell on a terminal of the test's own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::{Folder, eventually, is_alive, is_gone, pid_in, send};

/// An interactive shell, with `guard` for a guard that starts at once.
pub(crate) struct Shell {
    keys: Option<File>,
    screen: Arc<Mutex<String>>,
    bash: Child,
}

impl Shell {
    pub(crate) fn start() -> Self {
        let (keyboard, terminal) = open_terminal();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-i"]).env("PS1", "prompt> ").env("TERM", "dumb");
        command.env_remove("STAGELOAD_EVENTS").env_remove("STAGELOAD_JOB");
        command.stdin(end()).stdout(end()).stderr(end());
        take_terminal(&mut command);
        let bash = command.spawn().unwrap();
        drop((terminal, command));
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut source, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = source.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        let mut shell = Self { keys: Some(keyboard), screen, bash };
        let program = env!("CARGO_BIN_EXE_stageload");
        shell.type_in(&format!(
            "guard() {{ '{program}' guard --wait-free 0 --kill-free 1 --grace 500ms \"$@\"; }}\n"
        ));
        shell
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the shell shows this, which what was typed must not contain itself.
    pub(crate) fn shows(&self, words: &str) {
        let is_there = || self.screen.lock().unwrap().contains(words).then_some(());
        assert!(eventually(is_there).is_some(), "no {words:?} in {}", self.screen.lock().unwrap());
    }

    /// All that was ever shown.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Closes the window.
    fn hang_up(&mut self) {
        send(self.bash.id() as i32, libc::SIGHUP);
        self.keys = None;
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.bash.kill().ok();
        self.bash.wait().ok();
    }
}

#[expect(unsafe_code, reason = "std opens no terminals")]
fn open_terminal() -> (File, OwnedFd) {
    let (mut keyboard, mut terminal) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are valid places to write to; no name, settings or size are given.
    let code = unsafe {
        libc::openpty(&raw mut keyboard, &raw mut terminal, none, none.cast(), none.cast())
    };
    assert_eq!(code, 0);
    for end in [keyboard, terminal] {
        // SAFETY: fcntl with F_SETFD takes numbers. Inherited ends would keep the terminal open.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: both were just opened and belong to nobody else.
    unsafe { (File::from_raw_fd(keyboard), OwnedFd::from_raw_fd(terminal)) }
}

#[expect(unsafe_code, reason = "std makes no sessions")]
fn take_terminal(command: &mut Command) {
    // SAFETY: login_tty makes a few system calls, and the closure touches no memory.
    unsafe {
        command.pre_exec(|| match libc::login_tty(0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

/// A job that writes its pid and runs for a minute.
fn long_job(folder: &Folder) -> String {
    format!("sh -c 'echo $$ > \"{}\"; exec sleep 60'", folder.file("pid").display())
}

/// Prints whether the job is in the terminal's foreground.
const IN_FRONT: &str = "sh -c 'set -- $(ps -o pgid=,tpgid= -p $$); [ $1 = $2 ] && echo in\"\"front || echo be\"\"hind'";

#[test]
fn a_foreground_job_gets_the_terminal_and_the_shell_gets_it_back() {
    let mut shell = Shell::start();
    shell.type_in(&format!("guard -- {IN_FRONT}; echo code\"\"is $?\n"));
    shell.shows("infront");
    shell.shows("codeis 0");
    shell.type_in("echo still\"\"here\n");
    shell.shows("stillhere");
}

#[test]
fn in_a_pipeline_the_terminal_stays_with_whoever_reads() {
    let mut shell = Shell::start();
    shell.type_in(&format!("guard -- {IN_FRONT} | cat; echo code\"\"is $?\n"));
    shell.shows("behind");
    shell.shows("codeis 0");
}

#[test]
fn ctrl_c_ends_the_job_and_the_guard_with_130() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    shell.type_in(&format!("guard -- {}; echo code\"\"is $?\n", long_job(&folder)));
    let job = pid_in(&folder.file("pid"));
    shell.type_in("\x03");
    shell.shows("codeis 130");
    assert!(is_gone(job));
}

#[test]
fn ctrl_z_gives_the_prompt_back_and_fg_goes_on() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    let go = folder.file("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    // It forks nothing: a shell that waits for a stopped child to run its program cannot be stopped
    // itself, with a guard or without.
    let script = format!(
        "sh -c 'echo $$ > \"{}\"; read line < \"{}\"; exit 7'",
        folder.file("pid").display(),
        go.display()
    );
    shell.type_in(&format!("guard -- {script}\n"));
    let job = pid_in(&folder.file("pid"));
    shell.type_in("\x1a");
    shell.type_in("echo back\"\"again\n");
    shell.shows("backagain");
    assert_eq!(state_of(job), "T", "the whole job stands still");
    shell.type_in("fg\n");
    std::fs::write(go, "on\n").unwrap();
    shell.type_in("echo code\"\"is $?\n");
    shell.shows("codeis 7");
    assert!(is_gone(job));
}

#[test]
fn ctrl_z_in_a_pipeline_gives_the_prompt_back_and_fg_goes_on() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    shell.type_in(&format!("guard -- {} | cat\n", long_job(&folder)));
    let job = pid_in(&folder.file("pid"));
    shell.type_in("\x1a");
    shell.shows("Stopped");
    // Nothing goes on behind a guard that stands still.
    assert!(eventually(|| (state_of(job) == "T").then_some(())).is_some());
    shell.type_in("fg\n");
    assert!(eventually(|| (state_of(job) != "T").then_some(())).is_some());
    shell.type_in("\x03");
    assert!(is_gone(job));
}

#[test]
fn a_guard_that_waits_for_room_can_be_put_aside_too() {
    let mut shell = Shell::start();
    let program = env!("CARGO_BIN_EXE_stageload");
    shell.type_in(&format!("'{program}' guard --wait-free 100 -- true\n"));
    shell.shows("waiting (");
    shell.type_in("\x1a");
    shell.shows("Stopped");
    shell.type_in("kill -KILL %1; echo still\"\"here\n");
    shell.shows("stillhere");
}

#[test]
fn a_job_in_the_background_takes_no_keys_from_the_shell() {
    let mut shell = Shell::start();
    shell.type_in("guard -- sh -c 'cat; echo read\"\"all' &\n");
    shell.shows("readall");
    shell.type_in("echo still\"\"here\n");
    shell.shows("stillhere");
}

#[test]
fn after_ctrl_z_bg_goes_on_behind_the_prompt() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    shell.type_in(&format!("guard -- {}\n", long_job(&folder)));
    let job = pid_in(&folder.file("pid"));
    shell.type_in("\x1a");
    shell.shows("Stopped");
    shell.type_in("bg; echo bg\"\"done\n");
    shell.shows("bgdone");
    assert!(eventually(|| (state_of(job) != "T").then_some(())).is_some());
    shell.type_in("kill %1; wait; echo waited\"\"for\n");
    shell.shows("waitedfor");
    assert!(is_gone(job));
}

#[test]
fn a_closed_window_ends_the_job() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    shell.type_in(&format!("guard -- {}\n", long_job(&folder)));
    let job = pid_in(&folder.file("pid"));
    shell.hang_up();
    assert!(is_gone(job));
}

#[test]
fn under_nohup_a_closed_window_ends_nothing() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    let program = env!("CARGO_BIN_EXE_stageload");
    let job = long_job(&folder);
    shell.type_in(&format!(
        "nohup '{program}' guard --wait-free 0 --kill-free 1 -- {job} > /dev/null 2>&1 &\n"
    ));
    let job = pid_in(&folder.file("pid"));
    shell.hang_up();
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(is_alive(job));
    send(job, libc::SIGKILL);
    assert!(is_gone(job));
}

#[test]
fn in_a_loop_each_job_is_gone_before_the_next_starts() {
    let (folder, mut shell) = (Folder::new(), Shell::start());
    let list = folder.file("list");
    let job = format!("sh -c 'echo $$ >> \"{}\"; exec sleep 60'", list.display());
    shell.type_in(&format!("for i in 1 2; do guard -- {job}; done; echo loop\"\"over\n"));
    let pids = || -> Vec<i32> {
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    assert!(eventually(|| (pids().len() == 1).then_some(())).is_some());
    shell.type_in("\x03");
    let went_on = || (pids().len() == 2 || shell.screen().contains("loopover")).then_some(());
    assert!(eventually(went_on).is_some());
    assert!(is_gone(pids()[0]), "no pile of jobs behind the loop");
    shell.type_in("\x03");
    shell.shows("loopover");
    assert!(pids().into_iter().all(is_gone));
}

/// `T` for stopped.
fn state_of(pid: i32) -> String {
    let listed = Command::new("ps").args(["-o", "state=", "-p", &pid.to_string()]).output();
    let text = String::from_utf8(listed.unwrap().stdout).unwrap();
    text.trim().chars().take(1).collect()
}
