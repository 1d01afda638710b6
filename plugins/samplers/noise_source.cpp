#include "noise_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/host_memory.hpp>

#include "user_error.h"

namespace heddle::samplers {
namespace {

// Cut off beyond `deviations` standard deviations (of the values themselves, as PyTorch's std()).
void clip(std::span<float> values, double deviations) {
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / double(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  const auto most = float(deviations * std::sqrt(squares / double(values.size() - 1)));
  if (!std::isfinite(most)) return;  // one value has no deviation
  for (float& value : values) value = std::clamp(value, -most, most);
}

BrownianTree path_over(std::uint64_t seed, std::span<const float> levels) {
  float low = std::numeric_limits<float>::max(), high = 0;
  for (const float level : levels) {
    if (level > 0) low = std::min(low, level);
    high = std::max(high, level);
  }
  return {seed, low, high};
}

}  // namespace

NoiseSource::NoiseSource(Context& ctx, Shape shape, std::uint64_t seed,
                         std::span<const float> levels)
    : NoiseSource(ctx, std::move(shape), seed) {
  path_ = path_over(seed, levels);
}

Tensor NoiseSource::draw(const Evaluation& evaluation) {
  HostMemory memory(ctx_);
  std::size_t count = 1;
  for (const std::int64_t size : shape_) count *= std::size_t(size);
  std::pmr::vector<float> values(count, &memory);
  if (path_)
    path_->noise(evaluation.noise_from, evaluation.noise_to, values, memory);
  else
    generator_.normal(values);
  if (evaluation.noise_clip > 0.0) clip(values, evaluation.noise_clip);
  scale_noise(values, scale_);
  return ctx_.upload(shape_, HEDDLE_F32, values.data());
}

// A path is the same wherever one is on it.
void NoiseSource::archive(StateArchive& state) {
  if (path_) return;
  std::string text = state.reads() ? std::string() : generator_.state();
  state("generator", text);
  if (state.reads()) with_user_errors([&] { generator_.set_state(text); });
}

}  // namespace heddle::samplers
