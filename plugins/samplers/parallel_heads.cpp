#include "parallel_heads.h"

#include <algorithm>
#include <cmath>

namespace heddle::samplers {
namespace {

double shifted_level(double u, double shift) { return shift * u / (1 + (shift - 1) * u); }

std::int64_t head_count(const Value& model) {
  return model_settings(model).get<std::int64_t>("parallel_heads", 1);
}

}  // namespace

HeadRange heads_between(std::int64_t heads, std::span<const float> levels, double sigma,
                        double shift) {
  // In f32, as ComfyUI has it: where the product falls on a half, the last bit decides.
  const auto place = [&](double level) {
    const float held = std::clamp(float(level), 0.0f, 1.0f), by = float(shift),
                u = held / (by + (1 - by) * held);
    return std::int64_t(std::nearbyint(double(1 - u) * double(heads)));  // halves to even
  };
  const auto nearest = std::ranges::min_element(
      levels, {}, [&](float level) { return std::abs(double(level) - sigma); });
  if (nearest == levels.end()) return {0, 1};
  const double next = nearest + 1 == levels.end() ? *nearest : *(nearest + 1);
  const std::int64_t begin = std::min(place(sigma), heads - 1);
  return {begin, std::max(place(next), begin + 1)};
}

std::vector<float> head_weights(std::int64_t heads, const HeadRange& range, double shift) {
  const auto time = [&](std::int64_t i) {
    return 1 - shifted_level(1 - double(i) / double(heads), shift);
  };
  const double whole = time(range.end) - time(range.begin);
  std::vector<float> weights(std::size_t(heads), 0.0f);
  for (std::int64_t i = range.begin; i < range.end; ++i)
    weights[std::size_t(i)] = float((time(i + 1) - time(i)) / whole);
  weights[0] = 1;
  return weights;
}

void add_head_weights(Context& ctx, const Value& model, std::span<const float> levels,
                      std::span<const double> sigmas, Record& schedule) {
  const Value settings = model_settings(model);
  const std::int64_t heads = head_count(model);
  if (heads < 2) return;
  const double video = settings.get<double>("noise_shift", 1.0);
  for (const auto& [name, shift] :
       {std::pair{kVideoHeads, video}, {kSoundHeads, settings.get<double>("sound_shift", 1.0)}}) {
    const Tensor told = ctx.make_host({std::int64_t(sigmas.size()), heads}, HEDDLE_F32);
    auto* row = told.data<float>();
    for (const double sigma : sigmas)
      row = std::ranges::copy(
                head_weights(heads, heads_between(heads, levels, sigma, video), shift), row)
                .out;
    schedule.set(name, value_of(told));
  }
}

void tell_head_weights(Constants& told, const Value& model, std::int64_t steps) {
  const std::int64_t heads = head_count(model);
  if (heads < 2) return;
  for (const char* name : {kVideoHeads, kSoundHeads})
    told.push_back({name, HEDDLE_F32, {steps, heads}});
}

}  // namespace heddle::samplers
