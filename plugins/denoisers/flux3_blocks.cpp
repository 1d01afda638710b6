#include "flux3_blocks.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "joint_attention.h"
#include "modulated_tokens.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kFlux3Axes = 4, kTextAxis = 3;  // time, row, column, and what counts text
constexpr int kModulations = 3;                        // shift, scale, gate

std::int64_t length_of(Context& ctx, const Input<Tensor>& tokens_of) {
  return ctx.has(tokens_of) ? ctx[tokens_of].size(1) : 0;
}

// Those of this device's tokens that are of each kind.
ModulatedTokens tokens_by_kind(Context& ctx, std::int64_t length) {
  using B = Flux3Layer;
  const heddle_shard shard = ctx.shard(B::hidden);
  if (!ctx.has(B::text_mod)) return {{{0, length}, modulation(ctx[B::mod], kModulations)}};
  ModulatedTokens parts;
  const std::int64_t text = length_of(ctx, B::txt),
                     drawn = shard.total - length_of(ctx, B::references);
  const auto add = [&](std::int64_t begin, std::int64_t end, const Input<Tensor>& mod) {
    const Range at{std::clamp<std::int64_t>(begin - shard.begin, 0, length),
                   std::clamp<std::int64_t>(end - shard.begin, 0, length)};
    if (at.begin < at.end) parts.push_back({at, modulation(ctx[mod], kModulations)});
  };
  add(0, text, B::text_mod);
  add(text, drawn, B::mod);
  add(drawn, shard.total, B::reference_mod);
  return parts;
}

// (L + R, 4) f32.
Tensor places_of_all(Context& ctx, std::int64_t text, std::int64_t rows, std::int64_t columns,
                     std::int64_t shown) {
  const std::int64_t own = text + rows * columns;
  const Tensor ids = ctx.make({own + shown, kFlux3Axes}, HEDDLE_F32);
  ops::fill(ctx, ids, 0);
  const auto on_axes = [&](std::int64_t begin, std::int64_t end, std::int64_t first,
                           std::int64_t last) {
    return ids.slice(0, begin, end).slice(1, first, last);
  };
  if (text > 0) {
    const Tensor counted = ctx.make({text, 3}, HEDDLE_F32);
    ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{text, 1, 1}, {0, 0, 0}}, counted);
    ops::copy_into(ctx, counted.slice(1, 0, 1), on_axes(0, text, kTextAxis, kFlux3Axes));
  }
  const Tensor image = ctx.make({rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, rows, columns}, {0, 0, 0}}, image);
  const double scale = ctx[Flux3Rope::scale];
  const auto scaled = [&](const Tensor& places) {
    return ops::scale_clamp(ctx, places.slice(1, 1, 3), {scale, 0, -1e30, 1e30});
  };
  ops::copy_into(ctx, scaled(image), on_axes(text, own, 1, 3));
  if (shown > 0) {
    const Tensor given = ctx[Flux3Rope::reference_positions];
    ops::copy_into(ctx, scaled(given), on_axes(own, own + shown, 1, 3));
    ops::copy_into(ctx, given.slice(1, 0, 1), on_axes(own, own + shown, kTextAxis, kFlux3Axes));
  }
  return ids;
}

}  // namespace

void Flux3Vector::execute(Context& ctx) {
  const heddle_timestep_embedding_attrs waves{ctx[time_scale], ctx[max_period], 0, 1, 0};
  Tensor levels;
  if (ctx.has(timestep)) {
    levels = ctx[timestep];
  } else {
    levels = ctx.make({1}, HEDDLE_F32);
    ops::fill(ctx, levels, 0);
  }
  Tensor sum = embed_number(ctx, levels, waves, ctx[time_in], {}, ctx[time_out], {});
  if (ctx[target_in]) {
    if (!ctx.has(target))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a distilled FLUX 3 model reads the level that each step goes to "
                  "('target_timestep'), which is not given");
    sum = ops::add(
        ctx, embed_number(ctx, ctx[target], waves, ctx[target_in], {}, ctx[target_out], {}), sum);
  }
  const Tensor vector = ops::activate(ctx, sum, HEDDLE_ACT_SILU);
  ctx[out] = vector.reshape({vector.size(0), 1, vector.size(1)});
}

void Flux3Rope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t text = ctx[context].size(1), rows = latent.size(2), columns = latent.size(3),
                     own = text + rows * columns,
                     shown = ctx.has(reference_positions) ? ctx[reference_positions].size(0) : 0;
  const Tensor ids = places_of_all(ctx, text, rows, columns, shown);
  const heddle_rope_table_attrs attrs{kFlux3Axes,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"),
                                       checked_cast<std::int32_t>(ctx[axis_3], "axis_3")},
                                      ctx[theta]};
  const std::int64_t pairs = (ctx[axis_0] + ctx[axis_1] + ctx[axis_2] + ctx[axis_3]) / 2;
  const auto table = [&](std::int64_t begin, std::int64_t end, const Output<Tensor>& of_cos,
                         const Output<Tensor>& of_sin) {
    if (begin == end) {
      ctx[of_cos] = ctx.make({0, pairs}, HEDDLE_F32);
      ctx[of_sin] = ctx.make({0, pairs}, HEDDLE_F32);
      return;
    }
    const auto made = ops::rope_table(ctx, ids.slice(0, begin, end), attrs);
    ctx[of_cos] = made.first;
    ctx[of_sin] = made.second;
  };
  table(0, own + shown, cos, sin);
  table(0, text, text_cos, text_sin);
  table(text, own, image_cos, image_sin);
  table(own, own + shown, reference_cos, reference_sin);
}

void Flux3ReferenceIn::execute(Context& ctx) {
  const Tensor matrix = ctx[weight];
  const std::int64_t batch = ctx[x].size(0), width = matrix.size(0);
  if (!ctx.has(references)) {
    ctx[out] = ctx.make({batch, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor pictures = ctx[references];
  if (pictures.size(2) != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "reference pictures have tokens of " + std::to_string(pictures.size(2)) +
                    " numbers, the model reads " + std::to_string(matrix.size(1)) +
                    ". Encode them with FLUX.2's autoencoder.");
  const Tensor projected = blocks::wide_linear(ctx, pictures, matrix, {});
  if (projected.size(0) == batch) {
    ctx[out] = projected;
    return;
  }
  const Tensor all = ctx.make({batch, pictures.size(1), width}, HEDDLE_F32);
  for (std::int64_t b = 0; b < batch; ++b) ops::copy_into(ctx, projected, all.slice(0, b, b + 1));
  ctx[out] = all;
}

void Flux3Join::execute(Context& ctx) {
  const Tensor image = ctx[img];
  std::int64_t length = 0;
  for (const Input<Tensor>* stream : {&txt, &img, &references}) length += ctx[*stream].size(1);
  const Tensor all = ctx.make({image.size(0), length, image.size(2)}, image.dtype());
  std::int64_t at = 0;
  for (const Input<Tensor>* stream : {&txt, &img, &references}) {
    const Tensor part = ctx[*stream];
    if (part.size(1) > 0) ops::copy_into(ctx, part, tokens(all, {at, at + part.size(1)}));
    at += part.size(1);
  }
  ctx[out] = all;
}

void Flux3Layer::execute(Context& ctx) {
  const Tensor stream = ctx[hidden];
  const std::int64_t batch = stream.size(0), length = stream.size(1),
                     head = stream.size(2) / ctx[heads];
  if (length == 0) {  // no picture is shown
    if (ctx.shard(hidden).total > 0)
      throw Error(HEDDLE_UNSUPPORTED,
                  "a picture or text has fewer tokens than there are devices that share them. Use "
                  "fewer devices, or a larger reference picture.");
    ctx[out] = ctx.make(stream.shape(), stream.dtype());
    return;
  }
  const std::int64_t width = ctx[qkv].size(0) / 3, head_count = width / head;  // of this device
  const heddle_shard shard = ctx.shard(hidden);
  const ModulatedTokens parts = tokens_by_kind(ctx, length);
  const double epsilon = ctx[eps];
  const Tensor normed = norm_tokens(ctx, stream, parts, 0, epsilon);
  const Tensor raised = ctx.make({batch, length, mlp_width(ctx[up], true)});
  // Where tokens and heads change places between devices, the MLP is computed meanwhile.
  const bool waits = ctx.group().kind == HEDDLE_GROUP_SEQUENCE;
  if (!waits) raise(ctx, normed, ctx[up], {}, true, raised);
  const Tensor projected = ctx.make({batch, length, 3 * width});
  ops::linear_into(ctx, normed, ctx[qkv], {}, HEDDLE_ACT_NONE, {}, projected);
  norm_heads(ctx, projected, head_count, ctx[q_norm], ctx[k_norm],
             ctx[cos].slice(0, shard.begin, shard.end), ctx[sin].slice(0, shard.begin, shard.end),
             epsilon);
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, head_count);
  const Tensor gathered = make_gathered(ctx, projected, joint, head_count);
  gather_tokens(ctx, projected, 0, joint, head_count, gathered);
  if (waits) raise(ctx, normed, ctx[up], {}, true, raised);
  const Tensor attended = ctx.make({batch, length, head_count, head});
  attend(ctx, gathered, joint, attended);
  // Both are added up in f32, as one product of them side by side would.
  const Tensor lowered = blocks::wide_linear(ctx, raised, ctx[down], {});
  const Tensor sum = blocks::wide_linear(ctx, blocks::join_heads(attended), ctx[proj], {},
                                         HEDDLE_ACT_NONE, lowered);
  const bool is_part = ctx.group().kind == HEDDLE_GROUP_ROWS;
  ctx[out] = add_gated(ctx, stream, parts, 2, is_part ? ops::all_reduce(ctx, sum) : sum);
}

}  // namespace heddle::denoisers
