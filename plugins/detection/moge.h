// plugins/detection/moge.h - MoGe 1 and 2: where what a picture shows lies before the camera, by
// the names of their published checkpoints or those that ComfyUI gives DINOv2
// ("encoder.layer.").
//
//   picture (B, 14 R, 14 C, 3) f32, 0 to 1; row_ids, row_shares (4, R), column_ids, column_shares
//   (4, C): how the table of places becomes one of R x C (dino_blocks.h); span (2) f32: width and
//   height over the picture's diagonal
//   -> points (B, H, W, 3): x and y over depth, and the logarithm of depth, up to a shift of all
//      depths and a factor; mask (B, H, W, 1): there is something where it is above 0 (before a
//      sigmoid), of version 1 above 0.5. Of version 2 H is 16 R, W 16 C, and there are normal
//      (B, H, W, 3), of any length, where the file has a head for it, and scale (B, 1, 1), the
//      logarithm of meters of a unit. Version 1 also reads final_row_ids, final_row_shares (2, H),
//      final_column_ids, final_column_shares (2, W), the linear taps of the size of its last
//      layers.
// All inputs are loop-invariant. Settings: family "moge", version, table (n: the table of places
// has n x n), patch (14), growth (16: H over R; 8: of version 1's grid before
// those taps), has_normal.
//
// Source of the architecture: Wang et al. 2024 (MoGe), 2025 (MoGe-2), and ComfyUI. Sizes are read
// off the tensors; heads have 64 numbers. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::detection {

struct Moge {
  static constexpr Family family{"moge", "geometry_estimator", 1,
                                 "MoGe: depths and normals of pictures"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::detection
