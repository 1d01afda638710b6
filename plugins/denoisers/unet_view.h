// Stable Zero123: states of a picture with numbers of a view behind them, which a matrix of the
// file brings to the width that the UNet's transformers read. Used while a model is built; one
// call's thread.
#pragma once

#include <optional>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::denoisers {

// context (B, T, W), or (B, T, C): those stay as they are -> context (B, T, C).
struct UnetView {
  static constexpr Info info{"unet.view",   1,  "UNet context of a view",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"context"};
  static constexpr auto ports = heddle::ports(context, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// The tensors "cc_projection.weight" and ".bias", which a loader joins to the UNet's.
inline constexpr const char* kViewProjection = "cc_projection.";

// The width of states with a view; 0: it reads none.
std::int64_t view_width(const Checkpoint& file);
// What the transformers read, `width` wide: the states themselves, or what the block "view" makes.
Source add_view(const Checkpoint& file, const Source& context, std::int64_t width, Blocks& graph);

}  // namespace heddle::denoisers
