// plugins/denoisers/unet_heatmaps.h - SDPose's head (Liang et al. 2025): heatmaps of keypoints,
// made of what a UNet of Lotus has before it makes a latent of it. The head's tensors are called
// "heatmap_head." beside the UNet's. Stateless, any thread.
#pragma once

#include <heddle/node.hpp>

#include <optional>

#include "unet_names.h"

namespace heddle::denoisers {

// hidden (B, H, W, C) -> heatmaps (B, 2 H, 2 W, K) f32: a transposed convolution of 4x4, twice as
// large, and two of 1x1; behind the first two each channel of a picture is normalised, and a SiLU.
struct UnetHeatmaps {
  static constexpr Info info{"unet.heatmaps", 1,  "Heatmaps of keypoints",
                             "blocks/unet",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight up{"up.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight last_bias{"last.bias"};
  static constexpr Output<Tensor> out{"heatmaps"};
  static constexpr auto ports = heddle::ports(hidden, up, conv, conv_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// The head of a file that has one.
class UnetHeatmapHead {
 public:
  static std::optional<UnetHeatmapHead> find(const Checkpoint& file, const UnetNames& names);

  // The number of the stage upwards before which it reads the latent. Throws where none reads as
  // many channels.
  std::size_t stage() const;
  // Tells the whole model's readers of the part that makes heatmaps, config "heatmaps".
  void tell(const Value& config, Blocks& graph) const;
  Source add(const Source& hidden, Blocks& graph) const;

 private:
  std::int64_t keypoints() const;
  UnetHeatmapHead(const Checkpoint& file, const UnetNames& names);

  const Checkpoint& file_;
  const UnetNames& names_;
  std::string at_;
};

}  // namespace heddle::denoisers
