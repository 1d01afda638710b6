// TRACKS: where points of a video are at each of its frames (sdk/include/heddle/diffusion/
// values.h), and such points as JSON texts. One call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::blocks {

struct TrackPlace {
  float x = 0, y = 0;  // pixels
};

// Of `count` points at `frames` frames, frame by frame.
struct Tracks {
  std::int64_t frames = 0, count = 0;
  std::vector<TrackPlace> places;
  std::vector<bool> seen;

  std::size_t index(std::int64_t frame, std::int64_t track) const {
    return std::size_t(frame * count + track);
  }
};

// As a value, in host memory. REQUIRES: as many of both as it says.
Value value_of_tracks(Context& ctx, const Tracks& tracks);
// The shapes of its two tensors.
void tell_tracks(Infer& question, const Output<Value>& output, std::int64_t frames,
                 std::int64_t count);

// The same from a value on any device; what says nothing of what is seen shows all. Throws, with
// the port's name, for what is no TRACKS.
Tracks tracks_of(Context& ctx, const Value& value, const char* port);

// Which frames show anything at all: of masks (M, H, W) those with a number above 0; one is that of
// all frames. Throws where there are fewer masks than frames.
std::vector<bool> frames_seen(Context& ctx, const Tensor& masks, std::int64_t frames);

// Of sets of tracks the places of each, as far as they are told.
using TrackPoints = std::vector<TrackPlace>;
using TrackSet = std::vector<TrackPoints>;

// One set from JSON: a list of points {x, y}, or a list of such lists; or several sets, a list of
// those. Quotes may be single ones. Throws, with the port's name, for JSON of something else.
struct ParsedTracks {
  std::vector<TrackSet> sets;
  std::string trouble = {};  // why there are none, where the text is no JSON; else empty
};
ParsedTracks parsed_tracks(const std::string& text, const char* port);

}  // namespace heddle::blocks
