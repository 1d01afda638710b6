#include "photo_maker.h"

#include <heddle/ops.hpp>

#include "clip_vision.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

bool is_second_version(const Checkpoint& file) {
  return blocks::layer_count(file, "qformer_perceiver.perceiver_resampler.layers.") > 0 ||
         file.has("qformer_perceiver.token_proj.0.weight");
}

// x (1, n): a norm, two matrices with GELU between them.
Tensor photo_mlp(Context& ctx, const Tensor& x, const Weight& norm, const Weight& norm_bias,
                 const Weight& up, const Weight& up_bias, const Weight& down,
                 const Weight& down_bias) {
  using B = PhotoMakerFuse;
  const Tensor normed = ctx.make(x.shape());
  ops::layer_norm_into(ctx, x, ctx[norm], ctx[norm_bias], ctx[B::eps], normed);
  const Tensor raised = ops::linear(ctx, normed, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  return blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias]);
}

}  // namespace

void PhotoMakerFuse::execute(Context& ctx) {
  const Tensor told = ops::cast(ctx, ctx[row], HEDDLE_F32);
  const std::int64_t width = told.size(1);
  const Tensor seen = blocks::wide_linear(ctx, ops::cast(ctx, ctx[pooled], ctx.compute()),
                                          ctx[proj], {}),
               both = ctx.make({1, 2 * width}, HEDDLE_F32);
  if (seen.size(1) != width)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the text's states are " + std::to_string(width) + " wide, PhotoMaker reads " +
                    std::to_string(seen.size(1)) + ". Encode the text with the CLIP of SDXL.");
  ops::copy_into(ctx, told, both.slice(1, 0, width));
  ops::copy_into(ctx, seen, both.slice(1, width, 2 * width));
  Tensor x = ops::add(
      ctx, photo_mlp(ctx, both, norm1, norm1_bias, up1, up1_bias, down1, down1_bias), told);
  x = ops::add(ctx, photo_mlp(ctx, x, norm2, norm2_bias, up2, up2_bias, down2, down2_bias), x);
  const Tensor made = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, ctx[norm], ctx[norm_bias], ctx[eps], made);
  ctx[out] = made;
}

int PhotoMaker::match(const Checkpoint& file, const Value&) {
  return file.has("fuse_module.mlp1.fc1.weight") ? 100 : 0;
}

void PhotoMaker::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  using B = PhotoMakerFuse;
  if (is_second_version(file))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() +
                    ": this is PhotoMaker's version 2, which reads what InsightFace "
                    "makes of a face. Take photomaker-v1.bin.");
  const ClipTower tower = add_clip_tower(file, config, graph);
  const std::int64_t width = file.size("fuse_module.layer_norm.weight", 0),
                     first = file.size("visual_projection.weight", 0);
  if (first <= 0 || first >= width)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": visual_projection has " + std::to_string(first) +
                    " rows of a text's width of " + std::to_string(width) +
                    ", and visual_projection_2 has to make the rest. The file is damaged.");
  Block block = graph.add<B>("fuse");
  block.link(B::pooled, tower.pooled).link(B::row, graph.input("row", HEDDLE_INPUT_LOOP_INVARIANT));
  blocks::Slots slots(file, block, "fuse");
  slots.fill(
      B::proj,
      {{"visual_projection.weight", 0, first}, {"visual_projection_2.weight", 0, width - first}},
      {width, tower.width});
  const auto both = [&](const Weight& weight, const Weight& bias, const std::string& module,
                        const Shape& shape) {
    slots.fill(weight, "fuse_module." + module + ".weight", shape);
    slots.fill(bias, "fuse_module." + module + ".bias", {shape.front()});
  };
  const auto rows = [&](const char* matrix) {
    return file.size("fuse_module." + std::string(matrix) + ".fc1.weight", 0);
  };
  both(B::norm1, B::norm1_bias, "mlp1.layernorm", {2 * width});
  both(B::up1, B::up1_bias, "mlp1.fc1", {rows("mlp1"), 2 * width});
  both(B::down1, B::down1_bias, "mlp1.fc2", {width, rows("mlp1")});
  both(B::norm2, B::norm2_bias, "mlp2.layernorm", {width});
  both(B::up2, B::up2_bias, "mlp2.fc1", {rows("mlp2"), width});
  both(B::down2, B::down2_bias, "mlp2.fc2", {width, rows("mlp2")});
  both(B::norm, B::norm_bias, "layer_norm", {width});
  graph.output("fused", block[B::out]);
  graph.setting("family", "photomaker");
  graph.setting("size", tower.size);
  graph.setting("width", width);
}

}  // namespace heddle::encoders
