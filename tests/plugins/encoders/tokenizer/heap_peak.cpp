// Takes the place of the C library's malloc in this program.
#include "heap_peak.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}

namespace {

// Of each thread its own: what another one frees is not missed here.
thread_local std::int64_t live = 0, peak = 0;

void* counted(void* data) {
  if (data != nullptr) live += std::int64_t(malloc_usable_size(data));
  peak = std::max(peak, live);
  return data;
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  return counted(__libc_malloc(bytes));
}

[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* data = malloc(bytes);
  return data == nullptr ? nullptr : std::memset(data, 0, bytes);
}

// As if it always moved: the old memory goes when the new one is there.
[[gnu::visibility("default")]] void* realloc(void* data, std::size_t bytes) {
  const std::int64_t before = data == nullptr ? 0 : std::int64_t(malloc_usable_size(data));
  void* moved = counted(__libc_realloc(data, bytes));
  if (moved != nullptr || bytes == 0) live -= before;
  return moved;
}

[[gnu::visibility("default")]] void free(void* data) {
  if (data != nullptr) live -= std::int64_t(malloc_usable_size(data));
  __libc_free(data);
}
}

namespace heddle::text {

HeapPeak::HeapPeak() : before_(live) { peak = live; }

std::int64_t HeapPeak::bytes() const { return peak - before_; }

}  // namespace heddle::text
