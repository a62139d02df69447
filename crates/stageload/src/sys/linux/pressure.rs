//! Word of memory pressure, from the kernel's stall counters. It lags by up to two seconds, so it
//! hurries a look and decides nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::thread;

/// Tell when somebody waited for memory for 100 ms within 2 s. An unprivileged process can only ask
/// for windows of a multiple of two seconds.
const TRIGGER: &[u8] = b"some 100000 2000000\0";

/// Calls `tell`, from a thread of its own that lives as long as the process, each time tasks had to
/// wait for memory.
pub(crate) fn on_pressure(tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open("/proc/pressure/memory")?;
    file.write_all(TRIGGER)?;
    thread::Builder::new().name("pressure".into()).spawn(move || {
        while is_told(&file) {
            tell();
        }
    })?;
    Ok(())
}

/// Blocks until the kernel tells; false once it never will again.
#[expect(unsafe_code, reason = "std has no poll")]
fn is_told(file: &File) -> bool {
    let mut one = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    loop {
        // SAFETY: `one` is a valid place for one pollfd.
        let count = unsafe { libc::poll(&raw mut one, 1, -1) };
        if count == 1 {
            return one.revents & libc::POLLPRI != 0 && one.revents & libc::POLLERR == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}
