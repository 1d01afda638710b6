// plugins/denoisers/unet_adapter.h - T2I-Adapters (Mou et al. 2023): small models that see a hint
// alone, the same at all steps, and give residuals for a few stages of a UNet's way down.
//
// Input    hint              (1|B, C, 8 H, 8 W)  loop-invariant  C: 3, or 1: its brightness. Sides
//                                                are completed to the setting "hint_multiple"
// Outputs  control.input.<i>, control.middle     as of unet_control.h
//
// Full and light ones for Stable Diffusion 1.x: the last stage of each level. Full ones for SDXL:
// the second level's first stage, the last ones of the second and third, and the middle. Files have
// the publisher's names ("body.0.block1.weight") or those of diffusers
// ("adapter.body.0.resnets.0.block1.weight").
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "control.h"

namespace heddle::denoisers {

struct UnetAdapter {
  static constexpr Family family{"unet-adapter", kControlRole, 1,
                                 "T2I-Adapters of Stable Diffusion 1.x and SDXL"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// hint (1|B, C, H, W) -> (1|B, H / factor, W / factor, C factor factor): each square of pixels is
// one, with its rows behind each other.
struct UnetAdapterIn {
  static constexpr Info info{"unet.adapter_in", 1,  "T2I-Adapter's hint",
                             "blocks/unet",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<std::int64_t> factor{"factor", Widget{.number = 8}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hint, factor, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> (B, h / step, w / step, D), by a filter of one or 3x3 pixels.
struct UnetAdapterFilter {
  static constexpr Info info{"unet.adapter_filter", 1,  "T2I-Adapter's filter",
                             "blocks/unet",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> step{"step", Widget{.number = 1}};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, step, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> (B, (h + 1) / 2, (w + 1) / 2, C): means of 2x2. An odd side begins with a
// row of zeros, which counts, as in ComfyUI.
struct UnetAdapterHalve {
  static constexpr Info info{"unet.adapter_halve", 1,  "T2I-Adapter's means of four",
                             "blocks/unet",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> the same with what two filters make of it added.
struct UnetAdapterResnet {
  static constexpr Info info{"unet.adapter_resnet", 1,  "T2I-Adapter's residual block",
                             "blocks/unet",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, first, first_bias, second, second_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> the same in f32.
struct UnetAdapterOut {
  static constexpr Info info{"unet.adapter_out", 1,  "T2I-Adapter's residual",
                             "blocks/unet",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Output<Tensor> out{"residual"};
  static constexpr auto ports = heddle::ports(hidden, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
