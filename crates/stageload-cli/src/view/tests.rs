//! Whole frames, as they are seen.

use stageload::core::Member;

use super::*;

fn reading(t: f64, mib: u64) -> Reading {
    Reading {
        t,
        footprint: Some(Bytes::mib(mib)),
        members: vec![Member { pid: 4712, footprint: Bytes::mib(mib - 512) }],
        swap_used: Some(Bytes::mib(512)),
        swap_total: Some(Bytes::gib(2)),
        level: Percent::new(50),
        pressure: Some(Pressure::Normal),
        compressed: Some(Bytes::mib(300)),
        to_swap: Some(Bytes::gib(10)),
        demand: Some(Bytes::gib(24)),
        claimable: Some(Bytes::gib(24)),
        ..Reading::default()
    }
}

fn history() -> History {
    let mut history = History::new("pid 4711  python3 run.py".into(), true, Some(Bytes::gib(48)));
    for second in 0..4u32 {
        let command = |_| Some("/usr/bin/ffmpeg -i in.mov".to_owned());
        history.push(reading(f64::from(second) + 70.0, 1024 * (u64::from(second) + 1)), command);
    }
    history.push(reading(75.0, 2048), |_| Some("/usr/bin/ffmpeg -i in.mov".to_owned()));
    history
}

fn plain(width: usize) -> Canvas {
    Canvas { width, is_colored: false }
}

#[test]
fn a_frame_tells_what_is_held_what_there_is_and_who_holds_most() {
    let want = "\
pid 4711  python3 run.py                                  0:01:15
footprint     2.00 GB                    ▃▅▆█▅  peak 4.00 GB
memory       24.00 GB  ███████████▌░░░░░░░░░░░  of 48.00 GB
swap           512 MB                    ▅▅▅▅▅  of 2.00 GB
available         50%                    ▅▅▅▅▅  pressure normal
compressed     300 MB                           to swap 10.00 GB

    4712      1.50 GB  ffmpeg -i in.mov
";
    assert_eq!(frame(&history(), plain(65)), want);
}

#[test]
fn on_a_narrow_terminal_graphs_have_lines_of_their_own() {
    let want = "\
pid 4711  python3 run.py         0:01:15
footprint     2.00 GB  peak 4.00 GB
                                   ▃▅▆█▅
memory       24.00 GB  of 48.00 GB
████████████████████░░░░░░░░░░░░░░░░░░░░
swap           512 MB  of 2.00 GB
                                   ▅▅▅▅▅
available         50%  pressure normal
                                   ▅▅▅▅▅
compressed     300 MB  to swap 10.00 GB

    4712      1.50 GB  ffmpeg -i in.mov
";
    assert_eq!(frame(&history(), plain(40)), want);
}

#[test]
fn no_line_is_wider_than_its_terminal() {
    let mut history = History::new("長い名前".repeat(40), true, Some(Bytes::gib(512)));
    for _ in 0..300 {
        history.push(reading(9_999.0, 1 << 20), |_| Some("x".repeat(300)));
    }
    for width in 0..200 {
        for line in frame(&history, plain(width)).lines() {
            let columns: usize =
                line.chars().map(|c| if "長い名前".contains(c) { 2 } else { 1 }).sum();
            assert!(columns <= width, "{width}: {line}");
        }
    }
}

#[test]
fn what_is_unknown_is_a_dash_and_never_0() {
    let mut history = History::new("pid 7".into(), true, None);
    let member = Member { pid: 7, footprint: Bytes::mib(1) };
    history.push(Reading { members: vec![member], ..Reading::default() }, |_| None);
    let text = frame(&history, plain(80));
    assert!(!text.contains(" 0 "), "{text}");
    for words in ["peak –", "of –", "pressure –", "to swap –", "1 MB  –"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains(['█', '▁', '░']), "{text}");
    let want = "footprint –  peak –  memory –  of –  swap –  of –  available –  pressure –  \
                compressed –  to swap –";
    assert_eq!(line(&history), want);
}

#[test]
fn the_machine_has_a_demand_instead_of_a_footprint() {
    let mut history = History::new("whole machine".into(), false, None);
    history.push(Reading { footprint: None, ..reading(0.0, 1024) }, |_| None);
    let text = frame(&history, plain(80));
    assert!(text.contains("demand       24.00 GB") && text.contains("peak 24.00 GB"), "{text}");
}

#[test]
fn the_graphs_turn_yellow_and_red_as_memory_gets_short() {
    let color = |level, pressure| {
        let mut history = History::new(String::new(), true, None);
        let level = Percent::new(level);
        history.push(Reading { level, pressure, ..reading(0.0, 1024) }, |_| None);
        frame(&history, Canvas { width: 80, is_colored: true })
    };
    assert!(color(50, Some(Pressure::Normal)).contains("\x1b[32m"));
    assert!(color(50, Some(Pressure::Warn)).contains("\x1b[33m"));
    assert!(color(15, None).contains("\x1b[33m"));
    assert!(color(9, Some(Pressure::Warn)).contains("\x1b[31m"));
    assert!(color(50, Some(Pressure::Critical)).contains("\x1b[31m"));
    assert!(!frame(&history(), plain(80)).contains('\x1b'));
}
