#include "text_projection.h"

#include <cmath>
#include <limits>

#include <heddle/ops.hpp>

#include "language_blocks.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

// A matrix of the file; its role says what it is for.
struct ProjectionPart {
  const char* role;
  const char* names[2];  // the publisher's and diffusers'
};
constexpr ProjectionPart kSingle{"text",
                                 {"text_embedding_projection.aggregate_embed", "text_proj_in"}};
constexpr ProjectionPart kForVideo{
    "video", {"text_embedding_projection.video_aggregate_embed", "video_text_proj_in"}};
constexpr ProjectionPart kForSound{
    "audio", {"text_embedding_projection.audio_aggregate_embed", "audio_text_proj_in"}};

// The module's name in this file; nothing where it has none.
std::optional<std::string> found_in(const Checkpoint& file, const ProjectionPart& part) {
  for (const char* name : part.names)
    if (file.has(std::string(name) + ".weight")) return name;
  return std::nullopt;
}

bool is_projection(const Checkpoint& file) {
  return found_in(file, kSingle) || (found_in(file, kForVideo) && found_in(file, kForSound));
}

// One matrix; `width`: of a layer's states, which a projection for one stream is scaled against, or
// 0.
Source add_matrix(const Checkpoint& file, const ProjectionPart& part, const Source& rows,
                  std::int64_t reads, std::int64_t width, Blocks& graph) {
  using B = ProjectionMatrix;
  const std::string name = *found_in(file, part), weight = name + ".weight", bias = name + ".bias",
                    path = "matrix." + std::string(part.role);
  const std::int64_t makes = file.size(weight, 0);
  Block block = graph.add<B>(path);
  block.link(B::rows, rows);
  block.set(B::scale, width > 0 ? std::sqrt(double(makes) / double(width)) : 1.0);
  blocks::Slots slots(file, block, path);
  slots.fill(B::weight, weight, {makes, reads});
  if (file.has(bias)) slots.fill(B::bias, bias, {makes});
  return block[B::out];
}

}  // namespace

void ProjectionRows::execute(Context& ctx) {
  const Tensor all = ctx[states];
  const std::int64_t count = ctx[layers], length = all.size(1), width = all.size(2) / count;
  if (width * count != all.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT, "states of width " + std::to_string(all.size(2)) +
                                             " are none of " + std::to_string(count) + " layers");
  const Tensor apart = all.reshape({1, length, count, width});
  const Tensor normed = ctx.make(apart.shape(), HEDDLE_F32);
  if (ctx.has(factors)) {
    ops::mul_into(ctx, apart, ctx[factors].reshape({1, 1, count, 1}), normed);
    ops::add_into(ctx, normed, ctx[addends].reshape({1, 1, count, 1}), normed);
  } else {
    ops::rms_norm_into(ctx, apart, {}, ctx[eps], normed);
  }
  const Tensor made = ctx.make({1, length, width, count});
  ops::copy_into(ctx, normed.permute({0, 1, 3, 2}), made);
  ctx[out] = made.reshape({1, length, width * count});
}

void ProjectionMatrix::execute(Context& ctx) {
  constexpr double kFree = std::numeric_limits<double>::infinity();
  const double factor = ctx[scale];
  const Tensor added = ctx[bias];
  if (factor == 1) {
    ctx[out] = blocks::wide_linear(ctx, ctx[rows], ctx[weight], added);
    return;
  }
  const Tensor made = ops::scale_clamp(ctx, blocks::wide_linear(ctx, ctx[rows], ctx[weight], {}),
                                       {factor, 0, -kFree, kFree});
  ctx[out] = added ? ops::add(ctx, made, added.reshape({1, 1, added.size(0)})) : made;
}

int TextProjection::match(const Checkpoint& file, const Value&) {
  return is_projection(file) ? 100 : 0;
}

void TextProjection::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  if (!is_projection(file))
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this has no projection of texts");
  const std::optional<std::string> single = found_in(file, kSingle);
  const std::string first = (single ? *single : *found_in(file, kForVideo)) + ".weight";
  const std::int64_t reads = file.size(first, 1), layers = config.get<std::int64_t>("states", 0);
  if (layers < 1 || reads % layers != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": its projection reads " + std::to_string(reads) +
                    " numbers of a token, which are no states of " + std::to_string(layers) +
                    " layers. It belongs to another text encoder.");
  using B = ProjectionRows;
  Block block = graph.add<B>("rows");
  block.link(B::states, graph.input("states", HEDDLE_INPUT_LOOP_INVARIANT)).set(B::layers, layers);
  std::int64_t width = file.size(first, 0);
  if (single) {
    block.link(B::factors, graph.input("factors", HEDDLE_INPUT_LOOP_INVARIANT))
        .link(B::addends, graph.input("addends", HEDDLE_INPUT_LOOP_INVARIANT));
    graph.output("projected", add_matrix(file, kSingle, block[B::out], reads, 0, graph));
  } else {
    width += file.size(*found_in(file, kForSound) + ".weight", 0);
    using J = LanguageJoin;
    const Source video = add_matrix(file, kForVideo, block[B::out], reads, reads / layers, graph),
                 sound = add_matrix(file, kForSound, block[B::out], reads, reads / layers, graph);
    Block both = graph.add<J>("join");
    both.link(J::states[0], video).link(J::states[1], sound);
    graph.output("projected", both[J::out]);
  }
  graph.setting("family", "text_projection");
  graph.setting("width", width);
  graph.setting("reads", reads);
  graph.setting("states", layers);
}

}  // namespace heddle::encoders
