// Sound at another rate, as torchaudio.functional.resample() makes it by default: a windowed sinc
// (Hann, six zero crossings, rolloff 0.99). Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace heddle::video {

// The filter for a pair of rates. Throws HEDDLE_INVALID_ARGUMENT for a pair whose table would not
// fit into memory: of great rates that have no common divisor.
class SoundResampler {
 public:
  SoundResampler(std::int64_t from_rate, std::int64_t to_rate);
  // Samples that so many become.
  std::int64_t count(std::int64_t samples) const;
  // REQUIRES: to.size() == count(from.size()). before_block: called now and then.
  void run(
      std::span<const float> from, std::span<float> to,
      const std::function<void()>& before_block = [] {}) const;

 private:
  std::int64_t from_ = 1, to_ = 1;    // without their common divisor
  std::int64_t taps_ = 0;             // of each of the to_ samples of a block
  std::vector<double> table_;         // to_ x taps_
  std::vector<std::int64_t> starts_;  // of the taps, against the first sample of the block
};

}  // namespace heddle::video
