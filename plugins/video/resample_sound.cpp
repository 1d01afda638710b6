#include "plugins/video/resample_sound.h"

#include <algorithm>
#include <cmath>
#include <heddle/plugin.hpp>
#include <numbers>
#include <numeric>

namespace heddle::video {
namespace {

constexpr double kWidth = 6, kRolloff = 0.99;
constexpr std::int64_t kMostTaps = 1 << 26;  // of a table

double tap(double t, double gain) {
  if (std::fabs(t) >= kWidth) return 0;
  const double window = std::cos(t * std::numbers::pi / kWidth / 2);
  const double x = t * std::numbers::pi;
  return (x == 0 ? 1.0 : std::sin(x) / x) * window * window * gain;
}

}  // namespace

SoundResampler::SoundResampler(std::int64_t from_rate, std::int64_t to_rate) {
  const std::int64_t divisor = std::gcd(from_rate, to_rate);
  from_ = from_rate / divisor;
  to_ = to_rate / divisor;
  const double base = kRolloff * static_cast<double>(std::min(from_, to_));
  const double reach = kWidth * static_cast<double>(from_) / base;  // samples to either side
  taps_ = 2 * static_cast<std::int64_t>(std::ceil(reach)) + 1;
  if (taps_ > kMostTaps / to_)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "sound of " + std::to_string(from_rate) + " Hz cannot be brought to " +
                    std::to_string(to_rate) +
                    " Hz: the filter is too long. Use rates with a common divisor.");
  table_.reserve(static_cast<std::size_t>(to_ * taps_));
  for (std::int64_t j = 0; j < to_; ++j) {
    const double centre =
        static_cast<double>(j) * static_cast<double>(from_) / static_cast<double>(to_);
    const auto start = static_cast<std::int64_t>(std::floor(centre)) - taps_ / 2;
    starts_.push_back(start);
    for (std::int64_t k = 0; k < taps_; ++k)
      table_.push_back(
          tap((static_cast<double>(start + k) - centre) / static_cast<double>(from_) * base,
              base / static_cast<double>(from_)));
  }
}

std::int64_t SoundResampler::count(std::int64_t samples) const {
  const __int128 wide = static_cast<__int128>(to_) * samples + from_ - 1;
  return static_cast<std::int64_t>(wide / from_);
}

void SoundResampler::run(std::span<const float> from, std::span<float> to,
                         const std::function<void()>& before_block) const {
  const auto size = static_cast<std::int64_t>(from.size());
  constexpr std::int64_t kBlock = 1 << 14;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(to.size()); ++i) {
    if (i % kBlock == 0) before_block();
    const std::int64_t phase = i % to_;
    const std::int64_t start = i / to_ * from_ + starts_[static_cast<std::size_t>(phase)];
    const double* const taps = table_.data() + phase * taps_;
    const std::int64_t end = std::min(taps_, size - start);
    double sum = 0;
    for (std::int64_t k = std::max<std::int64_t>(0, -start); k < end; ++k)
      sum += taps[k] * static_cast<double>(from[static_cast<std::size_t>(start + k)]);
    to[static_cast<std::size_t>(i)] = static_cast<float>(sum);
  }
}

}  // namespace heddle::video
