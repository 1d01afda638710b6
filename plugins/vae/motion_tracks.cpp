#include "plugins/vae/motion_tracks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <optional>

namespace heddle::vae {
namespace {

// Places of a track of ATI, 24 a second; the model draws 16.
constexpr std::int64_t kTrackPlaces = 121;
constexpr double kAlmostNothing = 1e-5;

// In half short sides, about the middle.
struct Spot {
  double x, y;
};

// What the tracks are in a video of so many frames: each one's place at first, and of each later
// frame of the latent the mean of its four frames of pixels, where it is seen.
class SpreadTracks {
 public:
  SpreadTracks(const WanJob& job, const blocks::TrackSet& tracks)
      : job_(job),
        tracks_(tracks),
        common_(std::gcd(kTrackPlaces - 1, job.grid.pixel_frames() - 1)) {}

  std::int64_t count() const { return std::int64_t(tracks_.size()); }
  Spot first(std::int64_t track) const { return spot(tracks_[std::size_t(track)].front()); }
  // None: it is seen at none of the four.
  std::optional<Spot> at(std::int64_t track, std::int64_t frame) const {
    const blocks::TrackPoints& points = tracks_[std::size_t(track)];
    Spot sum{0, 0};
    double seen = 0;
    for (std::int64_t i = 0; i < kFramesOfCell; ++i) {
      const std::int64_t place = place_of((frame - 1) * kFramesOfCell + i);
      if (place >= std::int64_t(points.size())) continue;
      const Spot one = spot(points[std::size_t(place)]);
      sum.x += one.x, sum.y += one.y, ++seen;
    }
    if (seen == 0) return {};
    return Spot{sum.x / (seen + kAlmostNothing), sum.y / (seen + kAlmostNothing)};
  }

 private:
  // Of a frame of pixels behind the first. Each place but the first is repeated frames / common
  // times, and of these every (120 / common)th counts, from the second on; where all count, from
  // the first on, which ComfyUI cannot draw.
  std::int64_t place_of(std::int64_t frame) const {
    const std::int64_t step = (kTrackPlaces - 1) / common_,
                       times = (job_.grid.pixel_frames() - 1) / common_;
    return 1 + (frame * step + (step > 1 ? 1 : 0)) / times;
  }
  Spot spot(const blocks::TrackPlace& place) const {
    const auto width = double(job_.pixels.width), height = double(job_.pixels.height),
               half = std::min(width, height) / 2;
    return {(double(place.x) - width / 2) / half, (double(place.y) - height / 2) / half};
  }

  const WanJob& job_;
  const blocks::TrackSet& tracks_;
  const std::int64_t common_;
};

// How far a side's ends are from the middle, in half short sides.
Spot ends_of(const VideoGrid& grid) {
  const auto width = double(grid.width), height = double(grid.height),
             least = std::min(width, height);
  return {width / least, height / least};
}
// PyTorch's linspace from -end to end.
double spaced(double end, std::int64_t i, std::int64_t count) {
  return count == 1 ? -end : -end + 2 * end * double(i) / double(count - 1);
}

// The features (C) of the first frame at a spot, as PyTorch's grid_sample has them: bilinear,
// corners not aligned, zeros outside.
void sample_first(const VideoGrid& grid, const float* latent, const Spot& spot, double* to) {
  const Spot ends = ends_of(grid);
  const auto place = [](double at, double end, std::int64_t count) {
    return (std::clamp(at / end, -1.0, 1.0) + 1) * double(count) / 2 - 0.5;
  };
  const double x = place(spot.x, ends.x, grid.width), y = place(spot.y, ends.y, grid.height);
  const auto left = std::int64_t(std::floor(x)), top = std::int64_t(std::floor(y));
  const double right_share = x - double(left), low_share = y - double(top);
  std::fill_n(to, grid.channels, 0.0);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t column = left + i % 2, row = top + i / 2;
    if (column < 0 || row < 0 || column >= grid.width || row >= grid.height) continue;
    const double share =
        (i % 2 == 1 ? right_share : 1 - right_share) * (i / 2 == 1 ? low_share : 1 - low_share);
    for (std::int64_t c = 0; c < grid.channels; ++c)
      to[c] += share * double(latent[(c * grid.frames * grid.height + row) * grid.width + column]);
  }
}

}  // namespace

void mix_tracks(const WanJob& job, const blocks::TrackSet& tracks, const TrackMixing& mixing,
                float* latent, float* mask, std::pmr::memory_resource& memory) {
  const VideoGrid& grid = job.grid;
  const std::int64_t plane = grid.height * grid.width;
  std::fill_n(mask, plane, 1.0f);
  if (grid.frames == 1) return;
  const SpreadTracks spread(job, tracks);
  const std::int64_t count = spread.count(), chosen = std::min(mixing.nearest, count);
  std::pmr::vector<double> features(std::size_t(count * grid.channels), &memory),
      sums(std::size_t(grid.channels), &memory), weights(std::size_t(count), &memory);
  std::pmr::vector<std::int64_t> order(std::size_t(count), &memory);
  for (std::int64_t n = 0; n < count; ++n)
    sample_first(grid, latent, spread.first(n), features.data() + n * grid.channels);
  const Spot ends = ends_of(grid);
  std::pmr::vector<std::optional<Spot>> spots(std::size_t(count), &memory);
  for (std::int64_t t = 1; t < grid.frames; ++t) {
    for (std::int64_t n = 0; n < count; ++n) spots[std::size_t(n)] = spread.at(n, t);
    for (std::int64_t p = 0; p < plane; ++p) {
      const double x = spaced(ends.x, p % grid.width, grid.width),
                   y = spaced(ends.y, p / grid.width, grid.height);
      for (std::size_t n = 0; n < spots.size(); ++n) {
        const auto& spot = spots[n];
        const double dx = spot ? spot->x - x : 0, dy = spot ? spot->y - y : 0;
        weights[n] = spot ? std::exp(-(dx * dx + dy * dy) * mixing.temperature) : 0;
      }
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                        [&](std::int64_t a, std::int64_t b) {
                          const double one = weights[std::size_t(a)], two = weights[std::size_t(b)];
                          return one != two ? one > two : a < b;
                        });
      double whole = 0;
      std::ranges::fill(sums, 0.0);
      for (std::int64_t k = 0; k < chosen; ++k) {
        const std::int64_t n = order[std::size_t(k)];
        const double weight = weights[std::size_t(n)];
        whole += weight;
        for (std::int64_t c = 0; c < grid.channels; ++c)
          sums[std::size_t(c)] += weight * features[std::size_t(n * grid.channels + c)];
      }
      for (std::int64_t c = 0; c < grid.channels; ++c) {
        float& number = latent[(c * grid.frames + t) * plane + p];
        number = float(sums[std::size_t(c)] + double(number) * (1 - std::min(whole, 1.0)));
      }
      mask[t * plane + p] = float(whole);
    }
  }
}

void move_along(const WanJob& job, const blocks::Tracks& tracks, float strength, float* latent) {
  const VideoGrid& grid = job.grid;
  const std::int64_t plane = grid.height * grid.width, side = job.pixels.height / grid.height;
  // The cell of a track at a frame; none where it is not seen, or is not in the picture.
  const auto cell_of = [&](std::int64_t frame, std::int64_t track) -> std::optional<std::int64_t> {
    const std::size_t i = tracks.index(frame, track);
    const blocks::TrackPlace place = tracks.places[i];
    if (!tracks.seen[i] || !(place.x >= 0) || !(place.y >= 0) ||
        place.x >= float(job.pixels.width) || place.y >= float(job.pixels.height))
      return {};
    const std::int64_t column = std::int64_t(place.x) / side, row = std::int64_t(place.y) / side;
    if (column >= grid.width || row >= grid.height) return {};
    return row * grid.width + column;
  };
  for (std::int64_t t = 1; t < grid.frames && t * kFramesOfCell < tracks.frames; ++t) {
    // Of tracks that meet, the last: each counts from what there was before.
    std::vector<std::int64_t> last(std::size_t(plane), -1);
    for (std::int64_t n = 0; n < tracks.count; ++n)
      if (const auto cell = cell_of(t * kFramesOfCell, n)) last[std::size_t(*cell)] = n;
    for (std::int64_t p = 0; p < plane; ++p) {
      if (last[std::size_t(p)] < 0) continue;
      const std::int64_t from = cell_of(0, last[std::size_t(p)]).value_or(plane - 1);
      for (std::int64_t c = 0; c < grid.channels; ++c) {
        const float* const first = latent + c * grid.frames * plane;
        float& to = latent[(c * grid.frames + t) * plane + p];
        to += (first[from] - to) * strength;
      }
    }
  }
}

}  // namespace heddle::vae
