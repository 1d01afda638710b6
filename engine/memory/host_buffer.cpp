#include "engine/memory/host_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;

}  // namespace

// At the border of a large page: the fewer pages there are, the sooner they are filled, and the
// fewer pieces a disk is asked for.
HostBuffer::HostBuffer(HostBytes budget) : budget_(std::move(budget)), data_(nullptr) {
  const std::uint64_t bytes = budget_.bytes();
  const std::uint64_t mapped = bytes + kLargePage;
  void* const memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(Code::out_of_memory, cat("host memory: the system refuses ", format_bytes(bytes),
                                         " (error ", errno, ")"));
  const std::uint64_t before =
      (kLargePage - reinterpret_cast<std::uintptr_t>(memory) % kLargePage) % kLargePage;
  data_ = static_cast<std::byte*>(memory) + before;
  if (before > 0) ::munmap(memory, before);
  const std::uint64_t end = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  ::munmap(data_ + end, mapped - before - end);
  ::madvise(data_, end, MADV_HUGEPAGE);
}

HostBuffer::~HostBuffer() {
  if (device_ != nullptr)
    device_->free_pinned(data_);
  else
    ::munmap(data_, bytes());
}

}  // namespace heddle::engine
