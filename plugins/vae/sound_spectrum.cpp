#include "plugins/vae/sound_spectrum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>

#include <heddle/model.hpp>

#include "plugins/blocks/fourier.h"

namespace heddle::vae {
namespace {

constexpr double kLeastLoud = 1e-5;

}  // namespace

SoundSpectrum::SoundSpectrum(const SpectrumNumbers& numbers) : n_(numbers) {
  constexpr std::int64_t kMostPoints = 1 << 16;  // a file's numbers take no more memory than this
  const bool is_power = n_.window >= 2 && (n_.window & (n_.window - 1)) == 0;
  if (n_.rate < 2 || n_.hop < 1 || n_.bands < 1 || !is_power || n_.window > kMostPoints ||
      n_.bands > n_.window / 2)
    throw Error(
        HEDDLE_UNSUPPORTED,
        "audio_vae: its spectra have sampling_rate " + std::to_string(n_.rate) + ", hop_length " +
            std::to_string(n_.hop) + ", mel_bins " + std::to_string(n_.bands) +
            " and filter_length " + std::to_string(n_.window) +
            ". The rate has to be 2 or more, the others 1 or more, filter_length a power of "
            "two up to " +
            std::to_string(kMostPoints) + ", and mel_bins at most half of it.");
  for (std::int64_t i = 0; i < n_.window; ++i)
    window_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(n_.window)));
  bands_ = blocks::mel_bands(n_.rate, n_.window, n_.bands);
}

void SoundSpectrum::log_bands(std::span<const float> sound, std::span<float> out) const {
  const auto points = std::int64_t(sound.size()), half = n_.window / 2;
  if (points <= half)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: the sound has " + std::to_string(points) +
                    " points at the autoencoder's rate, its spectra take more than " +
                    std::to_string(half) + ". Give a longer sound.");
  std::vector<std::complex<double>> x(window_.size());
  std::vector<double> loud(std::size_t(half + 1));
  float* to = out.data();
  for (std::int64_t frame = 0; frame < spectrum_frames(points, n_); ++frame) {
    for (std::int64_t i = 0; i < n_.window; ++i) {
      std::int64_t at = std::abs(frame * n_.hop + i - half);
      if (at >= points) at = 2 * (points - 1) - at;
      x[std::size_t(i)] = double(sound[std::size_t(at)]) * window_[std::size_t(i)];
    }
    blocks::fourier_transform(x);
    for (std::size_t k = 0; k < loud.size(); ++k) loud[k] = std::abs(x[k]);
    for (const blocks::MelBand& band : bands_) {
      double sum = 0;
      for (std::size_t k = 0; k < band.shares.size(); ++k)
        sum += band.shares[k] * loud[band.begin + k];
      *to++ = float(std::log(std::max(sum, kLeastLoud)));
    }
  }
}

}  // namespace heddle::vae
