#include "log_mel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory_resource>
#include <numbers>
#include <vector>

#include "plugins/blocks/mel_bands.h"
#include "sound_encoders.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kFramePoints = 400, kHalf = kFramePoints / 2;
constexpr double kLeastPower = 1e-10, kLogRange = 8, kLogShift = 4, kLogScale = 4;

// Cosines and sines of a frame: frequency k at point n, of the first half of the points, as the
// other half mirrors it.
class HalfTransform {
 public:
  explicit HalfTransform(HostMemory& memory)
      : cos_(std::size_t((kHalf + 1) * (kHalf + 1)), &memory), sin_(cos_.size(), &memory) {
    for (std::int64_t k = 0; k <= kHalf; ++k)
      for (std::int64_t n = 0; n <= kHalf; ++n) {
        const double angle =
            2 * std::numbers::pi * double(k * n % kFramePoints) / double(kFramePoints);
        cos_[at(k) + std::size_t(n)] = std::cos(angle);
        sin_[at(k) + std::size_t(n)] = std::sin(angle);
      }
  }
  // Powers of kHalf + 1 frequencies.
  void powers(const double* frame, double* out) const {
    double even[kHalf + 1], odd[kHalf + 1];
    even[0] = frame[0], even[kHalf] = frame[kHalf], odd[0] = odd[kHalf] = 0;
    for (std::int64_t n = 1; n < kHalf; ++n) {
      even[n] = frame[n] + frame[kFramePoints - n];
      odd[n] = frame[n] - frame[kFramePoints - n];
    }
    for (std::int64_t k = 0; k <= kHalf; ++k) {
      double real = 0, imaginary = 0;
      for (std::int64_t n = 0; n <= kHalf; ++n) {
        real += even[n] * cos_[at(k) + std::size_t(n)];
        imaginary += odd[n] * sin_[at(k) + std::size_t(n)];
      }
      out[k] = real * real + imaginary * imaginary;
    }
  }

 private:
  static std::size_t at(std::int64_t k) { return std::size_t(k * (kHalf + 1)); }
  std::pmr::vector<double> cos_, sin_;
};

}  // namespace

void log_mel(std::span<const float> sound, std::int64_t frames, std::int64_t bands,
             std::span<float> out, HostMemory& memory, void (*check)(void*), void* state) {
  const std::int64_t points = frames * kLogMelHop;
  const HalfTransform transform(memory);
  const std::vector<blocks::MelBand> triangles = blocks::mel_bands(kSoundRate, kFramePoints, bands);
  double window[kFramePoints], frame[kFramePoints], powers[kHalf + 1];
  for (std::int64_t n = 0; n < kFramePoints; ++n)
    window[n] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(n) / double(kFramePoints));
  float loudest = float(std::log10(kLeastPower));
  float* to = out.data();
  for (std::int64_t f = 0; f < frames; ++f) {
    check(state);
    for (std::int64_t n = 0; n < kFramePoints; ++n) {
      std::int64_t from = std::abs(f * kLogMelHop + n - kHalf);
      if (from >= points) from = std::max<std::int64_t>(0, 2 * (points - 1) - from);
      const bool is_there = from < std::int64_t(sound.size());
      frame[n] = is_there ? double(sound[std::size_t(from)]) * window[n] : 0;
    }
    transform.powers(frame, powers);
    for (const blocks::MelBand& band : triangles) {
      double sum = 0;
      for (std::size_t k = 0; k < band.shares.size(); ++k)
        sum += band.shares[k] * powers[band.begin + k];
      const auto loud = float(std::log10(std::max(sum, kLeastPower)));
      loudest = std::max(loudest, loud);
      *to++ = loud;
    }
  }
  for (float& loud : out.first(std::size_t(frames * bands)))
    loud = float((std::max<double>(loud, loudest - kLogRange) + kLogShift) / kLogScale);
}

}  // namespace heddle::encoders
