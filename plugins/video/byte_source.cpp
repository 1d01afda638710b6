#include "plugins/video/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::video {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0)
      throw Error(HEDDLE_IO, path + ": cannot be opened: " + std::strerror(errno) + ".");
    struct stat facts {};
    const bool is_file = ::fstat(file_, &facts) == 0 && S_ISREG(facts.st_mode);
    size_ = facts.st_size;
    if (is_file) return;
    ::close(file_);
    throw Error(HEDDLE_INVALID_ARGUMENT, path + ": this is no file. Give a video or sound file.");
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(file_); }

  std::int64_t size() const override { return size_; }
  int read_at(std::int64_t position, std::span<std::uint8_t> to) override {
    while (true) {
      const ssize_t got = ::pread(file_, to.data(), to.size(), position);
      if (got >= 0) return static_cast<int>(got);
      if (errno != EINTR) return AVERROR(errno);
    }
  }

 private:
  int file_ = -1;
  std::int64_t size_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(bytes_.size()); }
  int read_at(std::int64_t position, std::span<std::uint8_t> to) override {
    if (position < 0 || position >= size()) return 0;
    const std::span<const std::uint8_t> rest = bytes_.subspan(static_cast<std::size_t>(position));
    const std::size_t count = std::min(rest.size(), to.size());
    std::memcpy(to.data(), rest.data(), count);
    return static_cast<int>(count);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<ByteSource> file_source(const std::string& path) {
  return std::make_unique<FileSource>(path);
}
std::unique_ptr<ByteSource> memory_source(std::span<const std::uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

SourceIo::SourceIo(ByteSource& source) : source_(source) {
  constexpr int kBuffer = 1 << 16;
  auto* const buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
  if (buffer == nullptr) throw std::bad_alloc();
  AVIOContext* const io =
      avio_alloc_context(buffer, kBuffer, 0, this, &SourceIo::read, nullptr, &SourceIo::seek);
  if (io == nullptr) {
    av_free(buffer);
    throw std::bad_alloc();
  }
  io_.reset(io);
}

int SourceIo::read(void* self, std::uint8_t* to, int size) {
  auto& io = *static_cast<SourceIo*>(self);
  const int got = io.source_.read_at(io.position_, {to, static_cast<std::size_t>(size)});
  if (got == 0) return AVERROR_EOF;
  if (got > 0) io.position_ += got;
  return got;
}

std::int64_t SourceIo::seek(void* self, std::int64_t offset, int whence) {
  auto& io = *static_cast<SourceIo*>(self);
  const std::int64_t size = io.source_.size();
  if ((whence & AVSEEK_SIZE) != 0) return size;
  const int from = whence & ~AVSEEK_FORCE;
  std::int64_t position = from == SEEK_CUR ? io.position_ : from == SEEK_END ? size : 0;
  if (__builtin_add_overflow(position, offset, &position) || position < 0) return AVERROR(EINVAL);
  io.position_ = position;
  return position;
}

}  // namespace heddle::video
