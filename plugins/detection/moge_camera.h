// plugins/detection/moge_camera.h - the camera that looks at points as MoGe predicts them: up to a
// shift of all depths (Wang et al. 2024, as ComfyUI has it). Host memory, one thread.
#pragma once

#include <memory_resource>
#include <optional>

#include "plugins/blocks/resample.h"

namespace heddle::detection {

// In units of half the picture's diagonal.
struct MogeCamera {
  double focal, shift;
};

// points (H, W, 3), of which those count that are seen (H, W). By up to 64 x 64 of them, the focal
// length and the shift that they fit best; with a given focal length the shift. Of fewer than two
// points 1 and 0. Not a number where points are not finite.
MogeCamera camera_of(const float* points, const std::uint8_t* seen, const blocks::GridSize& size,
                     std::optional<double> focal, std::pmr::memory_resource& memory);

// The focal length of a horizontal field of view.
double focal_of_fov(double degrees, const blocks::GridSize& size);

// Over the height; over the width it is this divided by the aspect.
double focal_of_height(double focal, const blocks::GridSize& size);

}  // namespace heddle::detection
