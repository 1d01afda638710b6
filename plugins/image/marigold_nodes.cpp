#include "plugins/image/marigold_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

constexpr std::int64_t kGreyChannels = 3;

// From 0 to 1 to a direction of length 1 and back; of no length it stays none.
void put_direction(const float* from, std::int64_t channels, float* to) {
  constexpr float kLeastLength = 1e-12f;
  float squares = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    to[c] = from[c] * 2 - 1;
    squares += to[c] * to[c];
  }
  const float length = std::max(std::sqrt(squares), kLeastLength);
  for (std::int64_t c = 0; c < channels; ++c) to[c] = (to[c] / length + 1) * 0.5f;
}

// IEC 61966-2-1.
float srgb_of(float linear) {
  constexpr float kStraight = 0.0031308f;
  return linear <= kStraight ? linear * 12.92f : 1.055f * std::pow(linear, 1 / 2.4f) - 0.055f;
}

void put_depth(const Pixels& from, std::int64_t i, const Canvas& to) {
  constexpr float kLeastRange = 1e-6f;
  const Extent& e = from.extent();
  const auto depth = [&](std::int64_t y, std::int64_t x) {
    float sum = 0;
    for (std::int64_t c = 0; c < e.channels; ++c) sum += from.at(i, y, x)[c];
    return sum / float(e.channels);
  };
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t x = 0; x < e.width; ++x) {
      least = std::min(least, depth(y, x));
      most = std::max(most, depth(y, x));
    }
  const float range = std::max(most - least, kLeastRange);
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t x = 0; x < e.width; ++x)
      std::fill_n(to.at(i, y, x), kGreyChannels, (most - depth(y, x)) / range);
}

}  // namespace

void MarigoldV2PostProcess::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const std::string kind = ctx[prediction];
  const Extent& e = from.extent();
  Extent made = e;
  if (kind == "depth") made.channels = kGreyChannels;
  const Canvas to = Canvas::image(ctx, made);
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    if (kind == "depth") {
      put_depth(from, i, to);
      continue;
    }
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x)
        if (kind == "normals")
          put_direction(from.at(i, y, x), e.channels, to.at(i, y, x));
        else
          std::transform(from.at(i, y, x), from.at(i, y, x) + e.channels, to.at(i, y, x), srgb_of);
  }
  ctx[out] = to.tensor();
}

void MarigoldV2PostProcess::infer(Infer& question) {
  std::optional<Extent> e = extent_of_image(question, image);
  const auto kind = question[prediction];
  if (!e || !kind) return;
  if (*kind == "depth") e->channels = kGreyChannels;
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

}  // namespace heddle::image
