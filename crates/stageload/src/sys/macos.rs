//! macOS: libproc and sysctl, all without root for processes of the same user.
//!
//! The footprint is `ri_phys_footprint`, the number Activity Monitor shows: Metal memory and
//! compressed and swapped-out pages included. The argument area is taken apart in
//! `arguments.rs`, which needs no Mac to test. Not here: pressure levels, compressor counters, GPU time.
#![expect(clippy::unused_self, reason = "the same calls as on Linux, which has a root path")]

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

use stageload_core::{Bytes, Percent};

use super::arguments::split_arguments;
use super::{Gauges, Process, ProcessId, marks_job};

/// `PROC_ALL_PIDS` of `sys/proc_info.h`; libc has the call but not the constant.
const PROC_ALL_PIDS: u32 = 1;
/// `SZOMB` of `sys/proc.h`.
const ZOMBIE: u32 = 5;
/// Larger than any flavor of `rusage_info`, so that a newer system cannot write past the end.
const RUSAGE_BYTES: usize = 512;

/// The machine as libproc and sysctl show it.
#[derive(Debug, Clone)]
pub(crate) struct Machine;

impl Machine {
    pub(crate) fn here() -> Self {
        Self
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let swap = sysctl::<libc::xsw_usage>(c"vm.swapusage");
        let level = sysctl::<c_int>(c"kern.memorystatus_level");
        Gauges {
            swap_used: swap.as_ref().map(|swap| Bytes(swap.xsu_used)),
            swap_total: swap.as_ref().map(|swap| Bytes(swap.xsu_total)),
            level: level.and_then(|level| Percent::new(u8::try_from(level).ok()?)),
            ..Gauges::default()
        }
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        list_pids().unwrap_or_default()
    }

    /// None if there is no such process; an error if that could not be found out.
    pub(crate) fn process(&self, pid: i32) -> io::Result<Option<Process>> {
        let Some(info) = bsd_info(pid)? else { return Ok(None) };
        Ok(Some(Process {
            id: ProcessId { pid, start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec },
            parent: info.pbi_ppid as i32,
            group: info.pbi_pgid as i32,
            session: session_of(pid),
            is_zombie: info.pbi_status == ZOMBIE,
            unique: None,
        }))
    }

    pub(crate) fn footprint(&self, pid: i32) -> Option<Bytes> {
        footprint(pid)
    }

    /// The ledger behind the footprint has no cheap proportional form.
    pub(crate) fn proportional(&self, _pid: i32) -> Option<Bytes> {
        None
    }

    pub(crate) fn command_line(&self, pid: i32) -> Option<String> {
        let raw = arguments(pid)?;
        let (words, _) = split_arguments(&raw)?;
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        Some(words.join(" "))
    }

    pub(crate) fn is_marked(&self, pid: i32, token: &str) -> bool {
        let Some(raw) = arguments(pid) else { return false };
        split_arguments(&raw)
            .is_some_and(|(_, environment)| environment.iter().any(|one| marks_job(one, token)))
    }
}

#[expect(unsafe_code, reason = "libproc is a C interface")]
fn list_pids() -> Option<Vec<i32>> {
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

#[expect(unsafe_code, reason = "libproc is a C interface")]
fn bsd_info(pid: i32) -> io::Result<Option<libc::proc_bsdinfo>> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as c_int;
    // SAFETY: the buffer has `size` bytes, the size of the flavor that is asked for.
    let filled = unsafe {
        libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size)
    };
    if filled == size {
        // SAFETY: all-zero is a valid proc_bsdinfo, and the call only wrote plain numbers.
        return Ok(Some(unsafe { info.assume_init() }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(None) } else { Err(error) }
}

#[expect(unsafe_code, reason = "std does not tell sessions")]
fn session_of(pid: i32) -> i32 {
    // SAFETY: getsid takes a number and touches no memory.
    unsafe { libc::getsid(pid) }
}

#[expect(unsafe_code, reason = "libproc is a C interface")]
fn footprint(pid: i32) -> Option<Bytes> {
    #[repr(C, align(16))]
    struct Buffer([u8; RUSAGE_BYTES]);
    let mut buffer = Buffer([0; RUSAGE_BYTES]);
    let place = (&raw mut buffer).cast::<libc::rusage_info_t>();
    // SAFETY: the buffer is larger than every flavor and suitably aligned.
    let code = unsafe { libc::proc_pid_rusage(pid, libc::RUSAGE_INFO_V4, place) };
    // SAFETY: the buffer is aligned for and at least as large as a rusage_info_v4 of plain numbers.
    let info = unsafe { &*(&raw const buffer).cast::<libc::rusage_info_v4>() };
    (code == 0).then_some(Bytes(info.ri_phys_footprint))
}

/// A sysctl by name; None if it is missing or has another size.
#[expect(unsafe_code, reason = "sysctl is a C interface")]
fn sysctl<T: Copy>(name: &CStr) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut size = size_of::<T>();
    let place = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: `place` has `size` bytes, and the name is a C string.
    let code =
        unsafe { libc::sysctlbyname(name.as_ptr(), place, &raw mut size, ptr::null_mut(), 0) };
    // SAFETY: T is used with plain numbers and structs of them only, and all of it was written.
    (code == 0 && size == size_of::<T>()).then(|| unsafe { value.assume_init() })
}

/// The argument area of a process: a count, the executable, the arguments, the environment.
#[expect(unsafe_code, reason = "sysctl is a C interface")]
fn arguments(pid: i32) -> Option<Vec<u8>> {
    let mut size = usize::try_from(sysctl::<c_int>(c"kern.argmax")?).ok()?;
    let mut raw = vec![0u8; size];
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let place = raw.as_mut_ptr().cast::<c_void>();
    // SAFETY: `name` has three numbers and `place` has `size` bytes.
    let code =
        unsafe { libc::sysctl(name.as_mut_ptr(), 3, place, &raw mut size, ptr::null_mut(), 0) };
    raw.truncate(size);
    (code == 0).then_some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_finds_itself() {
        let machine = Machine::here();
        let me = std::process::id() as i32;
        assert!(machine.pids().contains(&me));
        assert_eq!(machine.process(me).unwrap().unwrap().id.pid, me);
        assert!(machine.footprint(me).unwrap() > Bytes::ZERO);
        assert!(machine.command_line(me).is_some());
    }
}
