//! Processes, one call each. Private flavors and calls are named after XNU's
//! `sys/proc_info_private.h` and `libproc_internal.h`. Not here: which process is meant; `grip.rs`.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::ptr;

use mach2::message::audit_token_t;

use super::symbol::Symbol;
use crate::sys::layouts::{self, UniqueInfo, Usage, usage as places};

/// `PROC_ALL_PIDS` of `sys/proc_info.h`; libc has the call but not the constant.
const PROC_ALL_PIDS: u32 = 1;
const PROC_PIDUNIQIDENTIFIERINFO: c_int = 17;
/// Since macOS 13; libc ends at version 4.
const RUSAGE_INFO_V6: c_int = 6;

const _: () = {
    assert!(offset_of!(libc::rusage_info_v4, ri_phys_footprint) == 8 * places::FOOTPRINT);
    assert!(
        offset_of!(libc::rusage_info_v4, ri_interval_max_phys_footprint)
            == 8 * places::INTERVAL_MAX
    );
};

#[expect(unsafe_code, reason = "libproc is a C interface")]
pub(super) fn pids() -> Option<Vec<i32>> {
    // SAFETY: a null buffer asks for the size only.
    let bytes = unsafe { libc::proc_listpids(PROC_ALL_PIDS, 0, ptr::null_mut(), 0) };
    // Room for those that start between the two calls.
    let mut pids = vec![0i32; usize::try_from(bytes).ok()? / size_of::<i32>() + 64];
    let room = (pids.len() * size_of::<i32>()) as c_int;
    // SAFETY: the buffer has `room` bytes.
    let filled =
        unsafe { libc::proc_listpids(PROC_ALL_PIDS, 0, pids.as_mut_ptr().cast::<c_void>(), room) };
    pids.truncate(usize::try_from(filled).ok()? / size_of::<i32>());
    pids.retain(|pid| *pid > 0);
    Some(pids)
}

/// None if there is no such process. Zombies are found too.
#[expect(unsafe_code, reason = "libproc is a C interface")]
pub(super) fn bsd_info(pid: i32) -> io::Result<Option<libc::proc_bsdinfo>> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as c_int;
    // SAFETY: the buffer has `size` bytes, the size of the flavor that is asked for. The 1 asks for
    // zombies as well (XNU `proc_info.c`).
    let filled = unsafe {
        libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 1, info.as_mut_ptr().cast(), size)
    };
    if filled == size {
        // SAFETY: all-zero is a valid proc_bsdinfo, and the call only wrote plain numbers.
        return Ok(Some(unsafe { info.assume_init() }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(None) } else { Err(error) }
}

/// None for a zombie, and for one that is not there.
#[expect(unsafe_code, reason = "libproc is a C interface")]
pub(super) fn unique_info(pid: i32) -> Option<UniqueInfo> {
    let mut info = UniqueInfo::default();
    let size = size_of::<UniqueInfo>() as c_int;
    let place = (&raw mut info).cast::<c_void>();
    // SAFETY: the buffer has `size` bytes of plain numbers, the size of the flavor that is asked for.
    let filled = unsafe { libc::proc_pidinfo(pid, PROC_PIDUNIQIDENTIFIERINFO, 0, place, size) };
    (filled == size).then_some(info)
}

#[expect(unsafe_code, reason = "std does not tell sessions")]
pub(super) fn session_of(pid: i32) -> i32 {
    // SAFETY: getsid takes a number and touches no memory.
    unsafe { libc::getsid(pid) }
}

/// What a process holds. A look at the kernel's ledger, so it costs the same at any size.
pub(super) fn usage(pid: i32) -> Option<Usage> {
    usage_by(RUSAGE_INFO_V6, pid).or_else(|| usage_by(libc::RUSAGE_INFO_V4, pid))
}

#[expect(unsafe_code, reason = "libproc is a C interface")]
fn usage_by(version: c_int, pid: i32) -> Option<Usage> {
    let mut words = [0u64; places::ROOM];
    let place = (&raw mut words).cast::<libc::rusage_info_t>();
    // SAFETY: the buffer is larger than every version and aligned for its words.
    let code = unsafe { libc::proc_pid_rusage(pid, version, place) };
    (code == 0).then(|| layouts::usage(&words))
}

/// Starts the interval anew that `Usage::interval_max` is about; false where that cannot be done.
#[expect(unsafe_code, reason = "libproc is a C interface")]
pub(super) fn reset_interval(pid: i32) -> bool {
    type Reset = unsafe extern "C" fn(c_int) -> c_int;
    static RESET: Symbol = Symbol::new(c"proc_reset_footprint_interval");
    let Some(address) = RESET.address() else { return false };
    // SAFETY: the name is that of `int proc_reset_footprint_interval(pid_t)`.
    let reset = unsafe { std::mem::transmute::<*mut c_void, Reset>(address.as_ptr()) };
    // SAFETY: the call takes a number and touches no memory.
    unsafe { reset(pid) == 0 }
}

/// The call that sends a signal to a process and not to a number.
pub(super) type Send = unsafe extern "C" fn(*mut audit_token_t, c_int) -> c_int;

/// None on macOS 14.0, whose kernel (10002.1) does not have it yet; 10002.61 has.
#[expect(unsafe_code, reason = "libproc is a C interface")]
pub(super) fn signal_with_token() -> Option<Send> {
    static SIGNAL: Symbol = Symbol::new(c"proc_signal_with_audittoken");
    // SAFETY: the name is that of `int proc_signal_with_audittoken(audit_token_t *, int)`.
    SIGNAL.address().map(|at| unsafe { std::mem::transmute::<*mut c_void, Send>(at.as_ptr()) })
}
