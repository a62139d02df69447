//! What the whole machine says of its memory.
//!
//! Sysctls are fresh each time. Host statistics are rate-limited over all programs, so only what no
//! sysctl tells comes from there: the wired pages and the exact size of the compressor
//! (`vm.page_wire_count` is in debug kernels only). What is made of the counts is in
//! `compressor.rs`; how old answers are told from new ones, in `stale.rs`.

use std::ffi::CStr;
use std::mem::offset_of;
use std::sync::OnceLock;

use mach2::vm_statistics::vm_statistics64;
use stageload_core::{Bytes, Percent, Pressure};

use super::sysctl;
use crate::sys::Gauges;
use crate::sys::compressor::{Copied, Live, Pages};
use crate::sys::layouts::{self, vm_info};

/// `HOST_INFO_MAX`: the most that host statistics can be. A buffer of one system's own size fails
/// on a later one with -307 (psutil #2853).
const HOST_INFO_MAX: usize = 1024;

const _: () = {
    assert!(offset_of!(vm_statistics64, free_count) == 4 * vm_info::FREE);
    assert!(offset_of!(vm_statistics64, active_count) == 4 * vm_info::ACTIVE);
    assert!(offset_of!(vm_statistics64, inactive_count) == 4 * vm_info::INACTIVE);
    assert!(offset_of!(vm_statistics64, wire_count) == 4 * vm_info::WIRED);
    assert!(offset_of!(vm_statistics64, faults) == 4 * vm_info::FAULTS);
    assert!(offset_of!(vm_statistics64, compressor_page_count) == 4 * vm_info::COMPRESSOR);
};

/// All gauges but the age, with what host statistics say if they say anything.
pub(super) fn read(copied: Option<Copied>) -> Gauges {
    let memory = sysctl::number(c"hw.memsize");
    let swap = sysctl::swap();
    let page = sysctl::number(c"hw.pagesize").filter(|page| *page > 0);
    let pages = Pages { live: live(memory, page), copied };
    let bytes = |pages: Option<u64>| Some(Bytes(pages?.checked_mul(page?)?));
    Gauges {
        memory: memory.map(Bytes),
        swap_used: swap.map(|swap| Bytes(swap.xsu_total.saturating_sub(swap.xsu_avail))),
        swap_total: swap.map(|swap| Bytes(swap.xsu_total)),
        level: small(c"kern.memorystatus_level").and_then(Percent::new),
        pressure: pressure(),
        compressed: bytes(pages.compressor()),
        r: pages.r(),
        to_swap: bytes(pages.to_swap()),
        demand: bytes(pages.demand()),
        claimable: bytes(pages.claimable()),
        // A footprint there holds each shared page once, with its owner.
        shared: None,
        age: None,
    }
}

/// The system's own word.
pub(super) fn pressure() -> Option<Pressure> {
    Pressure::try_from(small(c"kern.memorystatus_vm_pressure_level")?).ok()
}

fn small(name: &CStr) -> Option<u8> {
    u8::try_from(sysctl::number(name)?).ok()
}

fn live(memory: Option<u64>, page: Option<u64>) -> Live {
    let in_pages = |bytes: Option<u64>| Some(bytes?.div_ceil(page?));
    Live {
        total: in_pages(memory),
        free: sysctl::number(c"vm.page_free_count"),
        internal: sysctl::number(c"vm.page_pageable_internal_count"),
        external: sysctl::number(c"vm.page_pageable_external_count"),
        purgeable: sysctl::number(c"vm.page_purgeable_count"),
        compressed: in_pages(sysctl::number(c"vm.compressor_bytes_used")),
        stored: sysctl::number(c"vm.compressor_segment_pages_compressed"),
        cache_floor: sysctl::number(c"vm.vm_page_filecache_min"),
    }
}

/// One answer of host statistics, old or new; None if the call fails.
#[expect(unsafe_code, reason = "Mach is a C interface")]
pub(super) fn copied() -> Option<Copied> {
    let mut words = [0u32; HOST_INFO_MAX];
    let mut count = HOST_INFO_MAX as libc::mach_msg_type_number_t;
    let place = words.as_mut_ptr().cast::<libc::integer_t>();
    // SAFETY: `place` has `count` words of 4 bytes, and the port is the host's.
    let code =
        unsafe { libc::host_statistics64(host(), libc::HOST_VM_INFO64, place, &raw mut count) };
    let answer = words.get(..usize::try_from(count).ok()?)?;
    (code == libc::KERN_SUCCESS).then(|| layouts::copied(answer))?
}

/// The port is asked for once: each call adds a right to it that is never given back (psutil #333).
#[expect(unsafe_code, reason = "Mach is a C interface")]
fn host() -> libc::mach_port_t {
    static HOST: OnceLock<libc::mach_port_t> = OnceLock::new();
    // SAFETY: the call takes nothing and only returns a port's name.
    *HOST.get_or_init(|| unsafe { mach2::mach_init::mach_host_self() })
}
