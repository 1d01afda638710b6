#include "music_beats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/blocks/fourier.h"

namespace heddle::encoders {
namespace {

// Of the tempo: seconds that are compared, frames that are enough, the most beats a minute.
constexpr double kComparedSeconds = 8, kMostTempo = 320, kHearing = 1e6;
constexpr std::int64_t kLeastFrames = 20;
// Of onsets, in frames: what is louder before, and what the mean is of on both sides; how much
// louder than that.
constexpr std::int64_t kFramesBefore = 1, kMeanBefore = 4, kMeanBehind = 5, kFramesOfWait = 1;
constexpr double kOnsetRise = 0.07;
// Of beats: how strictly they follow each other, how narrow one is.
constexpr double kTightness = 100, kNarrowness = 32;

// Half of the frames of `window` lie before an envelope and behind it, falling to 0.
double ramped(const MusicNumbers& envelope, std::int64_t at, std::int64_t side) {
  const auto count = std::int64_t(envelope.size());
  if (at < 0) return envelope.front() * double(side + at) / double(side);
  if (at < count) return envelope[std::size_t(at)];
  return envelope.back() * double(side - 1 - (at - count)) / double(side);
}

double mean_of(const double* begin, const double* end) {
  double sum = 0;
  for (const double* at = begin; at != end; ++at) sum += *at;
  return sum / double(end - begin);
}

// How likely a beat is at each frame, by the sound there and at the frames about it.
MusicNumbers beat_scores(const MusicWork& work, const MusicNumbers& envelope, std::int64_t period) {
  const auto count = std::int64_t(envelope.size());
  const double mean = mean_of(envelope.data(), envelope.data() + count);
  double squares = 0;
  for (const double x : envelope) squares += (x - mean) * (x - mean);
  const double deviation = std::sqrt(squares / double(count - 1)),
               scale = deviation > 0 ? 1 / deviation : 1;
  MusicNumbers scores = work.zeros(count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t at = std::max<std::int64_t>(0, i - period);
         at <= std::min(count - 1, i + period); ++at) {
      const double away = double(i - at) * kNarrowness / double(period);
      scores[std::size_t(i)] += envelope[std::size_t(at)] * scale * std::exp(-0.5 * away * away);
    }
  return scores;
}

// Whether a chain's sum is the largest about this frame.
bool is_peak(const MusicNumbers& sums, std::int64_t i) {
  const auto at = std::size_t(i);
  return i > 0 && sums[at] > sums[at - 1] && (at + 1 == sums.size() || sums[at] >= sums[at + 1]);
}

// The last frame that a chain of beats may end at; -1: none.
std::int64_t last_beat(const MusicNumbers& sums) {
  const auto count = std::int64_t(sums.size());
  std::vector<double> peaks;
  for (std::int64_t i = 0; i < count; ++i)
    if (is_peak(sums, i)) peaks.push_back(sums[std::size_t(i)]);
  if (peaks.empty()) return count - 1;
  const double least = median_of(std::move(peaks)) / 2;
  for (std::int64_t i = count - 1; i >= 0; --i)
    if (is_peak(sums, i) && sums[std::size_t(i)] >= least) return i;
  return -1;
}

// Beats before the first loud frame and behind the last one go.
void trim_beats(MusicNumbers& beats, const MusicNumbers& scores) {
  const auto count = std::int64_t(beats.size());
  std::vector<double> of_beats;
  for (std::int64_t i = 0; i < count; ++i)
    if (beats[std::size_t(i)] > 0) of_beats.push_back(scores[std::size_t(i)]);
  if (of_beats.empty()) return;
  // Over three beats, by Hann's window of five, and the two places behind the last.
  const auto made = std::min<std::int64_t>(std::int64_t(of_beats.size()) + 2, count);
  const auto score = [&](std::int64_t i) {
    return i < 0 || i >= std::int64_t(of_beats.size()) ? 0.0 : of_beats[std::size_t(i)];
  };
  double squares = 0;
  for (std::int64_t i = 0; i < made; ++i) {
    const double smooth = score(i) + (score(i - 1) + score(i + 1)) / 2;
    squares += smooth * smooth;
  }
  const double least = std::sqrt(squares / double(made)) / 2;
  for (std::int64_t i = 0; i < count && scores[std::size_t(i)] <= least; ++i)
    beats[std::size_t(i)] = 0;
  for (std::int64_t i = count - 1; i >= 0 && scores[std::size_t(i)] <= least; --i)
    beats[std::size_t(i)] = 0;
}

}  // namespace

double tempo_of(const MusicWork& work, const MusicNumbers& envelope, double rate, double start) {
  const auto count = std::int64_t(envelope.size());
  const std::int64_t window =
      std::min(std::int64_t(std::nearbyint(kComparedSeconds * rate / double(kMusicHop))), count);
  if (count < kLeastFrames || window < 2) return kUsualTempo;
  const std::vector<double> shares = hann_window(window);
  std::size_t room = 1;
  while (room < std::size_t(2 * window)) room *= 2;
  std::vector<std::complex<double>> part(room);
  MusicNumbers likeness = work.zeros(window);
  for (std::int64_t frame = 0; frame < count; ++frame) {
    work.check();
    std::ranges::fill(part, 0.0);
    for (std::int64_t i = 0; i < window; ++i)
      part[std::size_t(i)] =
          ramped(envelope, frame + i - window / 2, window / 2) * shares[std::size_t(i)];
    // How like it is to itself later: by its powers, as they are even the same transform leads
    // back.
    blocks::fourier_transform(part);
    for (std::complex<double>& wave : part) wave = std::norm(wave);
    blocks::fourier_transform(part);
    double largest = 0;
    for (std::int64_t lag = 0; lag < window; ++lag)
      largest = std::max(largest, std::abs(part[std::size_t(lag)].real()));
    if (largest <= 0) continue;
    for (std::int64_t lag = 0; lag < window; ++lag)
      likeness[std::size_t(lag)] += part[std::size_t(lag)].real() / largest;
  }
  const auto tempo_at = [&](std::int64_t lag) {
    return 60 * rate / (double(kMusicHop) * double(lag));
  };
  // Where all are quicker than the most, all count.
  const bool has_slow = tempo_at(window - 1) < kMostTempo;
  double best = -std::numeric_limits<double>::infinity();
  std::int64_t found = 1;
  for (std::int64_t lag = 1; lag < window; ++lag) {
    if (has_slow && tempo_at(lag) >= kMostTempo) continue;
    const double mean = std::max(0.0, likeness[std::size_t(lag)] / double(count)),
                 octaves = std::log2(tempo_at(lag) / start),
                 liked = std::log1p(kHearing * mean) - 0.5 * octaves * octaves;
    if (liked <= best) continue;
    best = liked;
    found = lag;
  }
  return tempo_at(found);
}

MusicNumbers onsets_of(const MusicWork& work, const MusicNumbers& envelope) {
  const auto count = std::int64_t(envelope.size());
  MusicNumbers found = work.zeros(count), x(envelope, work.memory);
  const auto [least, most] = std::ranges::minmax(envelope);
  for (double& level : x) level = most > least ? (level - least) / (most - least) : 0;
  for (std::int64_t n = 0; n < count; ++n) {
    const double* const at = x.data() + n;
    const double loudest = *std::max_element(at - std::min(n, kFramesBefore), at + 1),
                 mean =
                     mean_of(at - std::min(n, kMeanBefore), at + std::min(kMeanBehind, count - n));
    if (*at < loudest || *at < mean + kOnsetRise) continue;
    found[std::size_t(n)] = 1;
    n += kFramesOfWait;
  }
  return found;
}

MusicNumbers beats_of(const MusicWork& work, const MusicNumbers& envelope, double tempo) {
  const auto count = std::int64_t(envelope.size());
  MusicNumbers beats = work.zeros(count);
  const auto period = std::int64_t(std::nearbyint(kMusicRate / double(kMusicHop) * 60 / tempo));
  if (count < 2 || period < 1) return beats;
  const MusicNumbers scores = beat_scores(work, envelope, period);
  MusicNumbers sums(scores, work.memory);
  std::vector<std::int64_t> before(std::size_t(count), -1);
  const double least = 0.01 * std::ranges::max(scores);
  const auto nearest = std::int64_t(std::nearbyint(double(period) / 2));
  bool is_silent = true;
  for (std::int64_t i = 1; i < count; ++i) {
    work.check();
    double best = -std::numeric_limits<double>::infinity();
    std::int64_t found = -1;
    for (std::int64_t at = i - nearest; at >= std::max<std::int64_t>(0, i - 2 * period); --at) {
      const double away = std::log(double(i - at)) - std::log(double(period)),
                   sum = sums[std::size_t(at)] - kTightness * away * away;
      if (sum <= best) continue;
      best = sum;
      found = at;
    }
    if (found >= 0) sums[std::size_t(i)] += best;
    if (is_silent && scores[std::size_t(i)] < least) continue;
    before[std::size_t(i)] = found;
    is_silent = false;
  }
  for (std::int64_t at = last_beat(sums); at >= 0; at = before[std::size_t(at)])
    beats[std::size_t(at)] = 1;
  trim_beats(beats, scores);
  return beats;
}

}  // namespace heddle::encoders
