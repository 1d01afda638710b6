// VIDEO and AUDIO on the wire, as records.
//   AUDIO  {waveform: tensor (batch, channels, samples) f32, sample_rate: int}
//   VIDEO  a file, decoded when somebody needs its pictures:
//            {path: str, or file: the bytes of one; start_time, duration: float seconds, 0 is no
//             limit, a start below 0 counts from the end; crop: [x, y, width, height]}
//          pictures:
//            {images: tensor (frames, height, width, 3 or 4) f32, audio: AUDIO, may be absent,
//             frame_rate: [numerator, denominator], bit_depth: int, color_space: str}
//          or several, one after another:
//            {videos: list of VIDEO, audio: AUDIO in place of theirs, may be absent}
#pragma once

#include <heddle/node.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plugins/video/frame_pixels.h"

namespace heddle::video {

struct Sound {
  Tensor waveform;
  std::int64_t sample_rate = 0;

  std::int64_t batch() const { return waveform.size(0); }
  std::int64_t channels() const { return waveform.size(1); }
  std::int64_t samples() const { return waveform.size(2); }
};

// Pictures in a second. Above 0.
struct Rate {
  std::int64_t numerator = 1, denominator = 1;
  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
  bool operator==(const Rate&) const = default;
};
// The fraction that a number above 0 is. Throws where it does not fit into 64 bits.
Rate exact_rate(double per_second);
// To thousandths, halves to the even one, as ComfyUI saves it; at least a thousandth.
Rate rate_in_thousandths(const Rate& rate);

struct FileVideo {
  std::string path;  // "": the bytes below
  Value bytes;
  double start_time = 0, duration = 0;
  std::optional<Crop> crop;
};
struct Pictures {
  Tensor images;
  std::optional<Sound> sound;
  Rate rate;
  std::int64_t bit_depth = 8;
  std::string color_space = "sRGB";  // or "HDR", "HDR PQ"
};
struct VideoList {
  std::vector<Value> videos;
  std::optional<Sound> sound;
};
using Video = std::variant<FileVideo, Pictures, VideoList>;

// Throw HEDDLE_INVALID_ARGUMENT, beginning with the port's name, for what is none.
Video video_of(const Value& value, const char* port);
Sound sound_of(const Value& value, const char* port);
// Nothing for an absent value and for None, which a video without sound has for its sound.
std::optional<Sound> sound_or_none(const Value& value, const char* port);

Value to_value(const Video& video);
Value to_value(const Sound& sound);
Value to_value(const std::optional<Sound>& sound);

}  // namespace heddle::video
