// FreSca (Huang et al. 2025, arXiv 2504.02154): low and high spatial frequencies of the guidance,
// each with a factor of its own. Low are those of the two-dimensional transform, with zero in the
// middle, from `cutoff` before the middle to `cutoff` behind it.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "plugins/samplers/prediction_patch.h"

namespace heddle::samplers {
namespace {

// The part of a signal of n numbers that lies in the low frequencies is its circular convolution
// with this.
struct LowPass {
  std::pmr::vector<double> real, imaginary;

  LowPass(std::int64_t n, std::int64_t cutoff, std::pmr::memory_resource* memory)
      : real(std::size_t(n), memory), imaginary(std::size_t(n), memory) {
    const std::int64_t middle = n / 2;
    // A place before the first counts from the end, as in Python, from which the limit comes.
    std::int64_t first = middle - cutoff;
    if (first < 0) first = std::max<std::int64_t>(0, first + n);
    const std::int64_t last = std::min(n, middle + cutoff);
    for (std::int64_t place = first; place < last; ++place)
      for (std::int64_t d = 0; d < n; ++d) {
        const double angle = 2.0 * std::numbers::pi * double((place - middle) * d % n) / double(n);
        real[std::size_t(d)] += std::cos(angle) / double(n);
        imaginary[std::size_t(d)] += std::sin(angle) / double(n);
      }
  }
};

// What the last two axes have of low frequencies; its imaginary part is left out, as in ComfyUI.
class LowFrequencies {
 public:
  LowFrequencies(const PatchPoint& point, std::int64_t cutoff)
      : height_(std::size_t(point.shape[point.shape.size() - 2])),
        width_(std::size_t(point.shape.back())),
        rows_(std::int64_t(height_), cutoff, point.memory),
        columns_(std::int64_t(width_), cutoff, point.memory),
        real_(plane(), point.memory),
        imaginary_(plane(), point.memory) {}

  std::size_t plane() const { return height_ * width_; }

  template <class From, class To>
  void of(From&& from, To&& to) {
    for (std::size_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < width_; ++x) {
        double real = 0.0, imaginary = 0.0;
        for (std::size_t at = 0; at < width_; ++at) {
          const std::size_t d = (x + width_ - at) % width_;
          const double value = from(y * width_ + at);
          real += columns_.real[d] * value;
          imaginary += columns_.imaginary[d] * value;
        }
        real_[y * width_ + x] = real;
        imaginary_[y * width_ + x] = imaginary;
      }
    for (std::size_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < width_; ++x) {
        double sum = 0.0;
        for (std::size_t at = 0; at < height_; ++at) {
          const std::size_t d = (y + height_ - at) % height_;
          sum += rows_.real[d] * real_[at * width_ + x] -
                 rows_.imaginary[d] * imaginary_[at * width_ + x];
        }
        to(y * width_ + x, sum);
      }
  }

 private:
  std::size_t height_, width_;
  LowPass rows_, columns_;
  std::pmr::vector<double> real_, imaginary_;
};

void fresca(PatchPoint& point, const PatchNumbers& numbers, PatchState&) {
  if (!point.has_unconditioned || point.shape.size() < 3) return;
  const double low = numbers["scale_low"], high = numbers["scale_high"];
  LowFrequencies frequencies(point, std::int64_t(numbers["freq_cutoff"]));
  for (std::size_t begin = 0; begin < point.conditioned.size(); begin += frequencies.plane()) {
    const auto guidance = [&](std::size_t i) {
      return double(point.conditioned[begin + i]) - point.unconditioned[begin + i];
    };
    std::pmr::vector<float> filtered(frequencies.plane(), point.memory);
    frequencies.of(guidance, [&](std::size_t i, double part) {
      filtered[i] = float(high * guidance(i) + (low - high) * part);
    });
    for (std::size_t i = 0; i < filtered.size(); ++i)
      point.conditioned[begin + i] = point.unconditioned[begin + i] + filtered[i];
  }
}

const RegisteredPatch kFresca({"fresca", PredictionPatch::Place::kBefore, &fresca});

}  // namespace
}  // namespace heddle::samplers
