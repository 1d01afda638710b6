// Self-attention guidance (https://arxiv.org/abs/2210.00939): away from what the model predicts of
// a picture that is blurred where its middle attends to. Formula: ComfyUI's.
#include <algorithm>
#include <cmath>

#include <heddle/value.hpp>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

constexpr int kReach = 4;  // pixels to each side

// Weights of pixels around one; a deviation of 0 blurs nothing.
std::vector<float> bell(double deviation) {
  std::vector<float> weights;
  float sum = 0.0f;
  for (int i = -kReach; i <= kReach; ++i) {
    const auto part = float(i / deviation);
    weights.push_back(i == 0 ? 1.0f : deviation == 0.0 ? 0.0f : std::exp(-0.5f * part * part));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

// A pixel outside is that as far inside of the edge.
std::int64_t mirrored(std::int64_t at, std::int64_t size) {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

struct Plane {
  std::int64_t height, width;
};

void blur(std::span<const float> from, const Plane& plane, const std::vector<float>& weights,
          std::span<float> to) {
  for (std::int64_t y = 0; y < plane.height; ++y)
    for (std::int64_t x = 0; x < plane.width; ++x) {
      float sum = 0.0f;
      for (int dy = -kReach; dy <= kReach; ++dy)
        for (int dx = -kReach; dx <= kReach; ++dx)
          sum += weights[std::size_t(dy + kReach)] * weights[std::size_t(dx + kReach)] *
                 from[std::size_t(mirrored(y + dy, plane.height) * plane.width +
                                  mirrored(x + dx, plane.width))];
      to[std::size_t(y * plane.width + x)] = sum;
    }
}

// Tokens are rows of a rectangle: its height divides their number, and is as near as such a number
// can be to what the picture's sides say.
std::int64_t rows_of(std::int64_t tokens, const Plane& plane) {
  const auto wanted = std::int64_t(
      std::nearbyint(std::sqrt(double(plane.height) / double(plane.width) * double(tokens))));
  const auto reach = std::int64_t(std::floor(std::sqrt(double(tokens)) / 2));
  for (std::int64_t i = 0; i < reach; ++i)
    for (const std::int64_t rows : {wanted + i, std::max<std::int64_t>(1, wanted - i)})
      if (rows > 0 && tokens % rows == 0) return rows;
  throw Error(HEDDLE_UNSUPPORTED,
              "SelfAttentionGuidance finds no rows of " + std::to_string(tokens) +
                  " tokens in a latent of " + std::to_string(plane.height) + "x" +
                  std::to_string(plane.width) + ". Draw a picture of other sides.");
}

// As PyTorch's nearest neighbour has it, in single precision.
std::int64_t nearest(std::int64_t at, std::int64_t from, std::int64_t to) {
  const float scale = float(from) / float(to);
  return std::min(std::int64_t(std::floor(float(at) * scale)), from - 1);
}

void guide_by_self_attention(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  constexpr std::int64_t kLeastSide = 5;  // smaller ones cannot be mirrored so far
  constexpr float kMuch = 1.0f;
  if (point.shape.size() != 4 || point.attended.empty()) return;
  const Plane plane{point.shape[2], point.shape[3]};
  if (std::min(plane.height, plane.width) < kLeastSide) return;
  const auto tokens = std::int64_t(point.attended.size() / point.items());
  const std::int64_t rows = rows_of(tokens, plane), columns = tokens / rows;
  const std::vector<float> weights = bell(numbers["blur_sigma"]);
  const auto pixels = std::size_t(plane.height * plane.width);
  std::pmr::vector<float> degraded(point.x.size(), point.memory), state(degraded, point.memory);
  const std::span<const float> clean = point.unconditioned;
  for (std::size_t begin = 0; begin < clean.size(); begin += pixels) {
    const std::span<float> to = std::span(degraded).subspan(begin, pixels);
    blur(clean.subspan(begin, pixels), plane, weights, to);
    const float* seen = point.attended.data() + begin / point.item_size() * std::size_t(tokens);
    for (std::int64_t y = 0; y < plane.height; ++y)
      for (std::int64_t x = 0; x < plane.width; ++x) {
        const std::int64_t token =
            nearest(y, rows, plane.height) * columns + nearest(x, columns, plane.width);
        const auto at = std::size_t(y * plane.width + x);
        if (!(seen[token] > kMuch)) to[at] = clean[begin + at];
      }
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = degraded[i] + point.x[i] - clean[i];
  const std::pmr::vector<float> again = point.look_again(state);
  const auto scale = float(numbers["scale"]);
  for (std::size_t i = 0; i < state.size(); ++i)
    point.result[i] += (degraded[i] - again[i]) * scale;
}

const RegisteredPatch kSelfAttention({"self_attention", PredictionPatch::Place::kAfter,
                                      &guide_by_self_attention, true});

}  // namespace
}  // namespace heddle::samplers
