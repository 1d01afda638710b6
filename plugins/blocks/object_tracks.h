// plugins/blocks/object_tracks.h - SAM3_TRACK_DATA: where things of a video are at each of its
// frames (sdk/include/heddle/diffusion/values.h). One call's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::blocks {

// Masks of `things` things at `frames` frames, of one size, a bit for each pixel: bits (frames,
// things, rows, bytes of a row) u8 in host memory, the first pixel in the lowest bit; none where
// there are no things. height, width: of the video's pictures, which are another size.
struct ObjectTracks {
  std::int64_t frames = 0, height = 0, width = 0;
  Tensor bits = {};
  std::vector<double> scores = {};  // of things, as far as they have one

  std::int64_t things() const { return bits ? bits.size(1) : 0; }
  std::int64_t rows() const { return bits ? bits.size(2) : 0; }
  std::int64_t columns() const { return bits ? 8 * bits.size(3) : 0; }
  // REQUIRES: bits, and numbers below these.
  const std::uint8_t* mask(std::int64_t frame, std::int64_t thing) const {
    return bits.data<std::uint8_t>() + (frame * things() + thing) * bits.size(2) * bits.size(3);
  }
};

Value value_of_object_tracks(const ObjectTracks& tracks);

// From a value on any device. Throws, with the port's name, for what is no SAM3_TRACK_DATA.
ObjectTracks object_tracks_of(Context& ctx, const Value& value, const char* port);

}  // namespace heddle::blocks
