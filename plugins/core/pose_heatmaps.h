// plugins/core/pose_heatmaps.h - keypoints of heatmaps, and OpenPose's lists of them. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/value.hpp>

namespace heddle::loaders {

inline constexpr std::int64_t kPosePoints = 133;  // of COCO-WholeBody

struct PoseKeypoint {
  float x = -1, y = -1, score = 0;
};

// Where a heatmap (height, width) of numbers is largest, and how large it is there, finer than its
// cells by a step of Newton's on the logarithm of the map, smoothed by a Gaussian (sigma 2); x and
// y in cells. Nothing above 0: (-1, -1). Source: DARK (Zhang et al. 2020), with the Gaussian's
// edges as SciPy has them.
PoseKeypoint peak_of(std::span<const float> heatmap, std::int64_t height, std::int64_t width);

// A person of kPosePoints points in pixels, as POSE_KEYPOINT has people: with a neck between the
// shoulders, which is there where both are more likely than 0.3.
Value person_of_points(const std::vector<PoseKeypoint>& points);

}  // namespace heddle::loaders
