#include "music_spectrum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plugins/blocks/fourier.h"
#include "plugins/blocks/mel_bands.h"

namespace heddle::encoders {
namespace {

constexpr double kLeastLoudPower = 1e-10;
constexpr std::int64_t kFramesOfLag = 1;

}  // namespace

void MusicWork::check() const {
  if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
}

std::vector<double> hann_window(std::int64_t points) {
  std::vector<double> window;
  for (std::int64_t i = 0; i < points; ++i)
    window.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(points)));
  return window;
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

void transform_frame(std::span<const float> sound, std::int64_t middle,
                     std::span<const double> shares, std::span<std::complex<double>> to) {
  const auto count = std::int64_t(to.size()), points = std::int64_t(sound.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = middle - count / 2 + i;
    const double point = at < 0 || at >= points ? 0.0 : double(sound[std::size_t(at)]);
    to[std::size_t(i)] = shares.empty() ? point : point * shares[std::size_t(i)];
  }
  blocks::fourier_transform(to);
}

MusicNumbers loudness(const MusicWork& work, std::span<const float> sound, std::int64_t rate) {
  const std::int64_t frames = music_frames(std::int64_t(sound.size()));
  const std::vector<blocks::MelBand> bands = blocks::mel_bands(rate, kMusicWindow, kMusicBands);
  const std::vector<double> window = hann_window(kMusicWindow);
  std::vector<std::complex<double>> spectrum(kMusicWindow);
  MusicNumbers all = work.zeros(frames * kMusicBands);
  auto to = all.begin();
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    work.check();
    transform_frame(sound, frame * kMusicHop, window, spectrum);
    for (const blocks::MelBand& band : bands) {
      double sum = 0;
      for (std::size_t k = 0; k < band.shares.size(); ++k)
        sum += band.shares[k] * std::norm(spectrum[band.begin + k]);
      *to++ = 10 * std::log10(std::max(kLeastLoudPower, sum));
    }
  }
  return all;
}

MusicNumbers rises(const MusicWork& work, const MusicNumbers& levels) {
  const std::int64_t frames = std::int64_t(levels.size()) / kMusicBands,
                     late = kFramesOfLag + kMusicWindow / (2 * kMusicHop);
  MusicNumbers all = work.zeros(frames);
  for (std::int64_t frame = late; frame < frames; ++frame) {
    const double* const now = levels.data() + (frame - late + 1) * kMusicBands;
    double sum = 0;
    for (std::int64_t band = 0; band < kMusicBands; ++band)
      sum += std::max(0.0, now[band] - now[band - kMusicBands]);
    all[std::size_t(frame)] = sum / double(kMusicBands);
  }
  return all;
}

MusicNumbers cepstrum(const MusicWork& work, const MusicNumbers& levels) {
  const std::int64_t frames = std::int64_t(levels.size()) / kMusicBands;
  MusicNumbers waves = work.zeros(kCepstrum * kMusicBands), all = work.zeros(frames * kCepstrum);
  for (std::int64_t k = 0; k < kCepstrum; ++k)
    for (std::int64_t n = 0; n < kMusicBands; ++n)
      waves[std::size_t(k * kMusicBands + n)] =
          std::sqrt((k == 0 ? 1.0 : 2.0) / double(kMusicBands)) *
          std::cos(std::numbers::pi * double(k) * (2 * double(n) + 1) / (2 * kMusicBands));
  for (std::int64_t frame = 0; frame < frames; ++frame)
    for (std::int64_t k = 0; k < kCepstrum; ++k) {
      double sum = 0;
      for (std::int64_t n = 0; n < kMusicBands; ++n)
        sum +=
            waves[std::size_t(k * kMusicBands + n)] * levels[std::size_t(frame * kMusicBands + n)];
      all[std::size_t(frame * kCepstrum + k)] = sum;
    }
  return all;
}

}  // namespace heddle::encoders
