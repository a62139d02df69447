//! Names of libSystem that not every macOS has, or that no header declares. Not here: their types.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// A name and, once it was looked up, its address.
#[derive(Debug)]
pub(super) struct Symbol {
    name: &'static CStr,
    /// As a number, which unlike a pointer may go from thread to thread; 0 if there is none.
    address: OnceLock<usize>,
}

impl Symbol {
    pub(super) const fn new(name: &'static CStr) -> Self {
        Self { name, address: OnceLock::new() }
    }

    pub(super) fn address(&self) -> Option<NonNull<c_void>> {
        let address = *self.address.get_or_init(|| look_up(self.name).expose_provenance());
        NonNull::new(std::ptr::with_exposed_provenance_mut(address))
    }
}

#[expect(unsafe_code, reason = "the loader is a C interface")]
fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; looking it up among what is loaded runs no code of it.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}
