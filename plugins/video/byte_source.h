// Where the bytes of a media file are: on the disk or in memory. FFmpeg reads them through this
// alone and opens no other file or address, whatever a file tells it to.
#pragma once

#include <cstdint>
#include <heddle/value.hpp>
#include <memory>
#include <span>
#include <string>

#include "plugins/video/ffmpeg.h"

namespace heddle::video {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::int64_t size() const = 0;
  // Reads up to to.size() bytes from there; 0 at the end, a negative AVERROR when it fails.
  virtual int read_at(std::int64_t position, std::span<std::uint8_t> to) = 0;
};

// A regular file. Throws HEDDLE_IO for what cannot be opened, HEDDLE_INVALID_ARGUMENT for folders,
// devices and pipes.
std::unique_ptr<ByteSource> file_source(const std::string& path);

// Bytes that live as long as the source.
std::unique_ptr<ByteSource> memory_source(std::span<const std::uint8_t> bytes);

// FFmpeg's view of a source, which has to outlive it.
class SourceIo {
 public:
  explicit SourceIo(ByteSource& source);
  SourceIo(const SourceIo&) = delete;
  SourceIo& operator=(const SourceIo&) = delete;
  AVIOContext* raw() const { return io_.get(); }

 private:
  static int read(void* self, std::uint8_t* to, int size);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);

  ByteSource& source_;
  std::int64_t position_ = 0;
  Held<AVIOContext> io_;
};

}  // namespace heddle::video
