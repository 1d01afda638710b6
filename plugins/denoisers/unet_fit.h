// plugins/denoisers/unet_fit.h - pictures inside a UNet in another size: PatchModelAddDownscale
// ("deep shrink", https://github.com/kohya-ss/sd-scripts, as ComfyUI has it) makes what a stage of
// the way down gives smaller, so that a model draws the whole of a large picture as it was trained
// to, and on the way up what comes along is brought to the size of what it stands beside.
//
// Methods: "nearest-exact", "bilinear", "area", "bicubic" as PyTorch's interpolate() has them,
// corners not aligned and no antialiasing; "bislerp": along rows, then along columns, the channels
// of a pixel are a vector, whose direction and length change evenly between two pixels. Sums in
// f32, rounded once. The weights follow from the sizes, which are known when a model is traced:
// every row and column of the result is an op of its own. Blocks are pure; any thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_free.h"
#include "unet_patches.h"

namespace heddle::denoisers {

// hidden (B, H, W, C) -> hidden (B, h, w, C): sides times 1 / factor, rounded, halves to even.
// Throws invalid_argument where nothing is left of a side, and at a method that there is not.
struct UnetShrink {
  static constexpr Info info{"unet.shrink", 1,  "UNet picture made smaller",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> factor{"factor", Widget{.number = 1}};
  static constexpr Input<std::string> method{"method", {.text = "bicubic"}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, factor, method, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> hidden (B, H, W, C), the size of `like` (B, H, W, C').
struct UnetFit {
  static constexpr Info info{"unet.fit",    1,  "UNet picture in the size of another",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> like{"like", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::string> method{"method", {.text = "bicubic"}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, like, method, out);
  static void execute(Context& ctx);
};

// x (B, h, w, C) -> (B, height, width, C) by PyTorch's "nearest", whose cells begin at corners.
Tensor nearest_fit(Context& ctx, const Tensor& x, std::int64_t height, std::int64_t width);

// What stage `index` of the way down gives, in the sizes that patches make of it before or behind
// the place where the way up gets it. Blocks "shrink.<n>".
Source shrunk(const UnetPatches& patches, int index, bool is_behind, const Source& hidden,
              Blocks& graph);

// What patches make of what a stage of the way up reads, in their order: FreeU, and the first one
// that shrinks. Blocks "<path>.free.<n>", "<path>.fit".
void change_stage(const UnetPatches& patches, const std::string& path, std::int64_t channels,
                  std::int64_t first_channels, const FreeUStage& stage, Blocks& graph);

}  // namespace heddle::denoisers
