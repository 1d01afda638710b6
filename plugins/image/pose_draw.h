// plugins/image/pose_draw.h - people as DWPose draws them: limbs as coloured ellipses, joints and
// landmarks as dots. Pure but for the canvas; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::image {

struct PosePoint {
  float x = 0, y = 0, score = 0;  // pixels
};

// OpenPose's points of a person: 18 of the body (nose, neck, right arm, left arm, right leg, left
// leg, eyes, ears), 6 of the feet, 68 of the face, 21 of each hand.
struct PosePerson {
  std::array<PosePoint, 18> body;
  std::array<PosePoint, 6> feet;
  std::array<PosePoint, 68> face;
  std::array<PosePoint, 21> right_hand, left_hand;
};

struct PoseStyle {
  bool body = true, hands = true, face = true, feet = false, head = true;
  int stick_width = 4, face_point_size = 3;  // half a limb's width, a dot's radius, in pixels
  float threshold = 0.3f;                    // points of a lower score are left out
};

using PoseColour = std::array<std::uint8_t, 3>;

// Red, green and blue of pixels, row by row; black at first.
struct PoseCanvas {
  PoseCanvas(std::int64_t height_, std::int64_t width_)
      : height(height_), width(width_), pixels(std::size_t(height_ * width_ * 3)) {}

  bool holds(std::int64_t x, std::int64_t y) const {
    return x >= 0 && y >= 0 && x < width && y < height;
  }
  void put(std::int64_t x, std::int64_t y, const PoseColour& colour) {
    std::uint8_t* const to = pixels.data() + 3 * (y * width + x);
    for (std::size_t i = 0; i < 3; ++i) to[i] = colour[i];
  }

  std::int64_t height, width;
  std::vector<std::uint8_t> pixels;
};

// Adds a person. Coordinates are within a million pixels. Source of the sizes, colours and order:
// ComfyUI, which fills limbs by Pillow's polygons.
void draw_person(PoseCanvas& canvas, const PosePerson& person, const PoseStyle& style);

}  // namespace heddle::image
