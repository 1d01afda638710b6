#include "plugins/image/pose_draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "plugins/image/pose_polygons.h"

namespace heddle::image {
namespace {

constexpr PoseColour kJointColours[] = {
    {255, 0, 0}, {255, 85, 0}, {255, 170, 0}, {255, 255, 0}, {170, 255, 0}, {85, 255, 0},
    {0, 255, 0}, {0, 255, 85}, {0, 255, 170}, {0, 255, 255}, {0, 170, 255}, {0, 85, 255},
    {0, 0, 255}, {85, 0, 255}, {170, 0, 255}, {255, 0, 255}, {255, 0, 170}, {255, 0, 85}};
constexpr PoseColour kHandDots{0, 0, 255}, kFaceDots{255, 255, 255};
constexpr int kDotRadius = 4;

struct Limb {
  std::size_t from, to;
};
// Those of the head last.
constexpr Limb kLimbs[] = {{1, 2}, {1, 5},  {2, 3},   {3, 4},  {5, 6},   {6, 7},
                           {1, 8}, {8, 9},  {9, 10},  {1, 11}, {11, 12}, {12, 13},
                           {1, 0}, {0, 14}, {14, 16}, {0, 15}, {15, 17}};
constexpr std::size_t kBodyLimbs = 12;
constexpr std::size_t kNeck = 1;
constexpr int kFingers = 5, kFingerBones = 4;

bool is_of_head(std::size_t joint) { return joint == 0 || joint >= 14; }

bool is_seen(const PosePoint& point, const PoseStyle& style) {
  return !(point.score < style.threshold);
}

void draw_disk(PoseCanvas& canvas, std::int64_t x, std::int64_t y, double radius,
               const PoseColour& colour) {
  const auto around = std::int64_t(std::ceil(radius));
  for (std::int64_t down = -around; down <= around; ++down)
    for (std::int64_t across = -around; across <= around; ++across)
      if (double(across * across + down * down) <= radius * radius &&
          canvas.holds(x + across, y + down))
        canvas.put(x + across, y + down, colour);
}

// Where the middle is in the picture; inner: not in the first row and column either.
void draw_dot(PoseCanvas& canvas, const PosePoint& point, int radius, const PoseColour& colour,
              bool inner) {
  const auto x = std::int64_t(point.x), y = std::int64_t(point.y);
  if (canvas.holds(x, y) && (!inner || (x > 0 && y > 0))) draw_disk(canvas, x, y, radius, colour);
}

// Bresenham's line, with a disk at each of its points.
void draw_bone(PoseCanvas& canvas, const PosePoint& from, const PosePoint& to,
               const PoseColour& colour) {
  constexpr double kRadius = 1.5;  // of a line that is two pixels thick
  std::int64_t x = std::int64_t(from.x), y = std::int64_t(from.y);
  const auto last_x = std::int64_t(to.x), last_y = std::int64_t(to.y);
  for (const std::int64_t place : {x, y, last_x, last_y})
    if (place <= 0) return;
  if (!canvas.holds(x, y) || !canvas.holds(last_x, last_y)) return;
  const std::int64_t across = std::abs(last_x - x), down = std::abs(last_y - y),
                     right = x < last_x ? 1 : -1, below = y < last_y ? 1 : -1;
  std::int64_t error = across - down;
  while (true) {
    draw_disk(canvas, x, y, kRadius, colour);
    if (x == last_x && y == last_y) return;
    const std::int64_t twice = 2 * error;
    if (twice > -down) error -= down, x += right;
    if (twice < across) error += across, y += below;
  }
}

// Of full saturation and value, at a part of the circle of hues.
PoseColour hue(double part) {
  const double sector = part * 6;
  const auto begin = int(sector);
  const double up = sector - begin, down = 1 - up;
  const double rgb[][3] = {{1, up, 0},   {down, 1, 0}, {0, 1, up},
                           {0, down, 1}, {up, 0, 1},   {1, 0, down}};
  PoseColour colour;
  for (std::size_t i = 0; i < 3; ++i) colour[i] = std::uint8_t(rgb[begin % 6][i] * 255);
  return colour;
}

void draw_hand(PoseCanvas& canvas, const std::array<PosePoint, 21>& hand, const PoseStyle& style) {
  for (int bone = 0; bone < kFingers * kFingerBones; ++bone) {
    const auto to = std::size_t(bone) + 1;
    const std::size_t from = bone % kFingerBones == 0 ? 0 : to - 1;
    if (is_seen(hand[from], style) && is_seen(hand[to], style))
      draw_bone(canvas, hand[from], hand[to], hue(double(bone) / (kFingers * kFingerBones)));
  }
  for (const PosePoint& point : hand)
    if (is_seen(point, style)) draw_dot(canvas, point, kDotRadius, kHandDots, true);
}

void draw_limbs(PoseCanvas& canvas, const PosePerson& person, const PoseStyle& style) {
  std::vector<PosePolygon> polygons;
  for (std::size_t i = 0; i < std::size(kLimbs); ++i) {
    if (!(i < kBodyLimbs ? style.body : style.head)) continue;
    const PosePoint &a = person.body[kLimbs[i].from], &b = person.body[kLimbs[i].to];
    if (!is_seen(a, style) || !is_seen(b, style)) continue;
    const float across = a.x - b.x, down = a.y - b.y;
    const double length = std::sqrt(double(down * down + across * across));
    if (length < 1) continue;
    const double degrees = std::atan2(double(down), double(across)) * 180 / std::numbers::pi;
    polygons.push_back(
        {ellipse_points(std::int64_t((a.x + b.x) / 2), std::int64_t((a.y + b.y) / 2),
                        std::int64_t(length / 2), style.stick_width, std::int64_t(degrees)),
         kJointColours[i]});
  }
  fill_polygons(canvas, polygons);
}

}  // namespace

void draw_person(PoseCanvas& canvas, const PosePerson& person, const PoseStyle& style) {
  draw_limbs(canvas, person, style);
  for (std::size_t i = 0; i < person.body.size(); ++i) {
    const bool is_wanted = is_of_head(i) ? style.head : style.body || (style.head && i == kNeck);
    if (is_wanted && is_seen(person.body[i], style))
      draw_dot(canvas, person.body[i], kDotRadius, kJointColours[i], false);
  }
  if (style.feet)
    for (std::size_t i = 0; i < person.feet.size(); ++i)
      if (is_seen(person.feet[i], style))
        draw_dot(canvas, person.feet[i], kDotRadius, kJointColours[i], false);
  if (style.hands) {
    draw_hand(canvas, person.right_hand, style);
    draw_hand(canvas, person.left_hand, style);
  }
  if (style.face)
    for (const PosePoint& point : person.face)
      if (is_seen(point, style)) draw_dot(canvas, point, style.face_point_size, kFaceDots, true);
}

}  // namespace heddle::image
