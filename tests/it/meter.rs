//! Live readings: of a process tree, of the machine, on a terminal and elsewhere.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::hog::hog_with;
use crate::support::{
    Finished, Folder, eventually, finish, is_alive, pid_in, send, stageload, wait,
};
use crate::terminal::Shell;

const MIB: u64 = 1 << 20;

/// A hog that nobody guards; it and its child end with the test.
struct Tree {
    root: Child,
    child: Option<i32>,
}

impl Tree {
    fn start(script: &str) -> Self {
        let mut command = hog_with(script);
        let root = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        Self { root, child: None }
    }

    fn pid(&self) -> String {
        self.root.id().to_string()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.root.kill().ok();
        self.root.wait().ok();
        if let Some(child) = self.child.filter(|child| is_alive(*child)) {
            send(child, libc::SIGKILL);
        }
    }
}

fn meter(flags: &[&str]) -> Command {
    let mut command = stageload();
    command.arg("meter").args(flags);
    command
}

fn readings(ended: &Finished) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn footprint_of(pid: &str) -> u64 {
    let looks = readings(&finish(&mut meter(&["--pid", pid, "--json", "--once"])));
    assert_eq!(looks.len(), 1);
    looks[0]["footprint"].as_u64().unwrap()
}

#[test]
fn a_process_is_metered_with_its_children_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file("child");
    let of_child = format!("pid={},grow=40,sleep=60000", path.display());
    let mut tree = Tree::start(&format!("child:{of_child} grow:60 sleep:60000"));
    tree.child = Some(pid_in(&path));
    let pid = tree.pid();
    let is_full = || (footprint_of(&pid) >= 100 * MIB).then_some(());
    assert!(eventually(is_full).is_some());

    let look = &readings(&finish(&mut meter(&["--pid", &pid, "--json", "--once"])))[0];
    let footprint = look["footprint"].as_u64().unwrap();
    assert!((100 * MIB..130 * MIB).contains(&footprint), "{look}");
    let members = look["members"].as_array().unwrap();
    let pids: Vec<_> = members.iter().map(|member| member["pid"].as_i64().unwrap()).collect();
    assert_eq!(pids, [i64::from(tree.root.id()), tree.child.unwrap().into()], "largest first");
    assert_eq!(look["type"], "sample");
    assert!(look["level"].is_u64() && look["utc"].is_f64(), "{look}");
    assert!(is_alive(tree.root.id() as i32) && is_alive(tree.child.unwrap()));
}

#[test]
fn a_file_of_looks_is_a_trace_that_summary_reads() {
    let folder = Folder::new();
    let path = folder.file("looks.jsonl");
    let tree = Tree::start("grow:50 sleep:60000");
    let pid = tree.pid();
    assert!(eventually(|| (footprint_of(&pid) >= 50 * MIB).then_some(())).is_some());
    let flags = ["--pid", &pid, "--json", "--count", "4", "--interval", "50ms"];
    let ended = finish(&mut meter(&flags));
    let times: Vec<f64> = readings(&ended).iter().map(|l| l["t"].as_f64().unwrap()).collect();
    assert_eq!(times.len(), 4);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] > 0.02), "{times:?}");
    fs::write(&path, &ended.out).unwrap();

    let shown = finish(stageload().args(["summary", "--json"]).arg(&path));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let summary: Value = serde_json::from_str(&shown.out).unwrap();
    let peak = summary["peak_footprint"].as_u64().unwrap();
    assert!((50 * MIB..80 * MIB).contains(&peak), "{summary}");
}

#[test]
fn the_machine_is_metered_where_no_process_is_named() {
    let looks = readings(&finish(&mut meter(&["--json", "--once"])));
    assert_eq!(looks[0]["footprint"], Value::Null, "a machine is no job");
    assert!(looks[0]["level"].is_u64(), "{looks:?}");
    assert!(looks[0]["demand"].as_u64().unwrap() > MIB);
    assert!(!looks[0]["members"].as_array().unwrap().is_empty());
}

#[test]
fn without_a_terminal_each_look_is_a_plain_line() {
    let ended = finish(&mut meter(&["--system", "--count", "2", "--interval", "20ms"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out.lines().count(), 2, "{}", ended.out);
    for words in ["Z demand ", "  available ", "  swap "] {
        assert_eq!(ended.out.matches(words).count(), 2, "{words}: {}", ended.out);
    }
    assert!(!ended.out.contains('\x1b'));
}

#[test]
fn the_end_of_the_process_ends_the_meter_at_once_and_in_peace() {
    let mut tree = Tree::start("sleep:60000");
    let mut command = meter(&["--pid", &tree.pid(), "--json", "--interval", "10m"]);
    let mut metering = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    metering.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    tree.root.kill().unwrap();
    tree.root.wait().unwrap();
    let mut told = metering.stderr.take().unwrap();
    assert_eq!(wait(metering), Some(0));
    let mut words = String::new();
    told.read_to_string(&mut words).unwrap();
    assert!(words.contains(&format!("meter: pid {} has ended", tree.pid())), "{words}");
}

#[test]
fn a_process_that_is_not_there_is_1_and_says_so() {
    let mut over = Command::new("true").spawn().unwrap();
    over.wait().unwrap();
    let pid = over.id().to_string();
    let refused = finish(&mut meter(&["--pid", &pid, "--json", "--once"]));
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.err.contains(&format!("no process {pid}")), "{}", refused.err);
    let first = finish(&mut meter(&["--pid", "1", "--once"]));
    assert_eq!(first.code, Some(1));
    assert!(first.err.contains("whole system"), "{}", first.err);
}

#[test]
fn a_reader_that_goes_away_ends_the_meter_in_peace() {
    let folder = Folder::new();
    let errors = File::create(folder.file("errors")).unwrap();
    let mut command = meter(&["--interval", "20ms"]);
    let mut metering = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
    drop(metering.stdout.take());
    assert_eq!(wait(metering), Some(0));
    assert_eq!(fs::read_to_string(folder.file("errors")).unwrap(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    if crate::support::has_full_disk() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = meter(&["--json"]);
        let metering = command.stdout(full).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(wait(metering), Some(74));
    }
}

#[test]
fn bad_values_are_refused_by_the_name_of_their_flag() {
    let table: [&[&str]; 9] = [
        &["--interval", "3000000000000000h"],
        &["--interval", "19ms"],
        &["--interval", "soon"],
        &["--interval", "-5s"],
        &["--pid", "0"],
        &["--pid", "-1"],
        &["--pid", "me"],
        &["--count", "0"],
        &["--pid", "7", "--system"],
    ];
    for flags in table {
        let refused = finish(&mut meter(flags));
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.err.contains(flags[0]), "{flags:?}: {}", refused.err);
    }
}

const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";

fn on_terminal(flags: &str) -> String {
    let program = env!("CARGO_BIN_EXE_stageload");
    format!("TERM=xterm '{program}' meter {flags}; echo code\"\"is $?\n")
}

#[test]
fn ctrl_c_leaves_the_last_frame_and_gives_the_cursor_back() {
    let mut shell = Shell::start();
    shell.type_in(&on_terminal("--interval 50ms"));
    // The second frame goes up over the first.
    shell.shows("A\r");
    shell.type_in("\x03");
    shell.shows("codeis 0");
    let screen = shell.screen();
    assert!(screen.contains("whole machine") && screen.contains("pressure"), "{screen}");
    assert!(screen.rfind(SHOW) > screen.rfind(HIDE), "{screen:?}");
    assert!(!screen.contains("\x1b[?1049h"), "no alternate screen");
}

#[test]
fn ctrl_z_gives_the_cursor_back_and_fg_draws_on() {
    let mut shell = Shell::start();
    shell.type_in(&on_terminal("--interval 50ms"));
    shell.shows(HIDE);
    shell.type_in("\x1a");
    shell.shows("Stopped");
    let screen = shell.screen();
    assert!(screen.rfind(SHOW) > screen.rfind(HIDE), "{screen:?}");
    shell.type_in("fg\n");
    let goes_on = || shell.screen()[screen.len()..].contains(HIDE).then_some(());
    assert!(eventually(goes_on).is_some());
    shell.type_in("\x03");
    assert!(eventually(|| shell.screen().ends_with("prompt> ").then_some(())).is_some());
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let mut shell = Shell::start();
    shell.type_in(&on_terminal("--once"));
    shell.shows("codeis 0");
    assert!(shell.screen().contains("\x1b[1mwhole machine"), "{:?}", shell.screen());
    let before = shell.screen().len();
    shell.type_in(&format!("NO_COLOR=1 {}", on_terminal("--once")));
    let is_over = || shell.screen()[before..].contains("codeis 0").then_some(());
    assert!(eventually(is_over).is_some());
    let screen = shell.screen();
    let plain = &screen[before..];
    assert!(plain.contains("whole machine") && !plain.contains("\x1b[1m"), "{plain:?}");
}
