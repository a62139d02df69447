//! `/proc/<pid>/stat`: who a process is and where it stands.

use super::text::number_in;
use crate::sys::{Process, ProcessId};

/// Where the fields lie behind the name, counted from 0 (`proc_pid_stat(5)` counts from 3).
const STATE: usize = 0;
const PARENT: usize = 1;
const GROUP: usize = 2;
const SESSION: usize = 3;
const THREADS: usize = 17;
const START: usize = 19;

/// `pid (name) state parent group session ...`, where the name may hold anything, `) Z ` included;
/// the last parenthesis ends it.
pub(super) fn parse_stat(raw: &[u8]) -> Option<Process> {
    let name_start = raw.iter().position(|b| *b == b'(')?;
    let name_end = raw.iter().rposition(|b| *b == b')')?;
    let pid = number_in(&raw[..name_start])?;
    let rest = raw.get(name_end + 1..)?;
    let mut fields: [&[u8]; START + 1] = [&[]; START + 1];
    let words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (field, word) in fields.iter_mut().zip(words) {
        *field = word;
    }
    let number = |i: usize| number_in::<i32>(fields[i]);
    Some(Process {
        id: ProcessId { pid, start: number_in(fields[START])? },
        parent: number(PARENT)?,
        group: number(GROUP)?,
        session: number(SESSION)?,
        // A main thread that ended before the others looks like a zombie, but the process lives.
        is_zombie: matches!(fields[STATE], b"Z" | b"X" | b"x") && number(THREADS)? <= 1,
        unique: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_stat_line_is_no_process() {
        for raw in ["", "12", "12 (a", "12 (a) S", "12 (a) S 1 2 3", ")(", "x (a) S 1 1 1"] {
            assert_eq!(parse_stat(raw.as_bytes()), None, "{raw}");
        }
    }
}
