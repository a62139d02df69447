//! The clock that a job's events carry: the one Python's `time.monotonic` and Rust's `Instant` read.

#[cfg(target_vendor = "apple")]
const CLOCK: libc::clockid_t = libc::CLOCK_UPTIME_RAW;
#[cfg(not(target_vendor = "apple"))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Seconds on the system's monotonic clock, comparable between processes of one boot.
#[expect(unsafe_code, reason = "std's Instant does not show its value")]
pub fn monotonic_seconds() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec for the call to fill.
    unsafe { libc::clock_gettime(CLOCK, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
