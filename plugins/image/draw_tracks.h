// Points of a video with the ways that they came, drawn over its pictures as ComfyUI draws them
// with Pillow: discs, then lines that grow fainter and thinner backwards. One thread.
#pragma once

#include <memory_resource>

#include "plugins/blocks/tracks.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {

struct TrackStyle {
  std::int64_t earlier = 24;  // frames of the way behind a point
  std::int64_t radius = 12, line_width = 16;
  double opacity = 0.75;
};

// Of picture `at` of a batch (three channels) what stands there, with the tracks at frame t.
// REQUIRES: t is a frame of the tracks.
void draw_tracks(const blocks::Tracks& tracks, std::int64_t t, const TrackStyle& style,
                 const float* picture, const Canvas& to, std::int64_t at,
                 std::pmr::memory_resource& memory);

}  // namespace heddle::image
