// Pictures of tensors and of other files on their way into a file of video.
#pragma once

#include <heddle/host_memory.hpp>

#include "plugins/video/write_video.h"

namespace heddle::video {

// An encoder of AV1 that takes pictures of that size: SVT-AV1, which ComfyUI uses, takes even ones
// of at least 64 x 64; libaom takes the others.
std::string av1_encoder(std::int64_t width, std::int64_t height);

// How pictures are coded in a format. crf: of the codec's scale.
VideoCoding video_coding(const VideoFormat& format, std::int64_t width, std::int64_t height,
                         std::int64_t bit_depth);
Colours colours_of(const std::string& color_space, const std::string& encoder);
// A track of sound as the container has it: AAC, in WebM Opus.
SoundCoding sound_coding(const VideoFormat& format, const Sound& sound);

// FFmpeg's name of a container.
const char* container_name(const std::string& container);

// Picture i of an IMAGE as packed RGB, cut to whole numbers as ComfyUI does. Warns of numbers that
// are none.
void to_frame(Context& ctx, const Tensor& images, std::int64_t i, AVFrame& rgb);

// The first of a batch, a run of samples for each channel, at most so many of them.
class SoundRows {
 public:
  SoundRows(Context& ctx, const Sound& sound, std::int64_t most);
  const std::vector<std::span<const float>>& rows() const { return rows_; }

 private:
  HostFloats samples_;
  std::vector<std::span<const float>> rows_;
};

std::string encode_pictures(Context& ctx, const Pictures& pictures, const VideoFormat& format,
                            const Tags& tags);

}  // namespace heddle::video
