#include "plugins/image/draw_tracks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace heddle::image {
namespace {

constexpr std::int64_t kTrackColours = 3;
using TrackColour = std::array<std::uint8_t, kTrackColours>;
// One after another, by the number of the track.
constexpr TrackColour kColoursOfTracks[] = {
    {102, 153, 255}, {0, 255, 255}, {255, 255, 0}, {255, 102, 204}, {0, 255, 0}};

struct TrackPixel {
  std::int64_t x, y;
};
constexpr float kFar = 1e6f;
// Without what follows the point. What is far outside stays there.
TrackPixel track_pixel(const blocks::TrackPlace& place) {
  const auto whole = [](float number) { return std::int64_t(std::clamp(number, -kFar, kFar)); };
  return {whole(place.x), whole(place.y)};
}

// What lies over a picture: colours with their opacity, of which later ones take the place of
// earlier ones.
class Overlay {
 public:
  Overlay(const Extent& extent, std::pmr::memory_resource& memory)
      : width_(extent.width),
        height_(extent.height),
        colours_(std::size_t(width_ * height_), TrackColour{}, &memory),
        shares_(std::size_t(width_ * height_), std::uint8_t{0}, &memory) {}

  // Columns [left, right] of a row, as far as there are pixels.
  void span(std::int64_t row, std::int64_t left, std::int64_t right, const TrackColour& colour,
            std::uint8_t share) {
    if (row < 0 || row >= height_) return;
    left = std::max<std::int64_t>(left, 0);
    right = std::min(right, width_ - 1);
    for (std::int64_t x = left; x <= right; ++x) {
      colours_[std::size_t(row * width_ + x)] = colour;
      shares_[std::size_t(row * width_ + x)] = share;
    }
  }
  // On colours of 0 to 255.
  void lay_over(std::pmr::vector<double>& picture) const {
    for (std::size_t p = 0; p < shares_.size(); ++p) {
      const double share = double(shares_[p]) / 255;
      for (std::size_t c = 0; c < kTrackColours; ++c) {
        double& number = picture[p * kTrackColours + c];
        number = double(colours_[p][c]) * share + number * (1 - share);
      }
    }
  }

 private:
  const std::int64_t width_, height_;
  std::pmr::vector<TrackColour> colours_;
  std::pmr::vector<std::uint8_t> shares_;
};

// Half the width of each row of a disc, from the middle on. Along the circle that goes with it
// (Bresenham) each next pixel is the one of three that leaves x^2 + y^2 = radius^2 least.
std::vector<std::int64_t> disc_rows(std::int64_t radius) {
  std::vector<std::int64_t> rows;
  std::int64_t x = radius, y = 0;
  const auto error = [&](std::int64_t at_x, std::int64_t at_y) {
    return std::abs(at_x * at_x + at_y * at_y - radius * radius);
  };
  rows.push_back(x);
  while (x != 0 || y != radius) {
    std::int64_t next_x = x, next_y = y + 1;
    if (x > 0) {
      if (error(next_x, next_y) > error(x - 1, y + 1)) next_x = x - 1;
      if (error(next_x, next_y) > error(x - 1, y)) next_x = x - 1, next_y = y;
    }
    x = next_x, y = next_y;
    if (std::size_t(y) == rows.size()) rows.push_back(x);
  }
  return rows;
}

void draw_disc(Overlay& overlay, const TrackPixel& at, const std::vector<std::int64_t>& rows,
               const TrackColour& colour, std::uint8_t share) {
  for (std::size_t y = 0; y < rows.size(); ++y)
    for (const std::int64_t row : {at.y - std::int64_t(y), at.y + std::int64_t(y)})
      overlay.span(row, at.x - rows[y], at.x + rows[y], colour, share);
}

// From the point's own place backwards.
class WayBack {
 public:
  WayBack(const blocks::Tracks& tracks, std::int64_t t, std::int64_t track, std::int64_t earlier) {
    for (std::int64_t i = t; i >= std::max<std::int64_t>(t - earlier, 0); --i)
      pixels_.push_back(track_pixel(tracks.places[tracks.index(i, track)]));
    for (std::size_t i = 0; i + 1 < pixels_.size(); ++i) {
      const auto dx = double(pixels_[i + 1].x - pixels_[i].x),
                 dy = double(pixels_[i + 1].y - pixels_[i].y);
      lengths_.push_back(std::sqrt(dx * dx + dy * dy));
      whole_ += lengths_.back();
    }
  }
  // Two columns at each pixel's length of the way.
  void draw(Overlay& overlay, const TrackStyle& style, const TrackColour& colour) const {
    if (whole_ == 0) return;
    double before = 0;
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      const TrackPixel from = pixels_[i], to = pixels_[i + 1];
      const auto steps = std::max<std::int64_t>(std::int64_t(lengths_[i]), 1);
      for (std::int64_t step = 0; step < steps; ++step) {
        const double left = 1 - (before + double(step) / double(steps) * lengths_[i]) / whole_;
        const auto share = std::uint8_t(255 * left * style.opacity);
        const auto part = [&](std::int64_t a, std::int64_t b) {
          return std::int64_t(double(a) + double((b - a) * step) / double(steps));
        };
        const std::int64_t x = part(from.x, to.x), y = part(from.y, to.y);
        const auto wide = std::max<std::int64_t>(std::int64_t(double(style.line_width) * left), 1);
        for (std::int64_t row = y - (wide - 1) / 2; row <= y + wide / 2; ++row)
          overlay.span(row, x, x + 1, colour, share);
      }
      before += lengths_[i];
    }
  }

 private:
  std::vector<TrackPixel> pixels_;
  std::vector<double> lengths_;
  double whole_ = 0;
};

}  // namespace

void draw_tracks(const blocks::Tracks& tracks, std::int64_t t, const TrackStyle& style,
                 const float* picture, const Canvas& to, std::int64_t at,
                 std::pmr::memory_resource& memory) {
  const Extent& extent = to.extent();
  std::pmr::vector<double> numbers(std::size_t(extent.picture()), &memory);
  std::transform(picture, picture + extent.picture(), numbers.begin(), [](float number) {
    return std::floor(double(std::clamp(number * 255.0f, 0.0f, 255.0f)));
  });
  const std::vector<std::int64_t> disc = disc_rows(style.radius);
  Overlay discs(extent, memory), ways(extent, memory);
  for (std::int64_t n = 0; n < tracks.count; ++n) {
    if (!tracks.seen[tracks.index(t, n)]) continue;
    const TrackColour& colour = kColoursOfTracks[std::size_t(n) % std::size(kColoursOfTracks)];
    draw_disc(discs, track_pixel(tracks.places[tracks.index(t, n)]), disc, colour,
              std::uint8_t(255 * style.opacity));
    WayBack(tracks, t, n, style.earlier).draw(ways, style, colour);
  }
  discs.lay_over(numbers);
  ways.lay_over(numbers);
  std::ranges::transform(numbers, to.row(at, 0),
                         [](double number) { return float(std::floor(number)) / 255.0f; });
}

}  // namespace heddle::image
