#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileIdentity identity_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

// What files are dated by: it stands still for a tick.
std::int64_t clock_of_files() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds(now);
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

std::uint64_t size_now(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

FileIdentity identify_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw system_error(cat("cannot look at ", quote(path.native())), errno);
  return identity_of(status);
}

FileIdentity identify_file_for_key(const std::filesystem::path& path) {
  constexpr std::int64_t kTick = 10'000'000;  // at most, at 100 ticks a second
  const std::int64_t began = clock_of_files();
  FileIdentity identity = identify_file(path);
  // A date far ahead is another clock's: there is nothing to wait for.
  while (identity.changed_ns >= clock_of_files() && identity.changed_ns < began + kTick &&
         clock_of_files() - began <= kTick) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
    identity = identify_file(path);
  }
  return identity;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw system_error(cat("cannot open ", quote(path.native())), errno);
  FileDescriptor descriptor(fd);
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
  try {
    guard_ = PageGuard(static_cast<const std::byte*>(memory), identity_.size, fd);
  } catch (...) {
    ::munmap(memory, identity_.size);
    throw;
  }
  data_ = static_cast<const std::byte*>(memory);
  descriptor_ = descriptor.release();
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  guard_ = PageGuard();
  ::munmap(const_cast<std::byte*>(data_), identity_.size);
  ::close(descriptor_);
  if (direct_ >= 0) ::close(direct_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(std::exchange(other.identity_, {})),
      opening_(other.opening_),
      data_(std::exchange(other.data_, nullptr)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      guard_(std::move(other.guard_)),
      direct_(other.direct_.exchange(kNotOpened)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
  std::swap(opening_, other.opening_);
  std::swap(data_, other.data_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(guard_, other.guard_);
  direct_ = other.direct_.exchange(direct_);
  return *this;
}

void MappedFile::advise(std::uint64_t offset, std::uint64_t size, Advice advice) const {
  if (offset >= identity_.size) return;
  const std::uint64_t end = offset + std::min(size, identity_.size - offset);
  const std::uint64_t begin = offset / page_bytes() * page_bytes();
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, native(advice));
}

void MappedFile::touch(std::uint64_t offset, std::uint64_t size) const {
  if (size == 0) return;
  const std::uint64_t begin = offset / page_bytes() * page_bytes(), end = offset + size;
  advise(begin, end - begin, Advice::will_need);
#ifdef MADV_POPULATE_READ
  constexpr int kPopulateRead = MADV_POPULATE_READ;
#else
  constexpr int kPopulateRead = 22;  // since Linux 5.14; C libraries that are older do not name it
#endif
  int result = 0;
  do {
    result = ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, kPopulateRead);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  if (result == 0) return check();
  if (errno != EINVAL) throw_unreadable(offset, size, errno);
  // An older kernel: page by page, when the file still has them.
  if (size_now(descriptor_) < end) throw_unreadable(offset, size, EFAULT);
  for (std::uint64_t at = begin; at < end; at += page_bytes())
    static_cast<void>(*static_cast<const volatile std::byte*>(data_ + at));
  check();
}

void MappedFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_unreadable(offset + done, into.size() - done, got < 0 ? errno : EFAULT);
    done += static_cast<std::size_t>(got);
  }
}

// Opened when it is first wanted, by whoever comes first.
int MappedFile::direct_descriptor() const {
  int known = direct_;
  if (known != kNotOpened) return known;
  // The file that is mapped, whatever has its name by now.
  const std::string self = cat("/proc/self/fd/", descriptor_);
  const int opened = ::open(self.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  const int mine = opened < 0 ? kRefused : opened;
  if (direct_.compare_exchange_strong(known, mine)) return mine;
  if (opened >= 0) ::close(opened);
  return known;
}

bool MappedFile::read_direct(std::uint64_t offset, std::span<std::byte> into) const {
  const int direct = direct_descriptor();
  if (direct < 0) return false;
  const std::size_t wanted =
      std::min<std::uint64_t>(into.size(), identity_.size - std::min(offset, identity_.size));
  std::size_t done = 0;
  while (done < wanted) {
    const ssize_t got =
        ::pread(direct, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && done == 0) return false;  // not on this file system
    if (got <= 0) throw_unreadable(offset + done, wanted - done, got < 0 ? errno : EFAULT);
    done += static_cast<std::size_t>(got);
    // A signal may have cut it short, in the middle of what the disk reads at a time.
    if (done < wanted && done % page_bytes() != 0) {
      read(offset + done, into.subspan(done, wanted - done));
      return true;
    }
  }
  return true;
}

void MappedFile::forget(std::uint64_t offset, std::uint64_t size) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                  POSIX_FADV_DONTNEED);
}

void MappedFile::throw_unreadable(std::uint64_t offset, std::uint64_t size, int error) const {
  const std::uint64_t now = size_now(descriptor_);
  if (offset + size > now) throw_gone(offset, offset + size, now);
  throw system_error(cat(path_.native(), ": cannot read ", size, " bytes at offset ", offset),
                     error);
}

void MappedFile::check_size() const {
  check();
  if (data_ == nullptr) return;
  const std::uint64_t now = size_now(descriptor_);
  if (now < identity_.size) throw_gone(now, identity_.size, now);
}

void MappedFile::throw_gone(std::uint64_t begin, std::uint64_t end, std::uint64_t size_now) const {
  throw Error(Code::io, cat(path_.native(), ": the bytes ", begin, " to ", end,
                            " are gone: the file has ", size_now, " bytes, it had ", identity_.size,
                            " when it was opened. Fetch it again, and replace files by renaming, "
                            "not by writing over them."));
}

void MappedFile::throw_lost() const {
  const LostPages lost = guard_.lost_pages();
  // As it was then: whoever writes over a file cuts it short first, and fills it again.
  if (lost.file_size < identity_.size)
    throw_gone(std::max(lost.offset, lost.file_size), identity_.size, lost.file_size);
  throw system_error(
      cat(path_.native(), ": cannot read ", page_bytes(), " bytes at offset ", lost.offset), EIO);
}

}  // namespace heddle::engine
