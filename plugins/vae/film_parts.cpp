#include "plugins/vae/film_parts.h"

#include <algorithm>
#include <cmath>

namespace heddle::vae {
namespace {

constexpr double kFilmRate = 30, kLeastRest = 0.2;  // frames a second, seconds

}  // namespace

std::int64_t FilmParts::parts() const {
  if (seconds() <= kLeastRest) return 0;
  return std::int64_t((seconds() - kLeastRest) / (double(length) / kFilmRate)) + 1;
}

std::int64_t FilmParts::last_frame(std::int64_t part) const {
  return part == parts() - 1 ? frames() - length * part - 1 : length - 1;
}

// Keyframes of a part but for that at its end.
std::int64_t FilmParts::before_last(std::int64_t part) const {
  std::int64_t count = 0;
  while (double(count) * step() < double(last_frame(part)) - step()) ++count;
  return count;
}

std::vector<FilmParts::Keyframe> FilmParts::keyframes(std::int64_t part) const {
  std::vector<Keyframe> all;
  if (frames() == 0 || pictures == 0) return all;
  std::int64_t picture = 0;
  for (std::int64_t i = 0; i < part; ++i) picture += before_last(i);
  const std::int64_t count = before_last(part);
  const auto add = [&](std::int64_t frame) {
    if (picture < pictures && frame < length) all.push_back({frame, picture});
    ++picture;
  };
  for (std::int64_t k = 0; k < count; ++k) add(std::int64_t(std::ceil(step() * double(k))));
  add(last_frame(part));
  return all;
}

FilmParts::Stretch FilmParts::music(std::int64_t part) const {
  const double each = double(length) / kFilmRate, begin = double(part) * each,
               end = std::min(begin + each, seconds());
  const auto point = [&](double second) {
    return std::min(std::int64_t(second * double(rate)), points);
  };
  const std::int64_t first = point(begin);
  return {first, std::max(first, point(end))};
}

}  // namespace heddle::vae
