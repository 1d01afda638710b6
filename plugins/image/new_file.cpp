#include "plugins/image/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <heddle/plugin.hpp>
#include <system_error>
#include <utility>

namespace heddle::image {
namespace {

namespace fs = std::filesystem;

std::string advice(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "Make room there, or name another folder.";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Give this user the right to write there, or name another folder.";
    case ENAMETOOLONG:
      return "Give a shorter filename_prefix.";
    default:
      return "Check the folder.";
  }
}

[[noreturn]] void fail(const fs::path& path, int reason) {
  throw Error(HEDDLE_IO, "cannot write " + path.string() + ": " +
                             std::generic_category().message(reason) + ". " + advice(reason));
}

// A file under a hidden name; gone at the end unless it got another name.
class HiddenFile {
 public:
  explicit HiddenFile(const fs::path& folder) {
    static std::atomic<unsigned> made{0};
    do {
      path_ = folder /
              (".heddle-" + std::to_string(::getpid()) + "-" + std::to_string(made++) + ".part");
      handle_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (handle_ < 0 && (errno == EEXIST || errno == EINTR));
    if (handle_ < 0) fail(path_, errno);
  }
  ~HiddenFile() {
    if (handle_ >= 0) ::close(handle_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  HiddenFile(const HiddenFile&) = delete;
  HiddenFile& operator=(const HiddenFile&) = delete;

  void write(std::span<const std::uint8_t> content) {
    while (!content.empty()) {
      const ssize_t written = ::write(handle_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, errno);
      content = content.subspan(static_cast<std::size_t>(written));
    }
    const int handle = std::exchange(handle_, -1);
    if (::close(handle) != 0 && errno != EINTR) fail(path_, errno);
  }

  // False: there is such a file already.
  bool rename(const fs::path& to) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      path_.clear();
      return true;
    }
    if (errno == EEXIST) return false;
    if (errno != EINVAL && errno != ENOSYS) fail(to, errno);
    // A file system without that flag: the name is taken by an empty file first, then replaced.
    const int reserved = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (reserved < 0 && errno == EEXIST) return false;
    if (reserved < 0) fail(to, errno);
    ::close(reserved);
    if (::rename(path_.c_str(), to.c_str()) != 0) {
      const int reason = errno;
      ::unlink(to.c_str());
      fail(to, reason);
    }
    path_.clear();
    return true;
  }

 private:
  fs::path path_;
  int handle_ = -1;
};

}  // namespace

std::string put_new_file(const fs::path& folder, std::span<const std::uint8_t> content,
                         const std::function<std::string()>& name) {
  HiddenFile file(folder);
  file.write(content);
  while (true) {
    std::string candidate = name();
    if (file.rename(folder / candidate)) return candidate;
  }
}

}  // namespace heddle::image
