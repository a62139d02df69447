//! What `/proc/meminfo` and `/proc/pressure/memory` say of the whole machine.

use stageload_core::{Percent, Pressure};

use super::text::{number_in, size};
use crate::sys::Gauges;

/// Somebody waited for memory in this much of the last ten seconds.
const WARN: f64 = 10.0;
/// Everybody did, in this much of them: nohang's first threshold for a machine in trouble.
const CRITICAL: f64 = 40.0;

/// What cannot be read is unknown, never 0.
///
/// Demand is all that is not available, and what is in swap: like macOS's, it stays the same when
/// pages go out and come back. Not here: r and the distance to swap, which Linux has no number for.
pub(super) fn parse_meminfo(text: &[u8]) -> Gauges {
    let (memory, available) = (size(text, "MemTotal"), size(text, "MemAvailable"));
    let swap_total = size(text, "SwapTotal");
    let swap_free = size(text, "SwapFree");
    let swap_used = swap_total.zip(swap_free).map(|(total, free)| total.saturating_sub(free));
    let taken = memory.zip(available).map(|(all, available)| all.saturating_sub(available));
    Gauges {
        memory,
        swap_used,
        swap_total,
        level: available.zip(memory).and_then(|(available, all)| Percent::of(available, all)),
        compressed: size(text, "Zswap"),
        demand: taken.zip(swap_used).map(|(taken, swapped)| taken + swapped),
        claimable: available,
        shared: size(text, "Shmem"),
        ..Gauges::default()
    }
}

/// How much of the last ten seconds was spent waiting for memory, as a level.
pub(super) fn parse_pressure(text: &[u8]) -> Option<Pressure> {
    let (some, full) = (average(text, b"some ")?, average(text, b"full ")?);
    Some(match () {
        () if full >= CRITICAL => Pressure::Critical,
        () if some >= WARN => Pressure::Warn,
        () => Pressure::Normal,
    })
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`
fn average(text: &[u8], kind: &[u8]) -> Option<f64> {
    let line = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(kind))?;
    let word = line.split(|b| *b == b' ').find_map(|word| word.strip_prefix(b"avg10="))?;
    number_in(word).filter(|percent| (0.0..=100.0).contains(percent))
}

#[cfg(test)]
mod tests {
    use stageload_core::Bytes;

    use super::*;

    #[test]
    fn what_meminfo_does_not_say_is_unknown_and_never_0() {
        let gauges = parse_meminfo(b"MemTotal: 0 kB\nMemAvailable: garbage\n");
        assert_eq!(gauges, Gauges { memory: Some(Bytes::ZERO), ..Gauges::default() });
        let no_swap = parse_meminfo(b"SwapTotal: 0 kB\nSwapFree: 0 kB\n");
        assert_eq!(no_swap.swap_used, Some(Bytes::ZERO));
    }

    #[test]
    fn demand_stays_as_it_is_when_pages_go_to_swap() {
        let before = b"MemTotal: 100 kB\nMemAvailable: 20 kB\nSwapTotal: 50 kB\nSwapFree: 50 kB\n";
        let after = b"MemTotal: 100 kB\nMemAvailable: 50 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n";
        assert_eq!(parse_meminfo(before).demand, Some(Bytes(80 * 1024)));
        assert_eq!(parse_meminfo(after).demand, Some(Bytes(80 * 1024)));
    }

    #[test]
    fn pressure_is_how_long_tasks_waited_for_memory() {
        let said = |some: &str, full: &str| {
            let line = |kind, avg| format!("{kind} avg10={avg} avg60=0.00 avg300=0.00 total=0\n");
            parse_pressure((line("some", some) + &line("full", full)).as_bytes())
        };
        assert_eq!(said("0.00", "0.00"), Some(Pressure::Normal));
        assert_eq!(said("12.50", "3.00"), Some(Pressure::Warn));
        assert_eq!(said("95.00", "60.00"), Some(Pressure::Critical));
        assert_eq!(said("NaN", "inf"), None);
        assert_eq!(parse_pressure(b""), None);
    }
}
