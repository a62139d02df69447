//! `/proc/<pid>/status` and `smaps_rollup`: what a process holds.

use stageload_core::Bytes;

use super::text::size;
use crate::sys::Held;

/// What a process holds, and what it held at most since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) footprint: Bytes,
    /// The part of it that other processes may hold as well.
    pub(super) shared: Bytes,
    /// None where the kernel does not count along.
    pub(super) lifetime_peak: Option<Bytes>,
}

impl Status {
    /// Anonymous, shared and swapped-out memory. Mapped files are not in it: they can be dropped at
    /// any time. The kernel's own peak has them, and has no swap, so both are put right.
    pub(super) fn parse(text: &[u8]) -> Self {
        let part = |key| size(text, key).unwrap_or_default();
        let (shared, swapped) = (part("RssShmem"), part("VmSwap"));
        let lifetime_peak =
            size(text, "VmHWM").map(|peak| peak.saturating_sub(part("RssFile")) + swapped);
        Self { footprint: part("RssAnon") + shared + swapped, shared, lifetime_peak }
    }

    /// What it holds now, with its peak since the look at which its lifetime peak was `before`: a
    /// lifetime peak that has not risen says nothing of the time since.
    pub(super) fn since(self, before: Option<Bytes>) -> Held {
        let has_risen = |peak: &Bytes| before.is_some_and(|before| *peak > before);
        let peak = self.lifetime_peak.filter(has_risen).map(|peak| peak.max(self.footprint));
        Held { footprint: self.footprint, shared: self.shared, peak }
    }
}

/// A `status` without memory is a zombie's, or that of a main thread that ended before the others.
pub(super) fn has_memory(text: &[u8]) -> bool {
    size(text, "RssAnon").is_some()
}

/// What is left of the footprint when shared pages are split among those who share them.
pub(super) fn proportional(rollup: &[u8]) -> Option<Bytes> {
    let rest = ["Pss_Shmem", "SwapPss"].iter().filter_map(|key| size(rollup, key));
    Some(size(rollup, "Pss_Anon")? + rest.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: Bytes = Bytes::mib(1);

    #[test]
    fn a_peak_between_two_looks_is_seen_where_it_is_the_highest_yet() {
        let text = b"VmHWM: 9216 kB\nRssAnon: 1024 kB\nRssFile: 1024 kB\nVmSwap: 1024 kB\n";
        let status = Status::parse(text);
        assert_eq!(status.footprint, Bytes::mib(2));
        assert_eq!(status.since(Some(MIB)).peak, Some(Bytes::mib(9)), "no file, but swap");
        assert_eq!(status.since(status.lifetime_peak).peak, None);
        assert_eq!(status.since(None).peak, None, "the first look has none before it");
    }

    #[test]
    fn pages_shared_by_two_are_half_a_page_each() {
        let rollup =
            b"Rss: 900 kB\nPss: 700 kB\nPss_Anon: 300 kB\nPss_Shmem: 20 kB\nSwapPss: 1 kB\n";
        assert_eq!(proportional(rollup), Some(Bytes(321 * 1024)));
        assert_eq!(proportional(b"Rss: 900 kB\n"), None, "an older kernel does not split");
    }
}
