// A container of video and sound, opened for reading: which streams it has, their packets, and
// what decoders make of them. Takes hostile bytes: everything that is wrong with a file is a
// heddle::Error that begins with its name. One thread at a time.
#pragma once

#include <functional>
#include <string>

#include "plugins/blocks/pixel_limit.h"
#include "plugins/video/byte_source.h"

namespace heddle::video {

struct MediaLimits {
  std::uint64_t most_pixels = blocks::kMostPixels;  // of one picture
};

// "NAME: WHAT", what is said of a file.
[[noreturn]] void refuse_media(const std::string& name, const std::string& what);

class MediaFile {
 public:
  // Reads headers, and of formats without any the first pictures. name: begins every message.
  MediaFile(std::unique_ptr<ByteSource> source, std::string name, MediaLimits limits = {});
  MediaFile(const MediaFile&) = delete;
  MediaFile& operator=(const MediaFile&) = delete;
  ~MediaFile();

  const std::string& name() const { return name_; }
  const MediaLimits& limits() const { return limits_; }
  AVFormatContext* raw() const { return format_; }

  // The first stream of pictures that is no cover of an album, the first one of sound, and the last
  // one of sound that has a decoder (the one whose sound goes with a video in ComfyUI). NULL:
  // there is none.
  AVStream* pictures() const;
  AVStream* first_sound() const;
  AVStream* last_sound() const;
  // The same, but throws where there is none.
  AVStream& require_pictures() const;
  AVStream& require_sound() const;

  // The next packet of any stream; false at the end, which a file that was cut off has early.
  bool next(AVPacket& packet);
  // Goes to the last key picture that is not behind that time of a stream.
  void seek(const AVStream& stream, std::int64_t pts);

 private:
  [[noreturn]] void refuse_format(int code) const;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  MediaLimits limits_;
  SourceIo io_;
  AVFormatContext* format_ = nullptr;
};

// The pictures or samples of one stream.
class Decoder {
 public:
  // Takes a frame; false: it needs no more.
  using Take = std::function<bool(AVFrame&)>;

  // Throws HEDDLE_UNSUPPORTED where this FFmpeg has no decoder for the stream.
  Decoder(const MediaFile& file, AVStream& stream);

  // Hands over what a packet makes; NULL: what is left at the end. What cannot be decoded is left
  // out and counted. False when `take` needs no more.
  bool decode(const AVPacket* packet, const Take& take);
  std::size_t damaged() const { return damaged_; }
  const AVCodecContext& codec() const { return *codec_; }

 private:
  const MediaFile& file_;
  Held<AVCodecContext> codec_;
  Held<AVFrame> frame_;
  std::size_t damaged_ = 0;
};

}  // namespace heddle::video
