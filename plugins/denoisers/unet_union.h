// plugins/denoisers/unet_union.h - what a ControlNet for several kinds of hints (ControlNet++,
// "union") has besides: which kind a hint is goes into the timestep's embedding, and moves what the
// filters make of it.
//
// Inputs   kinds   (N)  loop-invariant            f32: 1 for the kind of the hint, 0 for others
//          mode    (1)  loop-invariant, optional  i32: its number; without it the hint stays as it
//          is
//
// A hint is a sequence of one token, its mean with the kind's embedding, so that the attention of
// the layers between is what they make of the value alone.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::denoisers {

// kinds (N) -> (1, D) f32: each as waves, of all of which two layers make one embedding.
struct UnetUnionKinds {
  static constexpr Info info{"unet.union_kinds", 1,  "UNet ControlNet's kinds of hint",
                             "blocks/unet",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kinds{"kinds"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight out_weight{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight out_bias{"out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(kinds, in, in_bias, out_weight, out_bias, out);
  static void execute(Context& ctx);
};

// hint (1|B, h, w, C), mode (1) -> (1|B, 1, C): its mean with that row of the table.
struct UnetUnionFeature {
  static constexpr Info info{"unet.union_feature", 1,  "UNet ControlNet's hint as a token",
                             "blocks/unet",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<Tensor> mode{"mode", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight table{"table", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"feature"};
  static constexpr auto ports = heddle::ports(hint, mode, table, out);
  static void execute(Context& ctx);
};

// feature (B, 1, C) -> the same through a layer of a transformer.
struct UnetUnionLayer {
  static constexpr Info info{"unet.union_layer", 1,  "UNet ControlNet's layer of kinds",
                             "blocks/unet",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> feature{"feature"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight value{"value.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight value_bias{"value.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"feature"};
  static constexpr auto ports =
      heddle::ports(feature, eps, norm1, norm1_bias, value, value_bias, proj, proj_bias, norm2,
                    norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hint (1|B, h, w, C), feature (1|B, 1, C), mode (1) -> hint plus what a layer makes of the
// feature.
struct UnetUnionHint {
  static constexpr Info info{"unet.union_hint", 1,  "UNet ControlNet's hint of a kind",
                             "blocks/unet",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<Tensor> feature{"feature"};
  static constexpr Input<Tensor> mode{"mode", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hint"};
  static constexpr auto ports = heddle::ports(hint, feature, mode, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// Adds them to a ControlNet's graph. Used while it is built; one call's thread.
class UnetUnion {
 public:
  // How many kinds the file knows; nothing when it is none of these.
  static std::optional<std::int64_t> find(const Checkpoint& file, const std::string& prefix);
  // All outlive this object.
  UnetUnion(const Checkpoint& file, std::int64_t kinds, const std::string& prefix, Blocks& graph)
      : file_(file), kinds_(kinds), prefix_(prefix), graph_(graph) {}

  Source embedded_kinds(std::int64_t vector) const;
  Source changed_hint(const Source& hint, std::int64_t channels) const;

 private:
  Source add_layer(int index, const Source& feature, std::int64_t channels) const;

  const Checkpoint& file_;
  const std::int64_t kinds_;
  const std::string& prefix_;
  Blocks& graph_;
};

}  // namespace heddle::denoisers
