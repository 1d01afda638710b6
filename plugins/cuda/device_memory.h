// Memory of a GPU, large pieces by the driver's virtual memory functions. cudaFree waits until the
// GPU has done all work that it was given, and nothing can be launched there meanwhile: with a step
// of 0.1 s queued, a run that gives back a weight would hold up all others on that card. Unmapping
// waits for nothing. Small pieces are cudaMalloc's, which packs them. Thread-safe.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace heddle::cuda {

// At least `bytes` on the card, aligned to 256 bytes or better. cudaErrorMemoryAllocation: there is
// no room. REQUIRES: the card has a context and is the thread's device.
cudaError_t allocate_device_memory(int ordinal, std::size_t bytes, void** out);

// REQUIRES: the thread's device is the memory's; work that uses the memory is done, since nothing
// here waits for it.
void free_device_memory(void* memory);

// ---- memory that other processes map, too ----
//
// Always by the driver's virtual memory functions, as the handles of cudaMalloc's memory name whole
// pieces of its own size, and have to be closed before it is freed. It goes by
// free_device_memory(); who has mapped it elsewhere keeps its bytes.

// Whether the driver says that the card can, and has never refused it. Needs cuInit alone.
bool can_share_device_memory(int ordinal);
// What allocate_shareable_memory() takes for so many bytes.
std::uint64_t shareable_bytes(int ordinal, std::uint64_t bytes);

// As allocate_device_memory(), rounded up to the driver's granularity, 2 MiB on today's cards.
// cudaErrorNotSupported: it is refused here.
cudaError_t allocate_shareable_memory(int ordinal, std::size_t bytes, void** out);

// Of memory that allocate_shareable_memory() gave: a descriptor, the caller's to close, and how
// many bytes it has. cudaErrorInvalidValue for any other.
cudaError_t export_device_memory(const void* memory, int* descriptor, std::size_t* bytes);

// Maps what another process has exported, of the same card. cudaErrorInvalidValue for what is no
// memory of the card with so many bytes. The descriptor stays the caller's.
// REQUIRES: as allocate_device_memory().
cudaError_t import_device_memory(int ordinal, int descriptor, std::size_t bytes, void** out);

// Lets kernels and copies of `reader` reach all memory of `owner`, also what there will be, as
// cudaDeviceEnablePeerAccess does for cudaMalloc's. Both are ordinals of CUDA.
cudaError_t share_device_memory(int owner, int reader);

// A card's context goes: nobody has reached it.
void unshare_device_memory(int ordinal);

}  // namespace heddle::cuda
