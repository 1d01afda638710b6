#include "pose_heatmaps.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

namespace heddle::loaders {
namespace {

constexpr std::int64_t kBorder = 5, kReach = 8;  // cells of zeros around, and that a Gaussian sees
constexpr double kSigma = 2;

// The place that stands for one beyond an edge: (d c b a | a b c d | d c b a).
std::int64_t mirrored(std::int64_t at, std::int64_t size) {
  const std::int64_t turn = ((at % (2 * size)) + 2 * size) % (2 * size);
  return turn < size ? turn : 2 * size - 1 - turn;
}

// Smooths a line of numbers that are `step` apart.
void smooth_line(float* line, std::int64_t size, std::int64_t step) {
  static const std::vector<double> shares = [] {
    std::vector<double> made;
    double sum = 0;
    for (std::int64_t i = -kReach; i <= kReach; ++i) {
      made.push_back(std::exp(-0.5 / (kSigma * kSigma) * double(i * i)));
      sum += made.back();
    }
    for (double& share : made) share /= sum;
    return made;
  }();
  std::vector<double> around(std::size_t(size + 2 * kReach));
  for (std::int64_t i = -kReach; i < size + kReach; ++i)
    around[std::size_t(i + kReach)] = line[mirrored(i, size) * step];
  for (std::int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (std::int64_t tap = 0; tap <= 2 * kReach; ++tap)
      sum += shares[std::size_t(tap)] * around[std::size_t(i + tap)];
    line[i * step] = float(sum);
  }
}

// The map smoothed, with a border.
std::vector<float> smoothed(std::span<const float> heatmap, std::int64_t height,
                            std::int64_t width) {
  const std::int64_t rows = height + 2 * kBorder, columns = width + 2 * kBorder;
  std::vector<float> made(std::size_t(rows * columns));
  for (std::int64_t y = 0; y < height; ++y)
    std::copy_n(heatmap.data() + y * width, width, made.data() + (y + kBorder) * columns + kBorder);
  for (std::int64_t x = 0; x < columns; ++x) smooth_line(made.data() + x, rows, columns);
  for (std::int64_t y = 0; y < rows; ++y) smooth_line(made.data() + y * columns, columns, 1);
  return made;
}

// How far from its cell the peak of three times three logarithms is.
std::array<float, 2> newton_step(const std::array<std::array<float, 3>, 3>& near) {
  const float x = 0.5f * (near[1][2] - near[1][0]), y = 0.5f * (near[2][1] - near[0][1]),
              middle = near[1][1];
  const float eps = FLT_EPSILON, xx = near[1][2] - 2 * middle + near[1][0] + eps,
              yy = near[2][1] - 2 * middle + near[0][1] + eps,
              xy = 0.5f * (near[2][2] - near[1][2] - near[2][1] + middle + middle - near[1][0] -
                           near[0][1] + near[0][0]);
  const double area = double(xx) * yy - double(xy) * xy;
  if (area == 0) return {0, 0};
  return {float((double(yy) * x - double(xy) * y) / area),
          float((double(xx) * y - double(xy) * x) / area)};
}

}  // namespace

PoseKeypoint peak_of(std::span<const float> heatmap, std::int64_t height, std::int64_t width) {
  const auto best = std::ranges::max_element(heatmap);
  PoseKeypoint made{-1, -1, *best};
  if (!(made.score > 0)) return made;
  const std::int64_t place = best - heatmap.begin(), row = place / width, column = place % width;
  const std::vector<float> wide = smoothed(heatmap, height, width);
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return wide[std::size_t((y + kBorder) * (width + 2 * kBorder) + x + kBorder)];
  };
  float largest = at(0, 0);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) largest = std::max(largest, at(y, x));
  const float factor = largest > 0 ? made.score / largest : 1.0f;
  std::array<std::array<float, 3>, 3> near{};
  for (std::int64_t y = 0; y < 3; ++y)
    for (std::int64_t x = 0; x < 3; ++x) {
      constexpr float kLeast = 1e-3f, kMost = 50;
      const float number = at(std::clamp<std::int64_t>(row + y - 1, 0, height - 1),
                              std::clamp<std::int64_t>(column + x - 1, 0, width - 1));
      near[std::size_t(y)][std::size_t(x)] = std::log(std::clamp(number * factor, kLeast, kMost));
    }
  const std::array<float, 2> step = newton_step(near);
  made.x = float(column) - step[0];
  made.y = float(row) - step[1];
  return made;
}

Value person_of_points(const std::vector<PoseKeypoint>& points) {
  constexpr float kLikely = 0.3f;
  // Where OpenPose's points of the body stand among those of COCO, the neck being number 17.
  constexpr std::size_t kOrder[] = {0, 17, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3};
  constexpr std::size_t kNeck = 17, kLeft = 5, kRight = 6;
  std::vector<PoseKeypoint> all = points;
  const PoseKeypoint &left = points[kLeft], &right = points[kRight];
  const bool is_there = left.score > kLikely && right.score > kLikely;
  all.insert(all.begin() + kNeck, {(left.x + right.x) / 2, (left.y + right.y) / 2,
                                   is_there ? std::min(left.score, right.score) : 0.0f});
  std::vector<PoseKeypoint> ordered = all;
  for (std::size_t i = 0; i < std::size(kOrder); ++i) ordered[i] = all[kOrder[i]];
  const auto part = [&](std::size_t begin, std::size_t end, bool eyes = false) {
    constexpr std::size_t kFirstEye = 14;
    std::vector<Value> numbers;
    const auto add = [&](const PoseKeypoint& point) {
      for (const float number : {point.x, point.y, point.score})
        numbers.push_back(value_of(double(number)));
    };
    for (std::size_t i = begin; i < end; ++i) add(ordered[i]);
    for (std::size_t i = 0; eyes && i < 2; ++i) add(ordered[kFirstEye + i]);
    return list_of(numbers);
  };
  return Record()
      .set("pose_keypoints_2d", part(0, 18))
      .set("foot_keypoints_2d", part(18, 24))
      .set("face_keypoints_2d", part(24, 92, true))
      .set("hand_right_keypoints_2d", part(92, 113))
      .set("hand_left_keypoints_2d", part(113, 134))
      .value();
}

}  // namespace heddle::loaders
