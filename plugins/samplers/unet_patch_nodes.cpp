#include "unet_patch_nodes.h"

#include <algorithm>

#include "guide.h"
#include "plugins/blocks/unet_config.h"

namespace heddle::samplers {
namespace {

template <class Node>
Value free_u(Context& ctx, bool by_mean) {
  return Record()
      .set("kind", value_of("free_u"))
      .set("by_mean", value_of(by_mean))
      .set("b1", value_of(double(ctx[Node::b1])))
      .set("b2", value_of(double(ctx[Node::b2])))
      .set("s1", value_of(double(ctx[Node::s1])))
      .set("s2", value_of(double(ctx[Node::s2])))
      .value();
}

}  // namespace

Value with_unet_patch(Context& ctx, const Value& model, const Value& patch, const char* node) {
  const Value config = blocks::unet_config_with(model, patch, node);
  return blocks::with_unet_config(rebuilt_model(ctx, model, config), model, config);
}

void FreeU::execute(Context& ctx) {
  ctx[out] = with_unet_patch(ctx, ctx[model], free_u<FreeU>(ctx, false), info.type);
}

void FreeUV2::execute(Context& ctx) {
  ctx[out] = with_unet_patch(ctx, ctx[model], free_u<FreeUV2>(ctx, true), info.type);
}

void HyperTile::execute(Context& ctx) {
  constexpr std::int64_t kLeast = 32, kPixels = 8;  // of a cell of the latent
  const Value patch = Record()
                          .set("kind", value_of("tiles"))
                          .set("tile", value_of(std::max(kLeast, ctx[tile_size]) / kPixels))
                          .set("swap", value_of(std::int64_t(ctx[swap_size])))
                          .set("depth", value_of(std::int64_t(ctx[max_depth])))
                          .set("deepens", value_of(bool(ctx[scale_depth])))
                          .value();
  ctx[out] = with_unet_patch(ctx, ctx[model], patch, info.type);
}

void PatchModelAddDownscale::execute(Context& ctx) {
  const Value patch = Record()
                          .set("kind", value_of(blocks::kShrink))
                          .set("stage", value_of(std::int64_t(ctx[block_number])))
                          .set("factor", value_of(double(ctx[downscale_factor])))
                          .set("start_percent", value_of(double(ctx[start_percent])))
                          .set("end_percent", value_of(double(ctx[end_percent])))
                          .set("is_behind", value_of(bool(ctx[downscale_after_skip])))
                          .set("down", value_of(std::string(ctx[downscale_method])))
                          .set("up", value_of(std::string(ctx[upscale_method])))
                          .value();
  ctx[out] = with_unet_patch(ctx, ctx[model], patch, info.type);
}

void TomePatchModel::execute(Context& ctx) {
  const Value patch =
      Record().set("kind", value_of("merged")).set("ratio", value_of(double(ctx[ratio]))).value();
  ctx[out] = with_unet_patch(ctx, ctx[model], patch, info.type);
}

void SelfAttentionGuidance::execute(Context& ctx) {
  const Value from = ctx[model];
  for (const PatchChoice& patch : patches_of(model_settings(from)))
    if (patch.patch->looks_again)
      throw Error(HEDDLE_UNSUPPORTED,
                  "the model is guided by its self-attention already. Leave out one of the two.");
  const Value told = Record().set("kind", value_of(kAttended)).value();
  ctx[out] = with_patch(with_unet_patch(ctx, from, told, info.type), "self_attention",
                        {{{"scale", ctx[scale]}, {"blur_sigma", ctx[blur_sigma]}}, {}});
}

}  // namespace heddle::samplers
