//! The command lines that keep a job from starting.

use std::sync::LazyLock;

use regex::Regex;

use crate::meter::ancestors;
use crate::sys::Machine;

/// A guard, or a shell around one.
static GUARD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(^|[\s/])stageload (guard|run|mesh|add|supervise)(\s|$)").ok());

/// Command lines that match a pattern, like `pgrep -f`. Left out are this guard and everything
/// above it, whose command lines hold the patterns themselves, and other guards: one that waits has
/// no job yet, and the job of one that runs has a line of its own.
pub(crate) fn busy_commands(machine: &Machine, patterns: &[Regex]) -> Vec<String> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let own = ancestors(machine, std::process::id() as i32);
    let others = machine.pids().into_iter().filter(|pid| !own.contains(pid));
    others
        .filter_map(|pid| machine.command_line(pid))
        .filter(|line| !is_guard(line) && patterns.iter().any(|one| one.is_match(line)))
        .collect()
}

fn is_guard(line: &str) -> bool {
    GUARD.as_ref().is_some_and(|guard| guard.is_match(line))
}

// On a written `/proc`, so only where there is one.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn guards_and_their_shells_are_not_busy_but_their_jobs_are() {
        let folder = tempfile::tempdir().unwrap();
        let lines = [
            (10, "python\0train.py\0"),
            (11, "/usr/bin/stageload\0guard\0--busy\0train.py\0--\0python\0train.py\0"),
            (12, "sh\0-c\0stageload guard --busy train.py -- python train.py\0"),
            (13, "vim\0notes.txt\0"),
            (15, "python\0/opt/venv/bin/stageload\0guard\0--\0python\0train.py\0"),
            (16, "python\0/data/stageload/train.py\0--busy\0"),
            (14, ""),
        ];
        for (pid, line) in lines {
            let process = folder.path().join(pid.to_string());
            std::fs::create_dir(&process).unwrap();
            std::fs::write(process.join("cmdline"), line).unwrap();
        }
        let machine = Machine::under(folder.path());
        let patterns = [Regex::new(r"train\.py").unwrap()];
        let mut busy = busy_commands(&machine, &patterns);
        busy.sort();
        assert_eq!(busy, ["python /data/stageload/train.py --busy", "python train.py"]);
        assert!(busy_commands(&machine, &[]).is_empty());
    }
}
