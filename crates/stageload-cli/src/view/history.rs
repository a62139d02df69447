//! The looks so far, as many as the widest graph shows, and the peak of all.

use std::collections::{BTreeMap, VecDeque};

use stageload::LiveMeter;
use stageload::core::{Bytes, Reading, printable};

use super::MOST_GRAPH;

/// No graph is wider, those that have a line of their own included.
const KEPT: usize = MOST_GRAPH;

/// What was seen of one process tree or of the machine.
#[derive(Debug)]
pub(crate) struct History {
    title: String,
    /// A process tree has a footprint, the machine a demand.
    is_tree: bool,
    memory: Option<Bytes>,
    looks: VecDeque<Reading>,
    peak: Option<Bytes>,
    names: BTreeMap<i32, String>,
}

impl History {
    pub(crate) fn of(meter: &LiveMeter) -> Self {
        let titled = |pid| match meter.command_line(pid) {
            Some(command) => format!("pid {pid}  {}", name(&command)),
            None => format!("pid {pid}"),
        };
        let root = meter.root().map(|root| root.pid);
        let title = root.map_or_else(|| "whole machine".to_owned(), titled);
        Self::new(title, root.is_some(), meter.memory())
    }

    pub(super) fn new(title: String, is_tree: bool, memory: Option<Bytes>) -> Self {
        let (looks, names) = (VecDeque::new(), BTreeMap::new());
        Self { title, is_tree, memory, looks, peak: None, names }
    }

    /// Takes in a look; `command_line` is asked for the members that are shown.
    pub(crate) fn push(&mut self, reading: Reading, command_line: impl Fn(i32) -> Option<String>) {
        let named = |pid| Some((pid, name(&command_line(pid)?)));
        let shown = reading.members.iter().take(super::NAMED);
        self.names = shown.filter_map(|member| named(member.pid)).collect();
        self.peak = self.peak.max(self.held(&reading)).max(reading.peak);
        if self.looks.len() == KEPT {
            self.looks.pop_front();
        }
        self.looks.push_back(reading);
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) const fn label(&self) -> &'static str {
        if self.is_tree { "footprint" } else { "demand" }
    }

    pub(super) const fn held(&self, reading: &Reading) -> Option<Bytes> {
        if self.is_tree { reading.footprint } else { reading.demand }
    }

    pub(super) const fn memory(&self) -> Option<Bytes> {
        self.memory
    }

    pub(super) const fn peak(&self) -> Option<Bytes> {
        self.peak
    }

    pub(super) fn last(&self) -> Option<&Reading> {
        self.looks.back()
    }

    pub(super) fn name(&self, pid: i32) -> Option<&str> {
        self.names.get(&pid).map(String::as_str)
    }

    /// One size of each look, in bytes.
    pub(super) fn values(&self, size: impl Fn(&Reading) -> Option<Bytes>) -> Vec<Option<f64>> {
        self.looks.iter().map(|reading| size(reading).map(|size| size.0 as f64)).collect()
    }

    /// What was available at each look, in percent.
    pub(super) fn levels(&self) -> Vec<Option<f64>> {
        self.looks.iter().map(|reading| reading.level.map(|level| level.get().into())).collect()
    }
}

/// A command line without the folder of its program and without what moves a cursor.
fn name(command: &str) -> String {
    let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    printable(format!("{program} {arguments}").trim_end()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_program_and_what_it_was_given() {
        assert_eq!(name("/usr/bin/python3 /home/me/run.py"), "python3 /home/me/run.py");
        assert_eq!(name("sleep"), "sleep");
        assert_eq!(name("\u{1b}[31mred\n 5"), "[31mred 5");
    }

    #[test]
    fn the_peak_outlives_the_looks_and_knows_what_was_between_them() {
        let mut history = History::new(String::new(), true, None);
        let held = |mib| Reading { footprint: Some(Bytes::mib(mib)), ..Reading::default() };
        history.push(Reading { peak: Some(Bytes::mib(9)), ..held(5) }, |_| None);
        for _ in 0..2 * KEPT {
            history.push(held(1), |_| None);
        }
        assert_eq!(history.peak(), Some(Bytes::mib(9)));
        assert_eq!(history.values(|reading| reading.footprint).len(), KEPT);
    }
}
