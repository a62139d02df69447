//! macOS: what page counts say about how near the machine is to swapping. Pure arithmetic in pages,
//! so every system tests it. Where the counts come from: `macos/gauges.rs`.
//!
//! The kernel weighs the pages it can use without the compressor (active, inactive, free and
//! speculative: `available` here) against those and the compressor's own: `r`. It starts to swap
//! below 0.40 (XNU 15.4, `vm_compressor.c`: divisors 20, 25, 35 and 50). Read there, not measured on a
//! Mac. Not here: thresholds; the policy has them.

/// Of the pages that hold data, the part that must be uncompressed for the kernel not to swap.
const SWAPS_BELOW: f64 = 0.4;

/// Counts that the kernel hands out fresh each time, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Live {
    /// All there are.
    pub(super) total: Option<u64>,
    pub(super) free: Option<u64>,
    /// Anonymous ones that can be paged out.
    pub(super) internal: Option<u64>,
    /// File cache, the speculative ones included.
    pub(super) external: Option<u64>,
    pub(super) purgeable: Option<u64>,
    /// What compressed data fills; the holes between it are not counted, so it is a little low.
    pub(super) compressed: Option<u64>,
    /// What the compressor was given to hold, swapped out or not.
    pub(super) stored: Option<u64>,
    /// The file cache that the kernel keeps whatever happens.
    pub(super) cache_floor: Option<u64>,
}

/// Counts out of one answer of the rate-limited call, which may be a second old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) available: u64,
    pub(super) wired: u64,
    pub(super) compressor: u64,
    /// Page faults since the start of the machine. They never stand still, so two answers with the
    /// same number are one answer.
    pub(super) faults: u64,
}

/// Live counts beside the latest copy, if there is any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    pub(super) live: Live,
    pub(super) copied: Option<Copied>,
}

impl Pages {
    /// Pages in use or usable without the compressor. Every pageable page is internal or external,
    /// so this sum of fresh counts is the kernel's own of active, inactive, free and speculative.
    fn available(self) -> Option<u64> {
        let Live { free, internal, external, .. } = self.live;
        let sum = || Some(free? + internal? + external?);
        sum().or(self.copied.map(|copied| copied.available))
    }

    /// Pages the compressor holds in memory. The live count is low and the copied one is old; the
    /// larger one errs on the side of swapping too soon.
    pub(super) fn compressor(self) -> Option<u64> {
        self.live.compressed.max(self.copied.map(|copied| copied.compressor))
    }

    /// Pages that cannot be moved. Without a copy: all that is neither available nor the
    /// compressor's.
    fn wired(self) -> Option<u64> {
        let rest =
            || self.live.total?.checked_sub(self.available()?)?.checked_sub(self.compressor()?);
        self.copied.map(|copied| copied.wired).or_else(rest)
    }

    /// The kernel's own measure of how near swapping is.
    pub(super) fn r(self) -> Option<f64> {
        let (available, compressor) = (self.available()? as f64, self.compressor()? as f64);
        let all = available + compressor;
        (all > 0.0).then_some(available / all)
    }

    /// How many pages can be wired or compressed before the kernel swaps, if nothing else moves: an
    /// upper bound, for compressing gives the compressor pages and wiring takes from the sum.
    pub(super) fn to_swap(self) -> Option<u64> {
        let (available, compressor) = (self.available()? as f64, self.compressor()? as f64);
        Some((available - SWAPS_BELOW * (available + compressor)).max(0.0) as u64)
    }

    /// Pages that must live somewhere: in memory, compressed or in swap.
    pub(super) fn demand(self) -> Option<u64> {
        Some(self.live.internal? + self.wired()? + self.live.stored?)
    }

    /// Pages that a new job gets without pushing anybody's out.
    pub(super) fn claimable(self) -> Option<u64> {
        let Live { free, external, purgeable, cache_floor, .. } = self.live;
        Some((free? + external? + purgeable?).saturating_sub(cache_floor?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 48 GB in pages of 16 KB with 8 GB wired.
    const TOTAL: u64 = 48 * GB;
    const GB: u64 = 65_536;

    fn live(free: u64, internal: u64, external: u64, compressed: u64) -> Live {
        Live {
            total: Some(TOTAL),
            free: Some(free),
            internal: Some(internal),
            external: Some(external),
            purgeable: Some(GB),
            compressed: Some(compressed),
            stored: Some(3 * compressed),
            cache_floor: Some(2 * GB),
        }
    }

    fn copied(available: u64, wired: u64, compressor: u64) -> Copied {
        Copied { available, wired, compressor, faults: 1 }
    }

    #[test]
    fn swapping_begins_where_the_kernel_begins_it() {
        // 40 GB that are not wired: 16 of them uncompressed are the limit of 0.4.
        let at_limit = Pages { live: live(GB, 10 * GB, 5 * GB, 24 * GB), copied: None };
        assert_eq!(at_limit.r(), Some(0.4));
        assert_eq!(at_limit.to_swap(), Some(0));
        let before = Pages { live: live(GB, 20 * GB, 5 * GB, 14 * GB), copied: None };
        assert_eq!(before.to_swap(), Some(10 * GB));
        let beyond = Pages { live: live(GB, 4 * GB, GB, 34 * GB), copied: None };
        assert!(beyond.r().unwrap() < 0.2);
        assert_eq!(beyond.to_swap(), Some(0), "not below 0");
    }

    #[test]
    fn demand_does_not_move_when_pages_are_compressed_or_swapped_out() {
        let uncompressed = Live { stored: Some(0), ..live(10 * GB, 25 * GB, 5 * GB, 0) };
        let compressed = Live { stored: Some(9 * GB), ..live(16 * GB, 16 * GB, 5 * GB, 3 * GB) };
        let swapped = Live { stored: Some(9 * GB), ..live(19 * GB, 16 * GB, 5 * GB, 0) };
        for live in [uncompressed, compressed, swapped] {
            assert_eq!(Pages { live, copied: None }.demand(), Some((25 + 8) * GB));
        }
    }

    #[test]
    fn wired_pages_are_the_kernels_count_and_else_what_is_left() {
        let live = live(10 * GB, 25 * GB, 5 * GB, 0);
        assert_eq!(Pages { live, copied: None }.wired(), Some(8 * GB));
        assert_eq!(Pages { live, copied: Some(copied(0, 7 * GB, 0)) }.wired(), Some(7 * GB));
    }

    #[test]
    fn the_larger_count_of_the_compressor_decides() {
        let pages = |compressor| Pages {
            live: live(GB, 10 * GB, 5 * GB, 4 * GB),
            copied: Some(copied(16 * GB, 8 * GB, compressor)),
        };
        assert_eq!(pages(16 * GB).r(), Some(0.5));
        assert_eq!(pages(0).r(), Some(0.8), "it grew since the copy was made");
    }

    #[test]
    fn a_copy_stands_in_for_live_counts_that_are_missing() {
        let pages = Pages { live: Live::default(), copied: Some(copied(6 * GB, 8 * GB, 2 * GB)) };
        assert_eq!(pages.r(), Some(0.75));
        assert_eq!((pages.demand(), pages.claimable()), (None, None));
    }

    #[test]
    fn claimable_leaves_the_kernel_its_file_cache_and_is_not_below_0() {
        let pages = |free, external| Pages { live: live(free, 0, external, 0), copied: None };
        assert_eq!(pages(3 * GB, 5 * GB).claimable(), Some(7 * GB));
        assert_eq!(pages(0, GB / 2).claimable(), Some(0));
    }

    #[test]
    fn what_is_not_counted_is_unknown_and_not_0() {
        let nothing = Pages { live: Live::default(), copied: None };
        assert_eq!((nothing.r(), nothing.to_swap()), (None, None));
        assert_eq!((nothing.demand(), nothing.claimable()), (None, None));
        let all_zero = Pages { live: live(0, 0, 0, 0), copied: None };
        assert_eq!(all_zero.r(), None, "0 of 0 is no ratio");
        let impossible = Live { total: Some(GB), ..live(GB, GB, GB, GB) };
        assert_eq!(Pages { live: impossible, copied: None }.demand(), None);
    }
}
