// Parts of a film that dances to a music: which frames of each are given, and which part of the
// music it has. Formulas: ComfyUI's WanDancerPadKeyframes. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::vae {

// A film of 30 frames a second, in parts of `length` frames, of so many pictures and points of a
// music. REQUIRES: length and rate at least 1.
struct FilmParts {
  std::int64_t length, pictures, points, rate;

  // Picture `picture` is frame `frame` of the part.
  struct Keyframe {
    std::int64_t frame, picture;
  };
  std::vector<Keyframe> keyframes(std::int64_t part) const;

  // Points of the music, none behind its end.
  struct Stretch {
    std::int64_t begin, end;
  };
  Stretch music(std::int64_t part) const;

 private:
  double seconds() const { return double(points) / double(rate); }
  std::int64_t parts() const;
  std::int64_t frames() const { return parts() * length; }
  std::int64_t last_frame(std::int64_t part) const;
  std::int64_t before_last(std::int64_t part) const;
  double step() const { return double(frames()) / double(pictures); }
};

}  // namespace heddle::vae
