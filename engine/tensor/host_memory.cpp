#include "engine/tensor/host_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

constexpr std::size_t kCacheLine = 64;

// The library takes what is larger from Linux, and gives it back when it goes, so that none of the
// pages is left to others (M_MMAP_THRESHOLD, mallopt(3)).
constexpr std::size_t kLargePage = std::size_t{2} << 20, kMostOfHeap = std::size_t{32} << 20;

// Large pieces in large pages, where Linux gives them to who asks (`madvise` in
// /sys/kernel/mm/transparent_hugepage/enabled, the default of most): the first write to a page of 4
// KiB takes longer than the page itself. What is behind the last whole one stays small, so that no
// more is taken than was counted.
void* allocate_here(void*, std::size_t bytes, std::size_t alignment) {
  if (bytes <= kMostOfHeap) return std::aligned_alloc(alignment, bytes);
  void* const data = std::aligned_alloc(kLargePage, bytes);
  if (data != nullptr) madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return data;
}

const HostAllocator kLibrary{&allocate_here,
                             [](void*, void* data, std::size_t) { std::free(data); }, nullptr};

// Allocators are kept for good: a tensor may go back to one of them at any time.
struct Known {
  std::mutex mutex;
  std::vector<std::unique_ptr<const HostAllocator>>
      all;  // guarded by mutex; its size is the number of the newest
};
Known& known() {
  static auto* const list = new Known();
  return *list;
}
std::atomic<const HostAllocator*> current{&kLibrary};

}  // namespace

HostPiece allocate_host(std::size_t bytes) {
  const HostAllocator* const from = current.load(std::memory_order_acquire);
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + kCacheLine - 1) / kCacheLine * kCacheLine;
  void* const data = rounded < bytes ? nullptr : from->allocate(from->user, rounded, kCacheLine);
  if (data == nullptr)
    throw Error(Code::out_of_memory,
                cat(from == &kLibrary ? "host memory" : "the allocator given for host memory",
                    ": cannot allocate ", format_bytes(bytes)));
  return {data, rounded, from};
}

void free_host(const HostPiece& piece) noexcept {
  piece.from->free(piece.from->user, piece.data, piece.bytes);
}

unsigned long long use_host_allocator(const HostAllocator& allocator) {
  if (allocator.allocate == nullptr || allocator.free == nullptr)
    throw Error(Code::invalid_argument,
                "an allocator for host memory has both functions, allocate and free");
  const std::lock_guard lock(known().mutex);
  known().all.push_back(std::make_unique<const HostAllocator>(allocator));
  current.store(known().all.back().get(), std::memory_order_release);
  return known().all.size();
}

void forget_host_allocator(unsigned long long number) {
  const std::lock_guard lock(known().mutex);
  if (number == known().all.size()) current.store(&kLibrary, std::memory_order_release);
}

}  // namespace heddle::engine
