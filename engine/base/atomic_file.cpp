#include "engine/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::core {

namespace {

int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(std::size_t(written));
  }
  return 0;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  // Not mkstemp(), which makes files that only their owner can read.
  static std::atomic<std::uint64_t> count{0};
  const std::string temporary = cat(path.string(), ".", ::getpid(), ".", count++, ".part");
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) throw system_error(path.string(), errno);
  int failure = write_all(file, content);
  if (::close(file) != 0 && failure == 0) failure = errno;
  if (failure == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
  if (failure == 0) return;
  ::unlink(temporary.c_str());
  throw system_error(path.string(), failure);
}

}  // namespace heddle::core
