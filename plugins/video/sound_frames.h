// Sound on its way into an encoder: in its format, at its rate, in frames of its size.
#pragma once

#include <span>

#include "plugins/video/media_writer.h"

namespace heddle::video {

class SoundFeeder {
 public:
  // rows: the samples of each channel at `rate`; they outlive it.
  SoundFeeder(StreamWriter& stream, std::vector<std::span<const float>> rows, int rate);

  // Writes frames until so many seconds of sound are written, or all of it is.
  void write_until(double seconds);
  // All that is left, and the encoder's end.
  void finish();

 private:
  bool write_frame();
  void convert();

  StreamWriter& stream_;
  std::vector<std::span<const float>> rows_;
  std::size_t taken_ = 0;     // samples of the rows
  bool is_drained_ = false;   // the resampler has given all
  std::int64_t written_ = 0;  // samples, at the encoder's rate
  Held<SwrContext> resampler_;
};

}  // namespace heddle::video
