#include "engine/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

class SmallFile {
 public:
  SmallFile(const std::filesystem::path& path, const FileKind& kind) : path_(path), kind_(kind) {}

  std::string read() const {
    // Before it is opened: that alone may start what a device does.
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) throw system_error(path_.native(), errno);
    check(status);
    // A pipe that took the place of the file meanwhile must not be waited for.
    const int wait = S_ISFIFO(status.st_mode) ? 0 : O_NONBLOCK;
    const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | wait));
    if (file.number() < 0 || ::fstat(file.number(), &status) != 0)
      throw system_error(path_.native(), errno);
    check(status);
    return read_to_end(file.number(), static_cast<std::uint64_t>(status.st_size));
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(const Args&... why) const {
    throw Error(Code::invalid_argument, cat(printable(path_.native()), ": ", why...));
  }

  void check(const struct stat& status) const {
    if (S_ISDIR(status.st_mode)) refuse("this is a folder. Name a file in it.");
    if (S_ISFIFO(status.st_mode) && kind_.may_be_pipe) return;
    if (!S_ISREG(status.st_mode))
      refuse("this is a ",
             S_ISFIFO(status.st_mode)   ? "pipe"
             : S_ISSOCK(status.st_mode) ? "socket"
                                        : "device",
             "; ", kind_.name, " has to be a regular file",
             kind_.may_be_pipe ? " or come through a pipe." : ".");
    if (static_cast<std::uint64_t>(status.st_size) > kind_.most_bytes)
      refuse_size(static_cast<std::uint64_t>(status.st_size));
  }

  [[noreturn]] void refuse_size(std::uint64_t bytes) const {
    refuse("it has ", bytes, " bytes or more; ", kind_.name, " has at most ", kind_.most_bytes,
           " (", format_bytes(kind_.most_bytes), "). Check that it is the file you mean.");
  }

  std::string read_to_end(int file, std::uint64_t expected) const {
    constexpr std::uint64_t kLeast = 1 << 16;
    std::string content;
    std::size_t size = 0;
    while (true) {
      // One more than there should be shows the end, or that there is too much.
      const std::uint64_t wanted = std::max({expected + 1, std::uint64_t{2} * size, kLeast});
      if (size == content.size()) content.resize(std::min(wanted, kind_.most_bytes + 1));
      const ssize_t got = ::read(file, content.data() + size, content.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error(path_.native(), errno);
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
      if (size > kind_.most_bytes) refuse_size(size);
    }
    content.resize(size);
    return content;
  }

  const std::filesystem::path& path_;
  const FileKind& kind_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path, const FileKind& kind) {
  return SmallFile(path, kind).read();
}

}  // namespace heddle::engine
