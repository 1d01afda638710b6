#include "gemma3_vision_model.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <heddle/batch_ops.hpp>

#include "language_writing_blocks.h"
#include "patch_sums.h"
#include "plugins/blocks/slots.h"
#include "siglip.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kProjection = "multi_modal_projector.mm_input_projection_weight",
                           kProjectionNorm = "multi_modal_projector.mm_soft_emb_norm.weight";
// Above that of SigLIP's tower, which such a file has as well.
constexpr int kMatch = 200;
// From the config.json of the published models: patches of a token's side.
constexpr std::int64_t kMerged = 4, kPlaceholder = 0;

std::int64_t whole_root(std::int64_t square) {
  const auto root = std::int64_t(std::llround(std::sqrt(double(square))));
  return root * root == square ? root : 0;
}

// Patches of a token's side, where a picture has n x n patches.
std::int64_t merged_patches(const Checkpoint& file, std::int64_t n, const Value& config) {
  const auto tokens =
      config.get<std::int64_t>("mm_tokens_per_image", (n / kMerged) * (n / kMerged));
  const std::int64_t across = whole_root(tokens);
  if (n > 0 && across > 0 && n % across == 0) return n / across;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file.path() + ": a vision tower of " + std::to_string(n) + " x " + std::to_string(n) +
                  " patches cannot make " + std::to_string(tokens) +
                  " tokens of squares of them. The file is damaged, or its config.json "
                  "(mm_tokens_per_image) belongs to another one.");
}

}  // namespace

void Gemma3Project::execute(Context& ctx) {
  constexpr double kUnbounded = std::numeric_limits<float>::max();
  const std::int64_t patches = ctx[side], square = ctx[merge];
  const Tensor sums = patch_sums(ctx, ctx[hidden], patches, patches, square),
               means = ops::scale_clamp(
                   ctx, sums, {1.0 / double(square * square), 0, -kUnbounded, kUnbounded}),
               normed = ops::rms_norm(ctx, means, shifted(ctx, ctx[norm], 1), ctx[eps]),
               columns = ops::cast(ctx, ctx[matrix], ctx.compute());
  ctx[out] = ops::batched_product(
      ctx, normed, columns.reshape({1, columns.size(0), columns.size(1)}), HEDDLE_F32);
}

bool sees_as_gemma3(const Checkpoint& file) {
  return blocks::prefix_before(file, kProjection).has_value();
}

int Gemma3Vision::match(const Checkpoint& file, const Value&) {
  return sees_as_gemma3(file) && siglip_prefix(file) ? kMatch : 0;
}

void Gemma3Vision::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  using B = Gemma3Project;
  const auto tower_prefix = siglip_prefix(file), prefix = blocks::prefix_before(file, kProjection);
  if (!tower_prefix || !prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": there is nothing that Gemma 3 sees pictures with in this file");
  const Value part = config.field("vision_config"),
              &vision = part.is(HEDDLE_KIND_RECORD) ? part : config;
  const SiglipTower tower = add_siglip(file, *tower_prefix, vision,
                                       graph.input("picture", HEDDLE_INPUT_LOOP_INVARIANT), graph);
  const std::string matrix = *prefix + std::string(kProjection);
  const std::int64_t patches = whole_root(tower.positions),
                     merge = merged_patches(file, patches, config), out = file.size(matrix, 1);
  Block block = graph.add<B>("project");
  block.link(B::hidden, tower.seen).set(B::side, patches).set(B::merge, merge);
  block.set(B::eps, vision.get<double>("layer_norm_eps", 1e-6));
  blocks::Slots slots(file, block, "project");
  slots.fill(B::norm, *prefix + std::string(kProjectionNorm), {tower.width});
  slots.fill(B::matrix, matrix, {tower.width, out});
  graph.output("tokens", block[B::out]);
  graph.setting("family", "gemma3_vision");
  graph.setting("width", out);
  graph.setting("side", patches * tower.patch);
  graph.setting("unit", merge * tower.patch);
  graph.setting("token", kPlaceholder);
  graph.setting("counts_on", true);
  graph.setting("pixel_mean", 0.5);  // pictures go from -1 to 1
  graph.setting("pixel_deviation", 0.5);
}

}  // namespace heddle::encoders
