//! Values by name, and the argument area. Not here: what the values mean.

use std::ffi::{CStr, c_int, c_void};
use std::mem::{MaybeUninit, size_of};
use std::ptr;

use crate::sys::layouts;

/// A whole number of either width; None if it is missing.
pub(super) fn number(name: &CStr) -> Option<u64> {
    let mut raw = [0u8; 8];
    let size = fill(name, raw.as_mut_ptr().cast(), raw.len())?;
    layouts::number(raw.get(..size)?)
}

/// A short text; None if it is missing.
pub(super) fn text(name: &CStr) -> Option<String> {
    let mut raw = [0u8; 128];
    let size = fill(name, raw.as_mut_ptr().cast(), raw.len())?;
    let text = CStr::from_bytes_until_nul(raw.get(..size)?).ok()?;
    Some(text.to_string_lossy().into_owned())
}

#[expect(unsafe_code, reason = "sysctl is a C interface")]
pub(super) fn swap() -> Option<libc::xsw_usage> {
    let mut usage = MaybeUninit::<libc::xsw_usage>::zeroed();
    let size = fill(c"vm.swapusage", usage.as_mut_ptr().cast(), size_of::<libc::xsw_usage>())?;
    // SAFETY: all-zero is a valid xsw_usage, and the call only wrote plain numbers.
    (size == size_of::<libc::xsw_usage>()).then(|| unsafe { usage.assume_init() })
}

/// Has the kernel write a value into `room` bytes at `place`; how many it wrote.
#[expect(unsafe_code, reason = "sysctl is a C interface")]
fn fill(name: &CStr, place: *mut c_void, room: usize) -> Option<usize> {
    let mut size = room;
    // SAFETY: both callers own `room` bytes at `place`, and the name is a C string.
    let code =
        unsafe { libc::sysctlbyname(name.as_ptr(), place, &raw mut size, ptr::null_mut(), 0) };
    (code == 0).then_some(size)
}

/// The argument area of a process: a count, the executable, the arguments, the environment.
#[expect(unsafe_code, reason = "sysctl is a C interface")]
pub(super) fn arguments(pid: i32) -> Option<Vec<u8>> {
    let mut size = usize::try_from(number(c"kern.argmax")?).ok()?;
    let mut raw = vec![0u8; size];
    let mut name: [c_int; 3] = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let place = raw.as_mut_ptr().cast::<c_void>();
    // SAFETY: `name` has three numbers and `place` has `size` bytes.
    let code =
        unsafe { libc::sysctl(name.as_mut_ptr(), 3, place, &raw mut size, ptr::null_mut(), 0) };
    raw.truncate(size);
    (code == 0).then_some(raw)
}
