#include "engine/isolate/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/isolate/channel.h"

namespace heddle::engine {

SharedMemory::SharedMemory(std::uint64_t bytes, Writers writers)
    : descriptor_(above_standard(::memfd_create("heddle", MFD_CLOEXEC | MFD_ALLOW_SEALING))),
      bytes_(bytes) {
  if (descriptor() < 0) throw system_error("memory shared with a worker", errno);
  if (::ftruncate(descriptor(), off_t(bytes)) != 0 ||
      ::fcntl(descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw system_error(cat(bytes, " bytes of memory shared with a worker"), errno);
  map(true, writers == Writers::owner);
  // A descriptor to read can be opened again to write, unless this seal is there. EINVAL: it is not
  // known here.
  if (writers == Writers::owner && ::fcntl(descriptor(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 &&
      errno != EINVAL)
    throw system_error("a seal of memory shared with a worker", errno);
  (void)::fcntl(descriptor(), F_ADD_SEALS, F_SEAL_SEAL);
}

SharedMemory::SharedMemory(int descriptor, std::uint64_t bytes, bool is_writable)
    : descriptor_(descriptor), bytes_(bytes) {
  map(is_writable, true);
  descriptor_.close();
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void SharedMemory::map(bool is_writable, bool has_pages) {
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | (is_writable ? PROT_WRITE : 0),
                              MAP_SHARED, descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw system_error(cat(bytes_, " bytes of memory shared with a worker"), errno);
  data_ = static_cast<std::byte*>(mapped);
  // All pages at once: one by one, as they are touched, takes several times as long. Older kernels
  // do not know it.
  constexpr std::uint64_t kFewPages = 64 << 10;
  if (has_pages && bytes_ > kFewPages &&
      ::madvise(mapped, bytes_, is_writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0 &&
      errno != EINVAL) {
    const int error = errno == EFAULT ? ENOMEM : errno;
    ::munmap(std::exchange(data_, nullptr), bytes_);
    throw system_error(cat(bytes_, " bytes of memory shared with a worker"), error);
  }
}

int SharedMemory::read_only_descriptor() const {
  const int opened = ::open(cat("/proc/self/fd/", descriptor()).c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) throw system_error("memory shared with a worker, to read", errno);
  return opened;
}

}  // namespace heddle::engine
