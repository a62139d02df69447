//! Safe faces of `shim.cpp` and of the allocator. The only unsafe code beside the clock.
#![expect(unsafe_code, reason = "calls into libtorch that tch does not wrap")]

use std::ffi::c_void;
use std::ptr::NonNull;

use tch::Tensor;
use torch_sys::C_tensor;

unsafe extern "C" {
    fn stageload_rng_get(mps: bool) -> *mut C_tensor;
    fn stageload_rng_set(mps: bool, state: *mut C_tensor) -> i32;
    fn stageload_storage_nbytes(t: *mut C_tensor) -> i64;
    fn stageload_storage_watch(t: *mut C_tensor) -> *mut c_void;
    fn stageload_watch_alive(watch: *mut c_void) -> bool;
    fn stageload_watch_free(watch: *mut c_void);
    fn stageload_storage_id(t: *mut C_tensor) -> usize;
    fn stageload_mps_available() -> bool;
    fn stageload_mps_empty_cache() -> i32;
}

/// State of the default CPU (or MPS) generator.
pub(crate) fn rng_state(mps: bool) -> Option<Tensor> {
    // SAFETY: the shim returns null or a fresh tensor that nobody else owns.
    unsafe {
        let state = stageload_rng_get(mps);
        (!state.is_null()).then(|| Tensor::from_ptr(state))
    }
}

/// Puts a state that [`rng_state`] gave back.
pub(crate) fn set_rng_state(mps: bool, state: &Tensor) -> bool {
    // SAFETY: `state` is alive during the call, which only reads it.
    unsafe { stageload_rng_set(mps, state.as_ptr().cast_mut()) == 0 }
}

/// One tensor's storage: which it is, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) id: usize,
    pub(crate) nbytes: u64,
}

pub(crate) fn storage(tensor: &Tensor) -> Storage {
    let t = tensor.as_ptr().cast_mut();
    // SAFETY: `tensor` is alive during the calls, which only read it.
    let (id, nbytes) = unsafe { (stageload_storage_id(t), stageload_storage_nbytes(t)) };
    Storage { id, nbytes: nbytes.max(0) as u64 }
}

/// Looks at a storage without owning it.
#[derive(Debug)]
pub(crate) struct Watch(NonNull<c_void>);

impl Watch {
    pub(crate) fn new(tensor: &Tensor) -> Option<Self> {
        // SAFETY: `tensor` is alive during the call; what comes back is this Watch's alone.
        NonNull::new(unsafe { stageload_storage_watch(tensor.as_ptr().cast_mut()) }).map(Self)
    }

    /// Whether any tensor still owns the storage.
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: the pointer came from stageload_storage_watch and is freed only in drop.
        unsafe { stageload_watch_alive(self.0.as_ptr()) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: as above, and nobody uses it after.
        unsafe { stageload_watch_free(self.0.as_ptr()) }
    }
}

/// Whether this libtorch can use a Metal device here.
pub fn mps_is_available() -> bool {
    // SAFETY: takes nothing, changes nothing.
    unsafe { stageload_mps_available() }
}

/// Gives freed memory back to the system: the Metal allocator's cache and glibc's heap, which
/// kept 1.8 GB of small freed tensors until it was trimmed.
pub fn empty_device_cache() {
    if mps_is_available() {
        // SAFETY: takes nothing; failing leaves the cache as it is.
        unsafe { stageload_mps_empty_cache() };
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim only touches free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}
