// What tch does not reach: the random generators' state, whether a storage is still owned, the
// device cache.
// A `tensor` is torch-sys' C_tensor*, which is an at::Tensor*. Nothing throws across the border.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/MPSHooksInterface.h>

#include <mutex>

typedef at::Tensor *tensor;
typedef c10::weak_intrusive_ptr<c10::StorageImpl> Watch;

static at::Generator generator(bool mps) {
  return mps ? at::globalContext().defaultGenerator(at::Device(at::kMPS))
             : at::detail::getDefaultCPUGenerator();
}

extern "C" {

// The default generator's whole state as a byte tensor, or null.
tensor stageload_rng_get(bool mps) {
  try {
    auto g = generator(mps);
    std::lock_guard<std::mutex> lock(g.mutex());
    return new at::Tensor(g.get_state());
  } catch (...) {
    return nullptr;
  }
}

// 0 when the state was taken.
int stageload_rng_set(bool mps, tensor state) {
  try {
    auto g = generator(mps);
    std::lock_guard<std::mutex> lock(g.mutex());
    g.set_state(*state);
    return 0;
  } catch (...) {
    return -1;
  }
}

// Bytes of the storage under `t`, -1 on failure.
int64_t stageload_storage_nbytes(tensor t) {
  try {
    return (int64_t)t->storage().nbytes();
  } catch (...) {
    return -1;
  }
}

// A weak reference to the storage under `t`, or null; to be freed by stageload_watch_free.
void *stageload_storage_watch(tensor t) {
  try {
    return new Watch(t->storage().getWeakStorageImpl());
  } catch (...) {
    return nullptr;
  }
}

// Whether any tensor still owns the watched storage.
bool stageload_watch_alive(void *watch) { return !static_cast<Watch *>(watch)->expired(); }

void stageload_watch_free(void *watch) { delete static_cast<Watch *>(watch); }

// Identity of the storage under `t`; 0 when there is none.
uintptr_t stageload_storage_id(tensor t) {
  try {
    return (uintptr_t)t->storage().unsafeGetStorageImpl();
  } catch (...) {
    return 0;
  }
}

bool stageload_mps_available() {
  try {
    return at::detail::getMPSHooks().hasMPS();
  } catch (...) {
    return false;
  }
}

// Gives the Metal allocator's cached buffers back to the system. 0 when done.
int stageload_mps_empty_cache() {
  try {
    at::detail::getMPSHooks().emptyCache();
    return 0;
  } catch (...) {
    return -1;
  }
}
}
