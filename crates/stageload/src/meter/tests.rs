//! On a written `/proc`, where anything can be made to happen.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::fake_proc::Proc;

impl Proc {
    fn meter(&self) -> Meter {
        let leader = ProcessId { pid: 100, start: 1 };
        Meter::new(Machine::under(self.path()), leader, "token".into(), true)
    }
}

fn pids(meter: &mut Meter) -> Vec<i32> {
    meter.refresh();
    meter.members().map(|id| id.pid).collect()
}

#[test]
fn a_job_is_its_group_its_descendants_and_whoever_carries_its_mark() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2).start(50, 1, 50, 1);
    proc.start(103, 102, 103, 4).start(102, 101, 102, 3); // setsid, and its child
    proc.start(104, 1, 104, 5).write(104, "environ", "A=1\0STAGELOAD_JOB=token\0");
    proc.start(105, 1, 105, 6).write(105, "environ", "STAGELOAD_JOB=another\0");
    assert_eq!(pids(&mut proc.meter()), [100, 101, 102, 103, 104]);
}

#[test]
fn a_member_that_cannot_be_read_is_not_taken_for_gone() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100, 102]);
    fs::remove_file(proc.path().join("102/stat")).unwrap();
    fs::create_dir(proc.path().join("102/stat")).unwrap();
    assert_eq!(pids(&mut meter), [100, 102]);
    proc.end(102);
    assert_eq!(pids(&mut meter), [100]);
}

#[test]
fn a_look_at_no_list_at_all_finds_nobody_gone() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100]);
    proc.end(100);
    assert_eq!(pids(&mut meter), [100]);
    assert!(!meter.found_nobody());
    proc.start(7, 1, 7, 1);
    assert_eq!(pids(&mut meter), [] as [i32; 0]);
    assert!(meter.found_nobody());
}

#[test]
fn an_orphan_stays_a_member() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100, 102]);
    proc.end(100).start(102, 1, 102, 3);
    assert_eq!(pids(&mut meter), [102]);
}

#[test]
fn a_number_that_went_to_a_stranger_is_no_member_any_more() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(102, 100, 102, 3);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100, 102]);
    proc.start(102, 1, 102, 999);
    assert_eq!(pids(&mut meter), [100]);
}

#[test]
fn a_leaders_number_that_went_to_a_stranger_makes_no_member_of_it_or_its_group() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100, 101]);
    proc.end(100).end(101).start(100, 1, 100, 900).start(102, 100, 100, 901);
    assert_eq!(pids(&mut meter), [] as [i32; 0]);
    proc.end(100);
    assert_eq!(pids(&mut meter), [] as [i32; 0], "not even when that one is gone");
}

#[test]
fn a_group_of_the_leaders_number_is_a_strangers_once_all_of_the_job_are_gone() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100, 101]);
    proc.end(100).start(102, 1, 100, 3);
    assert_eq!(pids(&mut meter), [101, 102], "a member holds the number");
    // Between two looks another 100 came, left a child in its group, and went.
    proc.end(101).end(102).start(103, 1, 100, 900);
    assert_eq!(pids(&mut meter), [] as [i32; 0]);
}

#[test]
fn a_number_that_went_from_a_stranger_to_the_job_is_found_within_ten_looks() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(200, 1, 200, 3);
    let mut meter = proc.meter();
    assert_eq!(pids(&mut meter), [100]);
    proc.start(200, 100, 100, 9);
    assert!((0..10).any(|_| pids(&mut meter) == [100, 200]));
}

#[test]
fn a_zombie_holds_nothing_and_is_no_member() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
    let stat = fs::read_to_string(proc.path().join("101/stat")).unwrap();
    proc.write(101, "stat", &stat.replace(") S", ") Z"));
    assert_eq!(pids(&mut proc.meter()), [100]);
}

#[test]
fn the_footprint_is_the_sum_over_all_members() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2).start(7, 1, 7, 1);
    assert_eq!(proc.meter().look(0.0, None).footprint, Some(Bytes::mib(2)));
}

#[test]
fn members_that_cannot_be_read_are_unknown_and_not_0() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1);
    fs::remove_file(proc.path().join("100/status")).unwrap();
    assert_eq!(proc.meter().look(0.0, None).footprint, None);
}

#[test]
fn a_machine_that_lists_no_processes_knows_no_footprint() {
    let proc = Proc::new();
    assert_eq!(proc.meter().look(0.0, None).footprint, None);
    proc.start(7, 1, 7, 1);
    assert_eq!(proc.meter().look(0.0, None).footprint, Some(Bytes::ZERO));
}

#[test]
fn pages_shared_since_a_fork_do_not_stop_a_job() {
    let proc = Proc::new();
    proc.start(100, 50, 100, 1).start(101, 100, 100, 2);
    for pid in [100, 101] {
        proc.write(pid, "smaps_rollup", "Pss_Anon: 600 kB\nPss_Shmem: 0 kB\nSwapPss: 0 kB\n");
    }
    let mut meter = proc.meter();
    let limit = Some(Bytes(1500 * 1024));
    assert_eq!(meter.look(0.0, limit).footprint, Some(Bytes(1200 * 1024)));
    assert_eq!(meter.look(0.1, limit).footprint, Some(Bytes(1200 * 1024)), "remembered");
    proc.start(102, 100, 100, 3);
    assert_eq!(meter.look(0.2, limit).footprint, Some(Bytes(2224 * 1024)), "measured anew");
}

#[test]
fn the_guard_and_what_is_above_it_are_never_members() {
    let proc = Proc::new();
    let me = std::process::id() as i32;
    proc.start(100, 50, 100, 1).start(me, 77, 100, 2).start(77, 1, 100, 1);
    assert_eq!(pids(&mut proc.meter()), [100]);
}

/// What can happen to the processes of a machine between two looks.
#[derive(Debug, Clone)]
enum Happening {
    /// One of them forks; the child may make a session of its own. Numbers are few and used again.
    Fork {
        parent: usize,
        number: i32,
        own_session: bool,
        keeps_mark: bool,
    },
    /// One of them ends, and its children get a new parent.
    End {
        which: usize,
    },
    Look,
}

fn happening() -> impl Strategy<Value = Happening> {
    let fork = (any::<usize>(), 100..112, any::<bool>(), any::<bool>()).prop_map(
        |(parent, number, own_session, keeps_mark)| Happening::Fork {
            parent,
            number,
            own_session,
            keeps_mark,
        },
    );
    prop_oneof![
        4 => fork,
        2 => any::<usize>().prop_map(|which| Happening::End { which }),
        2 => Just(Happening::Look),
    ]
}

/// A process as it is, and not as the meter sees it.
#[derive(Debug, Clone, Copy)]
struct Truth {
    pid: i32,
    parent: i32,
    group: i32,
    start: u64,
    is_ours: bool,
    is_marked: bool,
}

/// A machine with a job that 100 leads and strangers below 60.
struct World {
    proc: Proc,
    there: Vec<Truth>,
    started: u64,
}

impl World {
    fn new() -> Self {
        let mut world = Self { proc: Proc::new(), there: Vec::new(), started: 0 };
        let leader =
            Truth { pid: 100, parent: 50, group: 100, start: 1, is_ours: true, is_marked: true };
        world.begin(leader);
        world.begin(Truth {
            pid: 60,
            parent: 1,
            group: 60,
            start: 2,
            is_ours: false,
            is_marked: false,
        });
        world
    }

    fn begin(&mut self, process: Truth) {
        let Truth { pid, parent, group, start, is_marked, .. } = process;
        self.proc.start(pid, parent, group, start);
        let mark = if is_marked { "STAGELOAD_JOB=token\0" } else { "A=1\0" };
        self.proc.write(pid, "environ", mark);
        self.there.push(process);
        self.started = start;
    }

    fn let_happen(&mut self, what: &Happening) {
        match *what {
            Happening::Fork { parent, number, own_session, keeps_mark } => {
                let taken =
                    |number| self.there.iter().any(|one| one.pid == number || one.group == number);
                if self.there.is_empty() || taken(number) {
                    return;
                }
                let parent = self.there[parent % self.there.len()];
                let child = Truth {
                    pid: number,
                    parent: parent.pid,
                    group: if own_session { number } else { parent.group },
                    start: self.started + 1,
                    is_ours: parent.is_ours,
                    is_marked: parent.is_marked && keeps_mark,
                };
                self.begin(child);
            }
            Happening::End { which } => self.end(which),
            Happening::Look => {}
        }
    }

    fn end(&mut self, which: usize) {
        // The strangers' first stays, so that there are strangers.
        let Some(gone) =
            self.there.get(which % self.there.len()).copied().filter(|one| one.pid != 60)
        else {
            return;
        };
        self.proc.end(gone.pid);
        self.there.retain(|one| one.pid != gone.pid);
        // The guard adopts the job's orphans, the first process everybody else's.
        let new_parent = if gone.is_ours { std::process::id() as i32 } else { 1 };
        for orphan in self.there.iter_mut().filter(|one| one.parent == gone.pid) {
            orphan.parent = new_parent;
            self.proc.start(orphan.pid, new_parent, orphan.group, orphan.start);
        }
    }

    fn ours(&self) -> Vec<ProcessId> {
        let ours = self.there.iter().filter(|one| one.is_ours);
        ours.map(|one| ProcessId { pid: one.pid, start: one.start }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Signals go to members and to nobody else, so this is who can be signalled.
    #[test]
    fn whatever_happens_no_stranger_is_ever_a_member(
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut world = World::new();
        let mut meter = world.proc.meter();
        for what in happenings {
            world.let_happen(&what);
            if matches!(what, Happening::Look) {
                meter.refresh();
                let ours = world.ours();
                let strangers: Vec<_> = meter.members().filter(|id| !ours.contains(id)).collect();
                prop_assert!(strangers.is_empty(), "{strangers:?} in {:?}", world.there);
            }
        }
    }

    #[test]
    fn whatever_happens_the_whole_job_is_found_within_ten_looks(
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut world = World::new();
        let mut meter = world.proc.meter();
        for what in happenings {
            world.let_happen(&what);
        }
        for _ in 0..10 {
            meter.refresh();
        }
        let found: Vec<_> = meter.members().collect();
        prop_assert!(world.ours().iter().all(|id| found.contains(id)), "{found:?} of {:?}", world.there);
    }
}
