// plugins/denoisers/unet_free.h - FreeU (https://arxiv.org/abs/2309.11497) as ComfyUI has it: where
// a stage of the way up reads one of the way down, half of the channels of the former are made
// larger, and the lowest waves of the latter are scaled. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_patches.h"

namespace heddle::denoisers {

// hidden (B, H, W, C), skip (B, H, W, C') -> both, changed.
//
// hidden: the first C / 2 channels times b; by_mean: times 1 + (b - 1) m, where m (B, H, W) is the
// mean over the channels, brought from its least and largest value in the picture to [0, 1].
// skip: its waves of frequency 0 and -1 along both sides times s, of which the real part is taken.
// In f32, then rounded once.
struct UnetFree {
  static constexpr Info info{"unet.free",   1,  "UNet with FreeU",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> skip{"skip"};
  static constexpr Input<double> b{"b", Widget{.number = 1}};
  static constexpr Input<double> s{"s", Widget{.number = 1}};
  static constexpr Input<bool> by_mean{"by_mean", Widget{}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> skip_out{"skip"};
  static constexpr auto ports = heddle::ports(hidden, skip, b, s, by_mean, out, skip_out);
  static void execute(Context& ctx);
};

// What a stage of the way up reads; changed by add_free_u().
struct FreeUStage {
  Source &hidden, &skip;
};
// Blocks "<path>.<n>", one for each patch, where `hidden` has four times or twice the first stage's
// channels.
void add_free_u(const std::vector<FreeUPatch>& patches, const std::string& path,
                std::int64_t channels, std::int64_t first_channels, const FreeUStage& stage,
                Blocks& graph);

}  // namespace heddle::denoisers
