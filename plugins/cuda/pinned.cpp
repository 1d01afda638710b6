#include "pinned.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace heddle::cuda {

namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
// Below, the driver is as fast.
constexpr std::size_t kWorthIt = std::size_t{16} << 20;
constexpr std::size_t kMostThreads = 4;

struct Mapping {
  void* begin = nullptr;
  std::size_t bytes = 0;
};

std::mutex mutex;
std::map<void*, Mapping> mappings;  // mutex; by the address that was given out

// A write to each page gives it its memory.
void touch(char* begin, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes; at += kPage) *static_cast<volatile char*>(begin + at) = 0;
}

void touch_by_threads(char* begin, std::size_t bytes) {
  const std::size_t pages = (bytes + kLargePage - 1) / kLargePage;
  const std::size_t count = std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1,
                                                    std::min(kMostThreads, pages));
  const auto part = [&](std::size_t t) {
    const std::size_t from = pages * t / count * kLargePage,
                      to = std::min(pages * (t + 1) / count * kLargePage, bytes);
    touch(begin + from, to - from);
  };
  std::vector<std::thread> threads;
  std::size_t begun = 1;
  try {
    for (; begun < count; ++begun) threads.emplace_back(part, begun);
  } catch (const std::system_error&) {
    // No more threads are to be had: the rest is done here.
  }
  part(0);
  for (std::size_t t = begun; t < count; ++t) part(t);
  for (std::thread& thread : threads) thread.join();
}

// nullptr: not here, or not now.
void* allocate_in_large_pages(std::size_t bytes) {
  const std::size_t whole = bytes + kLargePage;
  void* const begin =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  char* const memory = static_cast<char*>(begin) + (kLargePage - address % kLargePage) % kLargePage;
  if (::madvise(memory, bytes, MADV_HUGEPAGE) == 0) {
    touch_by_threads(memory, bytes);
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess) {
      try {
        const std::lock_guard lock(mutex);
        mappings[memory] = {begin, whole};
        return memory;
      } catch (const std::bad_alloc&) {
        cudaHostUnregister(memory);
      }
    }
    cudaGetLastError();
  }
  ::munmap(begin, whole);
  return nullptr;
}

}  // namespace

cudaError_t allocate_pinned(std::size_t bytes, void** out) {
  if (bytes >= kWorthIt && (*out = allocate_in_large_pages(bytes)) != nullptr) return cudaSuccess;
  return cudaHostAlloc(out, std::max<std::size_t>(bytes, 1), cudaHostAllocPortable);
}

void free_pinned(void* memory) {
  if (memory == nullptr) return;
  Mapping mapping;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = mappings.find(memory); found != mappings.end()) {
      mapping = found->second;
      mappings.erase(found);
    }
  }
  if (mapping.begin == nullptr) {
    cudaFreeHost(memory);
    return;
  }
  cudaHostUnregister(memory);
  ::munmap(mapping.begin, mapping.bytes);
}

}  // namespace heddle::cuda
