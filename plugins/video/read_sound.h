// Sound of files as numbers.
#pragma once

#include <heddle/host_memory.hpp>
#include <vector>

#include "plugins/video/media_file.h"
#include "plugins/video/values.h"

namespace heddle::video {

// Samples of one stream as f32 from -1 to 1, a run for each channel. Rate and channels stay those
// of the stream.
class SoundReader {
 public:
  // start: what lies before that second is left out; duration: what lies so many seconds behind
  // it as well, 0 is no limit. memory outlives it.
  SoundReader(const MediaFile& file, const AVStream& stream, double start, double duration,
              std::pmr::memory_resource& memory);

  // False when it needs no more.
  bool take(AVFrame& frame);
  // What was taken, (1, channels, samples); nothing without a sample.
  std::optional<Sound> sound(Context& ctx) const;

 private:
  void set_up(AVFrame& frame);
  std::int64_t skipped(const AVFrame& frame) const;

  const MediaFile& file_;
  const AVRational time_base_;
  const double start_, duration_;
  std::pmr::memory_resource& memory_;
  int rate_ = 0;
  Held<SwrContext> resampler_;
  Held<AVFrame> planar_;
  std::vector<std::pmr::vector<float>> channels_;
  bool has_begun_ = false;
};

// The first track of sound of a file. Warns of what is damaged; throws where there is none.
Sound read_sound(Context& ctx, const std::string& path);

}  // namespace heddle::video
