//! How macOS lays out what it answers: numbers of two widths, host statistics, resource usage,
//! identities, audit tokens. Pure, so every system tests it. From Apple's headers (XNU
//! `mach/vm_statistics.h`, `sys/resource.h`, `sys/proc_info_private.h`, `bsm/audit.h`); where libc or
//! mach2 has the same struct, `macos/` checks the places against it at compile time.

use super::compressor::Copied;

/// A whole number of 4 or 8 bytes: the same sysctl has had both widths.
pub(super) fn number(raw: &[u8]) -> Option<u64> {
    let narrow = || raw.try_into().ok().map(|raw| u64::from(u32::from_ne_bytes(raw)));
    raw.try_into().ok().map(u64::from_ne_bytes).or_else(narrow)
}

/// Places of `vm_statistics64`, in words of 4 bytes.
pub(super) mod vm_info {
    pub(in crate::sys) const FREE: usize = 0;
    pub(in crate::sys) const ACTIVE: usize = 1;
    pub(in crate::sys) const INACTIVE: usize = 2;
    pub(in crate::sys) const WIRED: usize = 3;
    /// Two words.
    pub(in crate::sys) const FAULTS: usize = 12;
    pub(in crate::sys) const COMPRESSOR: usize = 32;
}

/// The counts that are used of `vm_statistics64`, however long this system's is: macOS 27 made it
/// longer. Its free pages have the speculative ones in them.
pub(super) fn copied(words: &[u32]) -> Option<Copied> {
    let word = |place: usize| words.get(place).copied().map(u64::from);
    let faults: [u32; 2] = words.get(vm_info::FAULTS..)?.first_chunk().copied()?;
    Some(Copied {
        available: word(vm_info::FREE)? + word(vm_info::ACTIVE)? + word(vm_info::INACTIVE)?,
        wired: word(vm_info::WIRED)?,
        compressor: word(vm_info::COMPRESSOR)?,
        faults: u64::from(faults[0]) | u64::from(faults[1]) << 32,
    })
}

/// Places of `rusage_info_v6`, in words of 8 bytes; version 4 is the same up to word 36.
pub(super) mod usage {
    /// More than any version has (version 6: 58), so that a newer system cannot write past the end.
    pub(in crate::sys) const ROOM: usize = 64;
    pub(in crate::sys) const FOOTPRINT: usize = 9;
    pub(in crate::sys) const INTERVAL_MAX: usize = 35;
    /// Reserved, and so 0, before macOS 15; not there in version 4.
    pub(in crate::sys) const NEURAL: usize = 46;
}

/// What a process holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// The neural engine's included, which the kernel keeps an account of its own for.
    pub(super) footprint: u64,
    /// The most since the interval was last reset, without the neural engine's: that one's peak need
    /// not fall together with it. At least `footprint`.
    pub(super) interval_max: u64,
}

/// Reads a zeroed buffer that was filled with any version from 4 on.
pub(super) fn usage(words: &[u64; usage::ROOM]) -> Usage {
    let footprint = words[usage::FOOTPRINT].saturating_add(words[usage::NEURAL]);
    Usage { footprint, interval_max: words[usage::INTERVAL_MAX].max(footprint) }
}

/// `proc_uniqidentifierinfo`, which the SDK leaves out.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct UniqueInfo {
    pub(super) uuid: [u8; 16],
    /// Never used again, and the same before and after an exec.
    pub(super) own: u64,
    /// That of the process that forked it; stays when the parent ends.
    pub(super) parent: u64,
    /// Another one after each exec.
    pub(super) version: i32,
    pub(super) rest: [u32; 5],
}

/// An audit token that names one process between two execs. The kernel looks at these two words only
/// when it sends a signal (XNU `proc_info.c`).
pub(super) fn audit_token(pid: i32, version: i32) -> [u32; 8] {
    let mut words = [0; 8];
    words[5] = pid as u32;
    words[7] = version as u32;
    words
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn numbers_are_read_in_either_width() {
        assert_eq!(number(&7u32.to_ne_bytes()), Some(7));
        assert_eq!(number(&(1u64 << 40).to_ne_bytes()), Some(1 << 40));
        assert_eq!(number(&u32::MAX.to_ne_bytes()), Some(u64::from(u32::MAX)));
        for wrong in [&[][..], &[1], &[1, 2, 3, 4, 5], &[0; 9]] {
            assert_eq!(number(wrong), None);
        }
    }

    #[test]
    fn host_statistics_are_read_at_any_length_that_reaches_the_compressor() {
        let words: Vec<u32> = (0..60).collect();
        let expected = Copied { available: 1 + 2, wired: 3, compressor: 32, faults: 0xd_0000_000c };
        for length in [33, 38, 60] {
            assert_eq!(copied(&words[..length]), Some(expected), "{length} words");
        }
        for length in [0, 13, 32] {
            assert_eq!(copied(&words[..length]), None, "{length} words");
        }
    }

    #[test]
    fn a_peak_is_never_below_the_footprint() {
        let mut words = [0; usage::ROOM];
        (words[usage::FOOTPRINT], words[usage::INTERVAL_MAX]) = (100, 150);
        assert_eq!(usage(&words), Usage { footprint: 100, interval_max: 150 });
        words[usage::NEURAL] = 70;
        assert_eq!(usage(&words), Usage { footprint: 170, interval_max: 170 });
    }

    #[test]
    fn an_identity_has_the_kernels_layout() {
        assert_eq!(size_of::<UniqueInfo>(), 56);
        let places = [
            offset_of!(UniqueInfo, own),
            offset_of!(UniqueInfo, parent),
            offset_of!(UniqueInfo, version),
        ];
        assert_eq!(places, [16, 24, 32]);
    }

    #[test]
    fn a_token_names_the_process_and_its_version() {
        assert_eq!(audit_token(42, -1), [0, 0, 0, 0, 0, 42, 0, u32::MAX]);
    }
}
