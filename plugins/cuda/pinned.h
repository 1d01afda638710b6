// Pinned host memory. The driver takes it page by page, some 2.5 GB/s: so large pieces are taken
// from the system in large pages, filled by several threads, and told to the driver then.
// Thread-safe.
#pragma once

#include <cstddef>

#include "error.h"

namespace heddle::cuda {

// For all GPUs, and of at least one byte. The error is that of the call that failed.
cudaError_t allocate_pinned(std::size_t bytes, void** out);
void free_pinned(void* memory);

}  // namespace heddle::cuda
