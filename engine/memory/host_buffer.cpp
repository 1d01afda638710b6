#include "engine/memory/host_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;

}  // namespace

// At the border of a large page: the fewer pages there are, the sooner they are filled, and the
// fewer pieces a disk is asked for.
HostBuffer::HostBuffer(HostBytes room) : room_(std::move(room)), data_(nullptr) {
  const std::uint64_t bytes = room_.bytes();
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

std::unique_ptr<HostBuffer> StagingBuffers::take(const Device& device, std::uint64_t bytes,
                                                 std::uint64_t most) {
  auto best = idle_.end();
  for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
    const std::uint64_t size = (*buffer)->bytes();
    if ((*buffer)->pinned_by() != &device || size < bytes || size > most) continue;
    if (best == idle_.end() || size < (*best)->bytes()) best = buffer;
  }
  if (best == idle_.end()) return nullptr;
  std::unique_ptr<HostBuffer> found = std::move(*best);
  idle_.erase(best);
  return found;
}

std::unique_ptr<HostBuffer> StagingBuffers::take_plain(std::optional<std::uint64_t> bytes) {
  const auto found = std::ranges::find_if(idle_, [&](const auto& buffer) {
    return buffer->pinned_by() == nullptr && (!bytes || buffer->bytes() == *bytes);
  });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<HostBuffer> buffer = std::move(*found);
  idle_.erase(found);
  return buffer;
}

std::unique_ptr<HostBuffer> StagingBuffers::drop() {
  if (idle_.empty()) return nullptr;
  std::unique_ptr<HostBuffer> first = std::move(idle_.front());
  idle_.erase(idle_.begin());
  return first;
}

}  // namespace heddle::core
