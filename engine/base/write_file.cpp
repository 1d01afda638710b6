#include "engine/base/write_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/guarded.h"
#include "engine/base/temporary_file.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = ".heddle-", kEnd = ".part";
constexpr std::chrono::hours kLeftBehind{1};

[[noreturn]] void fail(const fs::path& path, int reason) {
  throw system_error(cat("cannot write ", path.native()), reason);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// ---- where a path leads ----

struct Target {
  std::optional<int> descriptor;      // of this process
  fs::path path;                      // no link
  std::optional<struct stat> status;  // of what is there
};

std::optional<int> descriptor_number(const std::string& name) {
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
}

// Step by step, because a link to a descriptor must not be followed to the file behind it: whoever
// redirected stdout into a file wants what is written there in its turn.
Target target_of(const fs::path& path) {
  Target target{{}, path, {}};
  struct stat status {};
  // Where the system forbids to follow a link (another user's, in a folder for all), so do we.
  if (::stat(path.c_str(), &status) == 0)
    target.status = status;
  else if (errno != ENOENT)
    fail(path, errno);
  std::error_code none;
  const fs::path descriptors = fs::canonical("/proc/self/fd", none);
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const fs::path folder = fs::canonical(folder_of(target.path), error);
    if (error) fail(path, error.value());
    if (folder == descriptors && !none)
      target.descriptor = descriptor_number(target.path.filename());
    if (target.descriptor || !fs::is_symlink(fs::symlink_status(target.path, error))) return target;
    const fs::path next = fs::read_symlink(target.path, error);
    if (error) fail(path, error.value());
    target.path = folder / next;
  }
  fail(path, ELOOP);
}

bool goes_through(const Target& target) {
  return target.descriptor || (target.status && !S_ISREG(target.status->st_mode));
}

// ---- writing ----

// A pipe that nobody reads any more is an error of write(), not the end of the process, which need
// not be ours.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

// 0, or what the system says.
int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written >= 0) {
      content.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // somebody else made it so
      pollfd ready{file, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void write_through(const Target& target, const fs::path& path, std::string_view content) {
  int opened = -1;
  do {
    // Not by its name, which cannot open a socket and would begin a file anew.
    opened = target.descriptor ? ::fcntl(*target.descriptor, F_DUPFD_CLOEXEC, 0)
                               : ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } while (opened < 0 && errno == EINTR);
  FileDescriptor file(opened);
  if (file.number() < 0) fail(path, errno);
  const NoPipeSignal guard;
  int failure = write_all(file.number(), content);
  if (failure == 0) failure = file.close();
  if (failure != 0) fail(path, failure);
}

// Some file systems have nothing to wait for, and say so.
int sync_to_disk(int file) {
  return ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

int sync_folder(const fs::path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder may be written without being readable.
  return opened.number() < 0 ? 0 : sync_to_disk(opened.number());
}

std::string random_name() {
  std::array<unsigned char, 16> bytes;
  while (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    if (errno != EINTR) throw system_error("random numbers", errno);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name(kBegin);
  for (const unsigned char byte : bytes) {
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  return name.append(kEnd);
}

// Once for each folder: nobody is killed often enough to need more.
void sweep(const fs::path& folder) {
  static Guarded<std::set<fs::path>> swept;
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error || !swept.lock()->insert(place).second) return;
  const auto now = fs::file_time_type::clock::now();
  for (const FolderEntry& entry : entries_of(place, error)) {
    const std::string name = entry.name();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    if (entry.is_link() || !entry.is_file()) continue;
    std::error_code gone;
    const auto written = fs::last_write_time(entry.path, gone);
    if (!gone && now - written > kLeftBehind) fs::remove(entry.path, gone);
  }
}

// Under its hidden name until it is put in its place; gone at the end where it never was.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) : target_(target) {
    sweep(folder_of(target));
    // Not mkstemp(), which makes files that only their owner can read.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int opened = -1;
    do {
      path_ = folder_of(target) / random_name();
      opened = ::open(path_.c_str(), kFlags, 0666);
    } while (opened < 0 && (errno == EEXIST || errno == EINTR));
    if (opened < 0) fail(target, errno);
    file_.emplace(opened);
    name_.emplace(path_.string());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  // Before the content comes, which may be for few eyes. As far as this user and the file system
  // let it.
  void take_permissions(const struct stat& from) {
    [[maybe_unused]] int ignored = ::fchown(file_->number(), from.st_uid, from.st_gid);
    if (ignored != 0) ignored = ::fchown(file_->number(), -1, from.st_gid);
    ignored = ::fchmod(file_->number(), from.st_mode & 0777);
  }

  void append(std::string_view content) {
    if (const int failure = write_all(file_->number(), content); failure != 0)
      fail(target_, failure);
  }
  void write(std::string_view content, Lasting lasting) {
    append(content);
    finish(lasting);
  }
  void finish(Lasting lasting) {
    int failure = lasting == Lasting::yes ? sync_to_disk(file_->number()) : 0;
    const int closed = file_->close();
    if (failure == 0) failure = closed;
    if (failure != 0) fail(target_, failure);
  }

  void replace() {
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, errno);
  }

  // False: there is such a file already.
  bool place() {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0)
      return true;
    if (errno == EEXIST) return false;
    if (errno != EINVAL && errno != ENOSYS) fail(target_, errno);
    // A file system without that flag: the name is taken by an empty file first, then replaced.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int reserved = ::open(target_.c_str(), kFlags, 0666);
    if (reserved < 0 && errno == EEXIST) return false;
    if (reserved < 0) fail(target_, errno);
    ::close(reserved);
    if (::rename(path_.c_str(), target_.c_str()) != 0) {
      const int reason = errno;
      ::unlink(target_.c_str());
      fail(target_, reason);
    }
    return true;
  }

 private:
  const fs::path& target_;
  fs::path path_;
  std::optional<FileDescriptor> file_;
  std::optional<TemporaryFile> name_;
};

}  // namespace

void write_file(const fs::path& path, std::string_view content, Lasting lasting) {
  const Target target = target_of(path);
  if (target.status && S_ISDIR(target.status->st_mode)) fail(path, EISDIR);
  if (goes_through(target)) return write_through(target, path, content);
  // Replacing takes no right to write the file itself; but whoever took that away meant it.
  if (target.status && ::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0)
    fail(path, errno);
  Temporary file(target.path);
  if (target.status) file.take_permissions(*target.status);
  file.write(content, lasting);
  file.replace();
  if (lasting == Lasting::no) return;
  if (const int failure = sync_folder(folder_of(target.path)); failure != 0) fail(path, failure);
}

bool create_file(const fs::path& path, std::string_view content) {
  return create_file(path, [&](const Append& append) { append(content); });
}

bool create_file(const fs::path& path, const std::function<void(const Append&)>& content) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return false;
  if (errno != ENOENT) fail(path, errno);
  Temporary file(path);
  content([&](std::string_view piece) { file.append(piece); });
  file.finish(Lasting::yes);
  if (!file.place()) return false;
  if (const int failure = sync_folder(folder_of(path)); failure != 0) fail(path, failure);
  return true;
}

bool is_written_through(const fs::path& path) {
  try {
    return goes_through(target_of(path));
  } catch (const Error&) {  // whoever writes says what is wrong
    return false;
  }
}

}  // namespace heddle::engine
