#include "plugins/image/pose_polygons.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle::image {
namespace {

struct PoseBox {
  std::int64_t left, top, right, bottom;  // [left, right), [top, bottom)
};

// From one point of a polygon to the next. Numbers are relative to the box that is drawn in.
struct PoseEdge {
  PoseEdge(const PosePixel& a, const PosePixel& b)
      : x0(int(a.x)),
        y0(int(a.y)),
        left(int(std::min(a.x, b.x))),
        right(int(std::max(a.x, b.x))),
        top(int(std::min(a.y, b.y))),
        bottom(int(std::max(a.y, b.y))),
        slope(a.y == b.y ? 0.0f : float(b.x - a.x) / float(b.y - a.y)) {}

  bool is_flat() const { return top == bottom; }
  bool crosses(int y) const { return y >= top && y <= bottom; }
  float at(int y) const { return float(y - y0) * slope + float(x0); }

  int x0, y0, left, right, top, bottom;
  float slope;
};

// Of Pillow's: halves go away from 0, and towards it.
int rounded_up(float x) {
  return int(x >= 0 ? std::floor(x + 0.5f) : -std::floor(std::fabs(x) + 0.5f));
}
int rounded_down(float x) {
  return int(x >= 0 ? std::ceil(x - 0.5f) : -std::ceil(std::fabs(x) - 0.5f));
}

// Fills one polygon, line by line, between each two crossings.
class PoseFiller {
 public:
  PoseFiller(PoseCanvas& canvas, const PoseBox& box, const PosePolygon& polygon)
      : canvas_(canvas), box_(box), colour_(polygon.colour) {
    const std::vector<PosePixel>& points = polygon.points;
    std::vector<PosePixel> own;
    for (const PosePixel& point : points) own.push_back({point.x - box.left, point.y - box.top});
    for (std::size_t i = 0; i + 1 < own.size(); ++i) all_.emplace_back(own[i], own[i + 1]);
    if (own.back() != own.front()) all_.emplace_back(own.back(), own.front());
    for (const PoseEdge& edge : all_) {
      first_ = std::min(first_, edge.top);
      last_ = std::max(last_, edge.bottom);
      if (!edge.is_flat()) steep_.push_back(edge);
    }
    first_ = std::max(first_, 0);
    last_ = std::min(last_, int(box.bottom - box.top));
  }

  void run() {
    for (int y = first_; y <= last_; ++y) {
      std::vector<float> places = crossings(y);
      std::ranges::sort(places);
      for (std::size_t i = 1; i < places.size(); i += 2)
        fill(y, rounded_up(places[i - 1]), rounded_down(places[i]));
      for (const PoseEdge& edge : all_)
        if (edge.is_flat() && edge.top == y) fill(y, edge.left, edge.right);
    }
  }

 private:
  std::vector<float> crossings(int y) const {
    std::vector<float> made;
    for (std::size_t i = 0; i < steep_.size(); ++i) {
      const PoseEdge& edge = steep_[i];
      if (!edge.crosses(y)) continue;
      made.push_back(edge.at(y));
      if (y == edge.bottom && y < last_)
        made.push_back(made.back());
      else if (edge.slope != 0 && made.size() % 2 == 1 && std::round(made.back()) == made.back())
        made.back() = joined(i, y, made.back());
    }
    return made;
  }
  // Where two edges that go the same way meet in a corner, it reaches as far as the next line.
  float joined(std::size_t index, int y, float place) const {
    const PoseEdge& edge = steep_[index];
    const int beside = y + (y == last_ ? -1 : 1);
    for (std::size_t k = 0; k < index; ++k) {
      const PoseEdge& other = steep_[k];
      const bool turns = edge.slope > 0 ? other.slope <= 0 : other.slope >= 0;
      if (turns || place != other.at(y) || !other.crosses(beside)) continue;
      const float one = edge.at(beside), two = other.at(beside);
      if (place > one + 1 && place > two + 1) return std::round(std::max(one, two)) + 1;
      if (place < one - 1 && place < two - 1) return std::round(std::min(one, two)) - 1;
      return place;
    }
    return place;
  }
  void fill(int y, int left, int right) {
    if (y >= box_.bottom - box_.top) return;
    const std::int64_t end = std::min<std::int64_t>(right + 1, box_.right - box_.left);
    for (std::int64_t x = std::max(left, 0); x < end; ++x)
      canvas_.put(box_.left + x, box_.top + y, colour_);
  }

  PoseCanvas& canvas_;
  const PoseBox& box_;
  const PoseColour& colour_;
  std::vector<PoseEdge> all_, steep_;
  int first_ = 1 << 30, last_ = 0;
};

}  // namespace

std::vector<PosePixel> ellipse_points(std::int64_t x, std::int64_t y, std::int64_t long_half,
                                      std::int64_t short_half, std::int64_t degrees) {
  constexpr int kWhole = 360, kStep = 4;
  constexpr double kRadians = std::numbers::pi / 180;
  const double a = double(long_half) + 0.5, b = double(short_half) + 0.5,
               turn = double((degrees % kWhole + kWhole) % kWhole) * kRadians,
               cosine = std::cos(turn), sine = std::sin(turn);
  std::vector<PosePixel> points;
  for (int step = 0; step <= kWhole; step += kStep) {
    const double along = a * std::cos(double(step) * kRadians),
                 beside = b * std::sin(double(step) * kRadians);
    const PosePixel point{std::int64_t(std::nearbyint(double(x) + along * cosine - beside * sine)),
                          std::int64_t(std::nearbyint(double(y) + along * sine + beside * cosine))};
    if (points.empty() || points.back() != point) points.push_back(point);
  }
  if (points.size() < 2) return {{x, y}, {x, y}};
  return points;
}

void fill_polygons(PoseCanvas& canvas, const std::vector<PosePolygon>& polygons) {
  PoseBox box{canvas.width, canvas.height, 0, 0};
  for (const PosePolygon& polygon : polygons)
    for (const PosePixel& point : polygon.points)
      box = {std::min(box.left, point.x), std::min(box.top, point.y),
             std::max(box.right, point.x + 1), std::max(box.bottom, point.y + 1)};
  box = {std::max<std::int64_t>(box.left, 0), std::max<std::int64_t>(box.top, 0),
         std::min(box.right, canvas.width), std::min(box.bottom, canvas.height)};
  if (box.right <= box.left || box.bottom <= box.top) return;
  for (const PosePolygon& polygon : polygons) PoseFiller(canvas, box, polygon).run();
}

}  // namespace heddle::image
