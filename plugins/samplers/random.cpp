#include "random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <locale>
#include <numbers>
#include <sstream>
#include <stdexcept>
#include <string>

#include "normal_transform.h"

namespace heddle::samplers {

bool has_avx2_normals() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

Generator::Generator(std::uint64_t seed, Arithmetic arithmetic, NormalPath path)
    : engine_(static_cast<std::uint32_t>(seed)), arithmetic_(arithmetic), path_(path) {
  if (path == NormalPath::kAuto) {
    path_ = has_avx2_normals() ? NormalPath::kAvx2 : NormalPath::kScalar;
  } else if (path == NormalPath::kAvx2 && !has_avx2_normals()) {
    throw std::invalid_argument(
        "Generator: NormalPath::kAvx2 on a processor without AVX2 and FMA. Use NormalPath::kAuto.");
  }
}

void Generator::fill_uniform(std::span<float> out) {
  for (float& value : out) {
    value = static_cast<float>(static_cast<std::uint32_t>(engine_()) & 0xFFFFFFu) * 0x1p-24f;
  }
}

void Generator::transform(std::span<float> groups) const {
  if (arithmetic_ == Arithmetic::kLibrary) return transform_library(groups);
  if (path_ == NormalPath::kAvx2) return transform_contracted_avx2(groups);
  transform_contracted_scalar(groups);
}

std::string Generator::state() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << engine_;
  if (cached_) text << ' ' << std::bit_cast<std::uint64_t>(*cached_);
  return text.str();
}

void Generator::set_state(const std::string& state) {
  std::istringstream text(state);
  text.imbue(std::locale::classic());
  if (!(text >> engine_)) throw std::invalid_argument("Generator: this is no state of a generator");
  std::uint64_t bits = 0;
  cached_.reset();
  if (text >> bits) cached_ = std::bit_cast<double>(bits);
}

// Box-Muller in double precision, one value of the pair kept for the next call.
double Generator::next_small() {
  if (cached_) {
    const double value = *cached_;
    cached_.reset();
    return value;
  }
  const auto uniform = [this] {
    const std::uint64_t high = engine_();
    const std::uint64_t low = engine_();
    return static_cast<double>(((high << 32) | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
  };
  const double u1 = uniform();
  const double u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * std::numbers::pi * u1;
  cached_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

void Generator::normal(std::span<float> out) {
  if (out.size() < kNormalGroup) {
    for (float& value : out) value = static_cast<float>(next_small());
    return;
  }
  fill_uniform(out);
  const std::size_t whole = out.size() / kNormalGroup * kNormalGroup;
  transform(out.first(whole));
  if (whole == out.size()) return;
  // The last 16 slots are drawn anew as a group of their own, over values already made.
  const std::span<float> tail = out.last(kNormalGroup);
  fill_uniform(tail);
  transform(tail);
}

std::pmr::vector<float> initial_noise(std::uint64_t seed, std::size_t count,
                                      std::pmr::memory_resource& memory) {
  std::pmr::vector<float> noise(count, &memory);
  Generator(seed).normal(noise);
  return noise;
}

std::pmr::vector<float> initial_noise(std::uint64_t seed, std::size_t item_count,
                                      std::span<const std::int64_t> batch_index,
                                      std::pmr::memory_resource& memory) {
  std::int64_t last = -1;
  for (std::size_t k = 0; k < batch_index.size(); ++k) {
    if (batch_index[k] < 0) {
      throw std::invalid_argument("initial_noise: batch_index[" + std::to_string(k) + "] is " +
                                  std::to_string(batch_index[k]) +
                                  "; an index of a batch item is 0 or more.");
    }
    last = std::max(last, batch_index[k]);
  }
  std::pmr::vector<float> noise(batch_index.size() * item_count, &memory);
  std::pmr::vector<float> item(item_count, &memory);
  Generator generator(seed);
  for (std::int64_t index = 0; index <= last; ++index) {
    generator.normal(item);
    for (std::size_t k = 0; k < batch_index.size(); ++k) {
      if (batch_index[k] != index) continue;
      std::copy(item.begin(), item.end(),
                noise.begin() + static_cast<std::ptrdiff_t>(k * item_count));
    }
  }
  return noise;
}

void scale_noise(std::span<float> noise, float factor) {
  if (factor == 1.0f) return;
  for (float& value : noise) value *= factor;
}

}  // namespace heddle::samplers
