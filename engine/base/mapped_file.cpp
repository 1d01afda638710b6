#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

 private:
  int number_;
};

FileIdentity identity_of(const struct stat& status) {
  return {
      .device = status.st_dev,
      .inode = status.st_ino,
      .size = static_cast<std::uint64_t>(status.st_size),
      .modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

int native(Advice advice) {
  switch (advice) {
    case Advice::will_need:
      return MADV_WILLNEED;
    case Advice::dont_need:
      return MADV_DONTNEED;
    case Advice::sequential:
      return MADV_SEQUENTIAL;
  }
  return MADV_NORMAL;
}

}  // namespace

FileIdentity identify_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw system_error(cat("cannot look at ", quote(path.native())), errno);
  return identity_of(status);
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw system_error(cat("cannot open ", quote(path.native())), errno);
  const Descriptor descriptor(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0)
    throw system_error(cat("cannot look at ", quote(path.native())), errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(
        Code::invalid_argument,
        cat("cannot map ", quote(path.native()), ": it is ",
            S_ISDIR(status.st_mode) ? "a folder" : "a pipe, socket or device", ". Name a file."));
  }
  identity_ = identity_of(status);
  if (identity_.size == 0) return;  // mmap refuses an empty range
  void* memory = ::mmap(nullptr, identity_.size, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    throw system_error(
        cat("cannot map ", quote(path.native()), " (", format_bytes(identity_.size), ")"), errno);
  }
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), identity_.size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(std::exchange(other.identity_, {})),
      data_(std::exchange(other.data_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
  std::swap(data_, other.data_);
  return *this;
}

void MappedFile::advise(std::uint64_t offset, std::uint64_t size, Advice advice) const {
  if (offset >= identity_.size) return;
  const std::uint64_t end = offset + std::min(size, identity_.size - offset);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, native(advice));
}

}  // namespace heddle::core
