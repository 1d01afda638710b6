#include "music_chroma.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "plugins/blocks/fourier.h"

namespace heddle::encoders {
namespace {

// C1 and, for octaves, A0, in hertz.
constexpr double kLowestNote = 32.70319566257483, kNoteOfOctaves = 27.5;
// Of the tuning: pitches that count, how loud a peak is, and hundredths of a step.
constexpr double kLeastPitch = 150, kMostPitch = 4000, kPeakShare = 0.1;
constexpr std::size_t kTuningBins = 100;
constexpr double kWeakShare = 0.01;  // of a filter's heights, which is left out
constexpr std::int64_t kSmoothFrames = 43;
constexpr std::array<double, 4> kNoteShares{0.4, 0.2, 0.1, 0.05};
constexpr double kLeastSum = std::numeric_limits<float>::min();

struct Pitches {
  std::vector<double> hertz, heights;
};

// Peaks of the frames' magnitudes, between their bins by parabolas.
Pitches pitches_of(const MusicWork& work, std::span<const float> sound) {
  Pitches found;
  const std::vector<double> window = hann_window(kMusicWindow);
  std::vector<std::complex<double>> spectrum(kMusicWindow);
  std::vector<double> s(kMusicWindow / 2 + 1);
  for (std::int64_t frame = 0; frame < music_frames(std::int64_t(sound.size())); ++frame) {
    work.check();
    transform_frame(sound, frame * kMusicHop, window, spectrum);
    for (std::size_t k = 0; k < s.size(); ++k) s[k] = std::abs(spectrum[k]);
    const double least = kPeakShare * std::ranges::max(s);
    const auto loud = [&](std::size_t k) { return s[k] > least ? s[k] : 0.0; };
    for (std::size_t k = 1; k + 1 < s.size(); ++k) {
      const double hertz = double(k) * kMusicRate / double(kMusicWindow);
      if (hertz < kLeastPitch || hertz >= kMostPitch) continue;
      if (loud(k) <= loud(k - 1) || loud(k) < loud(k + 1)) continue;
      const double bend = s[k + 1] + s[k - 1] - 2 * s[k], slope = (s[k + 1] - s[k - 1]) / 2,
                   moved = std::abs(slope) < std::abs(bend) ? -slope / bend : 0;
      found.hertz.push_back((double(k) + moved) * kMusicRate / double(kMusicWindow));
      found.heights.push_back(s[k] + 0.5 * slope * moved);
    }
  }
  return found;
}

// How many steps the music is out of tune, from -0.5 to 0.5.
double tuning_of(const MusicWork& work, std::span<const float> sound) {
  if (std::int64_t(sound.size()) < kMusicWindow) return 0;
  const Pitches pitches = pitches_of(work, sound);
  if (pitches.hertz.empty()) return 0;
  const double least = median_of(pitches.heights);
  const auto edge = [](std::size_t bin) { return -0.5 + double(bin) / double(kTuningBins); };
  std::array<std::int64_t, kTuningBins> counts{};
  for (std::size_t i = 0; i < pitches.hertz.size(); ++i) {
    if (pitches.heights[i] < least) continue;
    const double steps = double(kNoteSteps) * std::log2(pitches.hertz[i] / kNoteOfOctaves);
    double rest = steps - std::floor(steps);
    if (rest >= 0.5) rest -= 1;
    std::size_t bin = 0;
    while (bin + 1 < kTuningBins && rest >= edge(bin + 1)) ++bin;
    ++counts[bin];
  }
  return edge(std::size_t(std::ranges::max_element(counts) - counts.begin()));
}

// Half of the points, by Kaiser's window (beta 5) over a sinc of 41 points, as loud in sum of
// squares. Source: scipy's resample_poly(), as librosa's resample() calls it.
using MusicPoints = std::pmr::vector<float>;
MusicPoints halved(const MusicPoints& sound, const MusicWork& work) {
  constexpr std::int64_t kReach = 20;
  constexpr double kBeta = 5;
  std::array<double, 2 * kReach + 1> taps{};
  double sum = 0;
  for (std::int64_t i = -kReach; i <= kReach; ++i) {
    const double x = double(i) / double(kReach), angle = std::numbers::pi * double(i) / 2,
                 sinc = i == 0 ? 1 : std::sin(angle) / angle;
    sum += taps[std::size_t(i + kReach)] =
        sinc * std::cyl_bessel_i(0, kBeta * std::sqrt(1 - x * x));
  }
  const auto count = std::int64_t(sound.size());
  MusicPoints made(std::size_t((count + 1) / 2), work.memory);
  for (std::int64_t m = 0; m < std::int64_t(made.size()); ++m) {
    double point = 0;
    for (std::int64_t i = -kReach; i <= kReach; ++i)
      if (const std::int64_t at = 2 * m + i; at >= 0 && at < count)
        point += taps[std::size_t(i + kReach)] * double(sound[std::size_t(at)]);
    made[std::size_t(m)] = float(point / sum * std::numbers::sqrt2);
  }
  return made;
}

// What a filter takes of a spectrum, where it takes more than next to nothing.
using SparseFilter = std::vector<std::pair<std::size_t, std::complex<double>>>;

// The transform of a wave of `hertz` under Hann's window of `length` points.
SparseFilter note_filter(double hertz, double rate, double length, std::size_t room) {
  const auto begin = std::int64_t(std::floor(-length / 2)),
             end = std::int64_t(std::floor(length / 2)), count = end - begin;
  const std::vector<double> window = hann_window(count);
  double sum = 0;
  for (const double share : window) sum += share;
  std::vector<std::complex<double>> wave(room);
  for (std::int64_t i = 0; i < count; ++i)
    wave[(room - std::size_t(count)) / 2 + std::size_t(i)] =
        std::polar(window[std::size_t(i)] / sum * length / double(room),
                   2 * std::numbers::pi * double(begin + i) * hertz / rate);
  blocks::fourier_transform(wave);
  wave.resize(room / 2 + 1);
  std::vector<double> heights;
  double all = 0;
  for (const std::complex<double>& x : wave) {
    heights.push_back(std::abs(x));
    all += heights.back();
  }
  std::ranges::sort(heights);
  std::size_t weak = 0;
  for (double weight = heights[0]; weight / all < kWeakShare;) weight += heights[++weak];
  SparseFilter filter;
  for (std::size_t k = 0; k < wave.size(); ++k)
    if (std::abs(wave[k]) >= heights[weak]) filter.emplace_back(k, wave[k]);
  return filter;
}

// (frames, octaves kNoteSteps) magnitudes, from the lowest note on.
MusicNumbers constant_q(const MusicWork& work, std::span<const float> sound) {
  const std::int64_t frames = music_frames(std::int64_t(sound.size())),
                     steps = kOctaves * kNoteSteps;
  const double tuning = tuning_of(work, sound), share = std::exp2(2.0 / double(kNoteSteps)),
               quality = (share + 1) / (share - 1);
  const auto hertz = [&](std::int64_t step) {
    return kLowestNote * std::exp2((double(step) + tuning) / double(kNoteSteps));
  };
  MusicNumbers all = work.zeros(frames * steps);
  MusicPoints points(sound.begin(), sound.end(), work.memory);
  double rate = kMusicRate;
  std::int64_t hop = kMusicHop;
  for (std::int64_t octave = kOctaves - 1; octave >= 0; --octave) {
    const std::int64_t first = octave * kNoteSteps;
    std::size_t room = 1;
    while (double(room) < quality * rate / hertz(first)) room *= 2;
    std::vector<SparseFilter> filters;
    for (std::int64_t step = first; step < first + kNoteSteps; ++step)
      filters.push_back(note_filter(hertz(step), rate, quality * rate / hertz(step), room));
    std::vector<std::complex<double>> spectrum(room);
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      work.check();
      transform_frame(points, frame * hop, {}, spectrum);
      for (std::int64_t i = 0; i < kNoteSteps; ++i) {
        std::complex<double> sum = 0;
        for (const auto& [k, weight] : filters[std::size_t(i)]) sum += weight * spectrum[k];
        all[std::size_t(frame * steps + first + i)] =
            std::abs(sum) *
            std::sqrt(kMusicRate / rate / (quality * kMusicRate / hertz(first + i)));
      }
    }
    points = halved(points, work);
    rate /= 2;
    hop /= 2;
  }
  return all;
}

}  // namespace

MusicNumbers chroma_of(const MusicWork& work, std::span<const float> sound) {
  const MusicNumbers steps = constant_q(work, sound);
  const std::int64_t of_frame = kOctaves * kNoteSteps,
                     frames = std::int64_t(steps.size()) / of_frame;
  MusicNumbers marks = work.zeros(frames * kNotes), all = work.zeros(frames * kNotes);
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    // A note is its own step and those on both sides.
    std::array<double, kNotes> notes{};
    double sum = 0;
    for (std::int64_t step = 0; step < of_frame; ++step) {
      const double height = steps[std::size_t(frame * of_frame + step)];
      notes[std::size_t((step + 1) % kNoteSteps / (kNoteSteps / kNotes))] += height;
      sum += height;
    }
    for (std::int64_t note = 0; note < kNotes; ++note)
      for (const double share : kNoteShares)
        if (notes[std::size_t(note)] / std::max(sum, kLeastSum) > share)
          marks[std::size_t(frame * kNotes + note)] += 1 / double(kNoteShares.size());
  }
  // Over frames by Hann's window, whose ends are 0; then of length 1.
  std::array<double, kSmoothFrames> window{};
  double whole = 0;
  for (std::int64_t i = 0; i < kSmoothFrames; ++i)
    whole += window[std::size_t(i)] =
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(kSmoothFrames - 1));
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    double squares = 0;
    for (std::int64_t note = 0; note < kNotes; ++note) {
      double sum = 0;
      for (std::int64_t i = 0; i < kSmoothFrames; ++i)
        if (const std::int64_t at = frame + i - kSmoothFrames / 2; at >= 0 && at < frames)
          sum += window[std::size_t(i)] * marks[std::size_t(at * kNotes + note)];
      all[std::size_t(frame * kNotes + note)] = sum / whole;
      squares += sum / whole * sum / whole;
    }
    for (std::int64_t note = 0; note < kNotes; ++note)
      all[std::size_t(frame * kNotes + note)] /= std::max(std::sqrt(squares), kLeastSum);
  }
  return all;
}

}  // namespace heddle::encoders
