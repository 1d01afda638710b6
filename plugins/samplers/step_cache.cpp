#include "step_cache.h"

#include <cmath>

namespace heddle::samplers {
namespace {

constexpr std::int64_t kStride = 8;

std::vector<float> subsampled(std::span<const float> values, const Shape& shape) {
  const std::int64_t width = shape.back(), height = shape[shape.size() - 2];
  std::vector<float> kept;
  for (std::int64_t row = 0; row < std::int64_t(values.size()) / width; ++row) {
    if (row % height % kStride != 0) continue;
    for (std::int64_t x = 0; x < width; x += kStride)
      kept.push_back(values[std::size_t(row * width + x)]);
  }
  return kept;
}

double mean_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(double(a[i]) - b[i]);
  return sum / double(a.size());
}

}  // namespace

std::optional<StepCacheNumbers> step_cache_of(const Value& settings, const char* key,
                                              const NoiseLevels& levels) {
  const Value record = settings.field(key);
  if (!record) return std::nullopt;
  return StepCacheNumbers{record.get<double>("threshold", 0.2),
                          levels.percent_to_sigma(record.get<double>("start_percent", 0.15)),
                          levels.percent_to_sigma(record.get<double>("end_percent", 0.95))};
}

bool ChangeMeter::is_little(double sigma, std::span<const float> in, const Shape& shape,
                            bool can_skip) {
  input_change_.reset();
  if (!has_started(sigma)) return false;
  if (in_) input_change_ = mean_difference(subsampled(in, shape), *in_);
  if (!input_change_ || !norm_ || !rate_) return false;
  accumulated_ += *rate_ * *input_change_ / *norm_;
  if (accumulated_ < numbers_.threshold && can_skip) return true;
  accumulated_ = 0.0;
  return false;
}

void ChangeMeter::made(double sigma, std::span<const float> in, std::span<const float> out,
                       const Shape& shape, double norm) {
  if (!from_the_start_ && !has_started(sigma)) return;
  std::vector<float> now = subsampled(out, shape);
  if (norm_ && input_change_) rate_ = mean_difference(now, *out_) / *input_change_;
  in_ = subsampled(in, shape);
  out_ = std::move(now);
  norm_ = norm;
}

void ChangeMeter::archive(StateArchive& state) {
  // A run has one of the kind at most.
  const std::string name = from_the_start_ ? "lazy_cache " : "easy_cache ";
  const auto floats = [&](const char* key, std::optional<std::vector<float>>& member) {
    bool is_there = member.has_value();
    state(name + key + " is_there", is_there);
    if (state.reads()) member.reset();
    if (is_there) state(name + key, state.reads() ? member.emplace() : *member);
  };
  floats("in", in_);
  floats("out", out_);
  state(name + "norm", norm_);
  state(name + "rate", rate_);
  state(name + "input_change", input_change_);
  state(name + "accumulated", accumulated_);
}

double mean_size(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += std::abs(double(value));
  return sum / double(values.size());
}

}  // namespace heddle::samplers
