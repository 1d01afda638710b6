// plugins/image/pose_polygons.h - ellipses as polygons of whole pixels, filled as Pillow fills
// polygons. Pure but for the canvas; one thread.
#pragma once

#include <vector>

#include "plugins/image/pose_draw.h"

namespace heddle::image {

struct PosePixel {
  std::int64_t x, y;
  bool operator==(const PosePixel&) const = default;
};
struct PosePolygon {
  std::vector<PosePixel> points;
  PoseColour colour;
};

// Points each four degrees around an ellipse of these half axes, turned by whole degrees; two or
// more.
std::vector<PosePixel> ellipse_points(std::int64_t x, std::int64_t y, std::int64_t long_half,
                                      std::int64_t short_half, std::int64_t degrees);
// One after another.
void fill_polygons(PoseCanvas& canvas, const std::vector<PosePolygon>& polygons);

}  // namespace heddle::image
