// A container of video and sound that is written in memory: its streams, their encoders, the texts
// it carries. Equal input gives equal bytes: encoders have a fixed number of threads, and nothing
// tells of the time or of the program. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/video/frame_pixels.h"
#include "plugins/video/values.h"

namespace heddle::video {

// Keys and texts, in their order.
using Tags = std::vector<std::pair<std::string, std::string>>;

class MediaWriter;

struct VideoCoding {
  std::string encoder;  // as FFmpeg names it: "libx264"
  int width = 0, height = 0;
  AVPixelFormat format = AV_PIX_FMT_YUV420P;
  AVRational time_base{1, 30};
  AVRational frame_rate{30, 1};
  bool reorders = true;  // false: B-frames would not keep uneven times
  Colours colours;
  std::vector<std::pair<std::string, std::string>> options;  // of the encoder: "crf", "preset"
};

struct SoundCoding {
  std::string encoder;
  int sample_rate = 0;
  int channels = 0;
  std::int64_t bit_rate = 0;  // 0: the encoder's own
  int quality = -1;           // of encoders with a scale of qualities, else -1
};

// One stream of a writer, made by it. Frames have times in the coding's time base, samples are
// counted.
class StreamWriter {
 public:
  StreamWriter(MediaWriter& writer, const VideoCoding& coding);
  StreamWriter(MediaWriter& writer, const SoundCoding& coding);

  // The frame's pts is set; NULL: there are no more.
  void write(AVFrame* frame);
  const AVCodecContext& codec() const { return *codec_; }

 private:
  void open(const AVCodec& encoder, Options& options);

  MediaWriter& writer_;
  Held<AVCodecContext> codec_;
  Held<AVPacket> packet_;
  AVStream* stream_ = nullptr;
};

class MediaWriter {
 public:
  // format: as FFmpeg names it: "mp4", "matroska", "webm", "flac", "mp3", "opus".
  MediaWriter(const std::string& format, const Tags& tags);
  MediaWriter(const MediaWriter&) = delete;
  MediaWriter& operator=(const MediaWriter&) = delete;
  ~MediaWriter();

  // Between the last stream and the first packet.
  void begin();
  // Ends the file and gives its bytes.
  std::string finish();
  AVFormatContext* raw() const { return format_; }

 private:
  static int write_bytes(void* self, std::uint8_t* from, int size);
  static int read_bytes(void* self, std::uint8_t* to, int size);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);
  static int open_again(AVFormatContext* format, AVIOContext** io, const char*, int flags,
                        AVDictionary**);
  static int close_again(AVFormatContext*, AVIOContext* io);

  std::string bytes_;
  std::size_t position_ = 0;
  Held<AVIOContext> io_;
  AVFormatContext* format_ = nullptr;
};

}  // namespace heddle::video
