// What is measured of a music frame by frame: how loud its bands are, and how much louder they
// become. Formulas: librosa's melspectrogram(), power_to_db(), onset_strength() and mfcc() with
// their defaults (frames of 2048 points, every 512, centred, zeros beyond the ends, Hann's window,
// 128 bands of Slaney's scale), as ComfyUI's WanDancerEncodeAudio has them. One call's thread.
#pragma once

#include <complex>
#include <memory_resource>
#include <span>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::encoders {

inline constexpr std::int64_t kMusicHop = 512, kMusicWindow = 2048, kMusicBands = 128,
                              kCepstrum = 20;
// The rate that a music is taken for, whatever it is.
inline constexpr double kMusicRate = 22050;

using MusicNumbers = std::pmr::vector<double>;

// Where measuring takes place: its memory, and whether it is to end.
struct MusicWork {
  Context& ctx;
  std::pmr::memory_resource* memory;

  // Throws HEDDLE_CANCELLED.
  void check() const;
  MusicNumbers zeros(std::int64_t count) const {
    return MusicNumbers(std::size_t(count), 0.0, memory);
  }
};

constexpr std::int64_t music_frames(std::int64_t points) { return 1 + points / kMusicHop; }

// Of so many points, periodic.
std::vector<double> hann_window(std::int64_t points);
double median_of(std::vector<double> numbers);  // REQUIRES: not empty

// The transform of `to.size()` points about `middle`, each times its share; shares may be empty.
void transform_frame(std::span<const float> sound, std::int64_t middle,
                     std::span<const double> shares, std::span<std::complex<double>> to);

// (frames, kMusicBands) decibels, no less than -100. rate: points a second, 2 or more.
MusicNumbers loudness(const MusicWork& work, std::span<const float> sound, std::int64_t rate);
// (frames), of loudness(): the mean over all bands of how much louder they become; 0 at first.
MusicNumbers rises(const MusicWork& work, const MusicNumbers& levels);
// (frames, kCepstrum), of loudness().
MusicNumbers cepstrum(const MusicWork& work, const MusicNumbers& levels);

}  // namespace heddle::encoders
