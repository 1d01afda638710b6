#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "heddle/device.hpp"

namespace heddle::fake {

namespace {

// Set in no address of a user's program, where addresses have 48 or 57 bits; and not among those
// that a processor may ignore.
constexpr std::uintptr_t kTurned = std::uintptr_t{1} << 55;

std::uintptr_t turn(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) ^ kTurned;
}

}  // namespace

Allocation::Allocation(std::size_t bytes)
    : bytes_(bytes),
      data_(static_cast<std::byte*>(std::aligned_alloc(
          Memory::kAlignment,
          std::max<std::size_t>(1, (bytes + Memory::kAlignment - 1) / Memory::kAlignment) *
              Memory::kAlignment))) {
  if (data_ == nullptr) throw std::bad_alloc();
  poison();
}

Allocation::Allocation(std::size_t bytes, Shared)
    : bytes_(bytes), descriptor_(::memfd_create("fake device", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0 ||
      ::fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    device::fail(HEDDLE_IO, "memory that is shared: ", std::strerror(errno));
  map(true);
  poison();
}

Allocation::Allocation(int descriptor, std::size_t bytes, bool is_writable)
    : bytes_(bytes), descriptor_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)), is_of_another_(true) {
  struct stat about {};
  const int seals = ::fcntl(descriptor_, F_GET_SEALS);
  if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0 || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0 || bytes == 0 ||
      static_cast<std::uint64_t>(about.st_size) != bytes) {
    if (descriptor_ >= 0) ::close(descriptor_);
    device::fail(HEDDLE_INVALID_ARGUMENT, "what is to be mapped is no memory of ", bytes,
                 " bytes that a fake device has shared");
  }
  map(is_writable);
}

void Allocation::map(bool is_writable) {
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | (is_writable ? PROT_WRITE : 0),
                              MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor_);
    device::fail(error == ENOMEM ? HEDDLE_OUT_OF_MEMORY : HEDDLE_IO,
                 "memory that is shared: ", std::strerror(error));
  }
  data_ = static_cast<std::byte*>(mapped);
}

Allocation::~Allocation() {
  if (descriptor_ < 0) {
    std::free(data_);
  } else {
    ::munmap(data_, bytes_);
    ::close(descriptor_);
  }
}

// What is poisoned is copied, ever twice as much: a sanitizer looks at every call, however few its
// bytes.
void Allocation::poison() {
  if (is_of_another_) return;
  std::size_t done = std::min(sizeof kPoison, bytes_);
  std::memcpy(data_, &kPoison, done);
  for (std::size_t more; done < bytes_; done += more) {
    more = std::min(done, bytes_ - done);
    std::memcpy(data_ + done, data_, more);
  }
}

void* Memory::allocate(std::size_t bytes, std::uint64_t foreign, bool is_shared) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t taken = use_.used + foreign;
    if (taken > capacity_ || bytes > capacity_ - taken)
      device::fail(HEDDLE_OUT_OF_MEMORY, "wanted ", bytes, " bytes; used ", use_.used,
                   foreign == 0 ? "" : device::cat(", by others ", foreign), ", capacity ",
                   capacity_);
    use_.used += bytes;
    use_.peak = std::max(use_.peak, use_.used);
  }
  std::shared_ptr<Allocation> made;
  try {
    made = is_shared ? std::make_shared<Allocation>(bytes, Allocation::Shared())
                     : std::make_shared<Allocation>(bytes);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    use_.used -= bytes;
    throw;
  }
  const auto real = reinterpret_cast<std::uintptr_t>(made->data());
  const std::lock_guard lock(mutex_);
  allocations_[real] = std::move(made);
  return reinterpret_cast<void*>(real ^ kTurned);
}

bool Memory::free(void* address) {
  std::shared_ptr<Allocation> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(turn(address));
    if (found == allocations_.end())
      device::fail(HEDDLE_INVALID_ARGUMENT, "freeing ", address, ", which ", name_,
                   " has not allocated, or has freed already");
    gone = std::move(found->second);
    allocations_.erase(found);
    if (!gone->is_of_another()) use_.used -= gone->bytes();
  }
  const bool unused = gone.use_count() == 1;
  gone->poison();
  return unused;
}

void* Memory::adopt(std::shared_ptr<Allocation> shared) {
  const auto real = reinterpret_cast<std::uintptr_t>(shared->data());
  const std::lock_guard lock(mutex_);
  allocations_[real] = std::move(shared);
  return reinterpret_cast<void*>(real ^ kTurned);
}

std::shared_ptr<const Allocation> Memory::find(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(turn(address));
  return found == allocations_.end() ? nullptr : found->second;
}

void Memory::poison_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, allocation] : allocations_) allocation->poison();
}

Span Memory::at(const void* address, std::int64_t begin, std::int64_t end,
                const std::string& what) const {
  if (!is_device_address(address))
    device::fail(HEDDLE_INVALID_ARGUMENT, what, " is in host memory (", address, "), has to be on ",
                 name_);
  const std::uintptr_t real = turn(address);
  const std::lock_guard lock(mutex_);
  auto found = allocations_.upper_bound(real);
  if (found == allocations_.begin())
    device::fail(HEDDLE_INVALID_ARGUMENT, what, " (", address, ") is in no memory of ", name_);
  --found;
  const Allocation& allocation = *found->second;
  const auto offset = static_cast<std::int64_t>(real - found->first),
             size = static_cast<std::int64_t>(allocation.bytes());
  if (offset > size)
    device::fail(HEDDLE_INVALID_ARGUMENT, what, " (", address, ") is in no memory of ", name_);
  if (begin != end && (offset + begin < 0 || offset + end > size))
    device::fail(HEDDLE_INVALID_ARGUMENT, what, " needs the bytes ", offset + begin, " to ",
                 offset + end, " of an allocation of ", size, " bytes on ", name_);
  return {allocation.data() + offset, found->second};
}

bool Memory::has(const void* address) const {
  if (!is_device_address(address)) return false;
  const std::uintptr_t real = turn(address);
  const std::lock_guard lock(mutex_);
  const auto next = allocations_.upper_bound(real);
  if (next == allocations_.begin()) return false;
  const auto& [begin, allocation] = *std::prev(next);
  return real - begin < allocation->bytes();
}

bool Memory::is_device_address(const void* address) {
  return (reinterpret_cast<std::uintptr_t>(address) & kTurned) != 0;
}

MemoryUse Memory::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace heddle::fake
