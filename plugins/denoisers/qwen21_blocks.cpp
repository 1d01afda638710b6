#include "qwen21_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "joint_attention.h"

namespace heddle::denoisers {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

// Of this device's tokens those that stand before the picture that is drawn, and those of it.
struct Halves {
  Range before, drawn;
};
Halves halves_of(Context& ctx) {
  const auto spans = qwen21_prefix(ctx, ctx[Qwen21Layer::context].size(1));
  const heddle_shard shard = ctx.shard(Qwen21Layer::hidden);
  const std::int64_t all = spans.empty() ? 0 : spans.back().range.end,
                     own = shard.end - shard.begin,
                     before = std::clamp<std::int64_t>(all - shard.begin, 0, own);
  return {{0, before}, {before, own}};
}

// The nth quarter of a modulation's row: 0 of the noise level, 1 of the level 0; (1, 1, D).
Tensor quarter(const Tensor& mod, int row, int n) {
  const std::int64_t width = mod.size(2) / 4;
  return mod.slice(1, row, row + 1).slice(2, n * width, (n + 1) * width);
}

// x normed and scaled by this quarter, each half by its own row.
Tensor scaled(Context& ctx, const Tensor& x, int n) {
  const Tensor out = ctx.make(x.shape()), mod = ctx[Qwen21Layer::mod];
  const Tensor none = ctx.make({1, 1, x.size(2)}, HEDDLE_F32);
  ops::fill(ctx, none, 0);
  const Halves halves = halves_of(ctx);
  const auto scale = [&](Range range, int row) {
    if (range.begin < range.end)
      ops::modulated_norm_into(ctx, tokens(x, range), none, quarter(mod, row, n),
                               ctx[Qwen21Layer::eps], tokens(out, range));
  };
  scale(halves.before, 1);
  scale(halves.drawn, 0);
  return out;
}

// x + y, which is gated by this quarter, each half by its own row.
Tensor gated(Context& ctx, const Tensor& x, const Tensor& y, int n) {
  static const Op gated_add(HEDDLE_OP_GATED_ADD);
  const Halves halves = halves_of(ctx);
  const Tensor out = ctx.make_like(x);
  const auto add = [&](Range range, int row) {
    if (range.begin == range.end) return;
    const Tensor gate = quarter(ctx[Qwen21Layer::mod], row, n);
    ctx.op(gated_add, {tokens(x, range).raw(), gate.raw(), tokens(y, range).raw()},
           {tokens(out, range).raw()});
  };
  add(halves.before, 1);
  add(halves.drawn, 0);
  return out;
}

// x through a matrix. A group of devices may have both in parts: each multiplies its own.
Tensor joined(Context& ctx, const Tensor& x, const Weight& matrix) {
  if (ctx.group().kind != HEDDLE_GROUP_ROWS) return ops::linear(ctx, x, ctx[matrix], {});
  return ops::all_reduce(ctx, blocks::wide_linear(ctx, x, ctx[matrix], {}));
}

// Of all tokens, with some of the heads: qkv (B, L, 3 H' d) -> out (B, L, H', d).
void attend_in_order(Context& ctx, const Tensor& qkv, std::int64_t heads, const Tensor& out) {
  const Tensor q = part_of_heads(qkv, 0, heads), k = part_of_heads(qkv, 1, heads),
               v = part_of_heads(qkv, 2, heads);
  const double scale = 1 / std::sqrt(double(q.size(3)));
  std::int64_t before = 0;
  for (const Qwen21Span& span : qwen21_prefix(ctx, ctx[Qwen21Layer::context].size(1))) {
    before = span.range.end;
    const Range seen{0, before};
    ops::attention_into(ctx, tokens(q, span.range), tokens(k, seen), tokens(v, seen), {}, scale,
                        span.is_text() ? ops::Mask::causal : ops::Mask::none,
                        tokens(out, span.range));
  }
  const Range drawn{before, q.size(1)};
  ops::attention_into(ctx, tokens(q, drawn), k, v, {}, scale, ops::Mask::none, tokens(out, drawn));
}

Tensor attention_in_order(Context& ctx, const Tensor& x) {
  using B = Qwen21Layer;
  const heddle_shard shard = ctx.shard(B::hidden);
  const Tensor qkv = ops::linear(ctx, x, ctx[B::qkv], {}),
               cos = ctx[B::cos].slice(0, shard.begin, shard.end),
               sin = ctx[B::sin].slice(0, shard.begin, shard.end);
  const std::int64_t head = ctx[B::q_norm].size(0), heads = qkv.size(2) / (3 * head);
  for (const auto& [part, norm] : {std::pair(0, &B::q_norm), std::pair(1, &B::k_norm)}) {
    const Tensor own = part_of_heads(qkv, part, heads);
    ops::norm_rope_into(ctx, own, ctx[*norm], cos, sin, ctx[B::eps], own);
  }
  const JointShard joint = joint_shard(ctx, shard.begin, shard.total, heads);
  const Tensor all = make_gathered(ctx, qkv, joint, heads);
  gather_tokens(ctx, qkv, 0, joint, heads, all);
  const Tensor seen = ctx.make({x.size(0), all.size(1), joint.heads, head});
  attend_in_order(ctx, all, joint.heads, seen);
  if (ctx.group().kind != HEDDLE_GROUP_SEQUENCE) return blocks::join_heads(seen);
  const Tensor out = ctx.make({x.size(0), x.size(1), heads, head});
  ops::all_to_all_into(
      ctx, seen, heddle_all_to_all_attrs{shard.begin, shard.end, joint.first_head, 1, 2, 0, 0},
      out);
  return blocks::join_heads(out);
}

}  // namespace

void Qwen21Vector::execute(Context& ctx) {
  const std::int64_t steps = ctx[timestep].size(0);
  const Tensor level = ctx[timestep].reshape({steps, 1}), both = ctx.make({steps, 2}, HEDDLE_F32);
  ops::copy_into(ctx, level, both.slice(1, 0, 1));
  ops::fill(ctx, both.slice(1, 1, 2), 0);
  const Tensor time =
      embed_number(ctx, both.reshape({2 * steps}), {ctx[time_scale], ctx[max_period], 0, 1, 0},
                   ctx[time_in], {}, ctx[time_out], {});
  ctx[out] = ops::activate(ctx, time.reshape({steps, 2, time.size(1)}), HEDDLE_ACT_SILU);
}

void Qwen21Modulation::execute(Context& ctx) {
  const Tensor raw = blocks::wide_linear(ctx, ctx[vector], ctx[weight], {});
  const std::int64_t width = raw.size(2) / 4;
  for (int gate : {1, 3}) {
    const Tensor part = raw.slice(2, gate * width, (gate + 1) * width);
    ops::activate_into(ctx, part, HEDDLE_ACT_TANH, part);
  }
  ctx[out] = raw;
  ctx[last] = blocks::wide_linear(ctx, ops::contiguous(ctx, ctx[vector].slice(1, 0, 1)),
                                  ctx[last_weight], {});
}

void Qwen21Rope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t rows = latent.size(2), columns = latent.size(3);
  const std::vector<Qwen21Span> spans = qwen21_prefix(ctx, ctx[context].size(1));
  const std::int64_t before = spans.empty() ? 0 : spans.back().range.end,
                     all = before + rows * columns;
  const Tensor ids = ctx.make({all, 3}, HEDDLE_F32);
  std::int64_t place = 0;
  const auto middle = [](std::int64_t side, std::int64_t drawn) {
    return 0.5 * double(side % 2 - drawn % 2) - double(side - side / 2);
  };
  for (const Qwen21Span& span : spans) {
    const Tensor to = ids.slice(0, span.range.begin, span.range.end);
    const std::int64_t count = span.range.end - span.range.begin;
    if (span.is_text()) {
      const Tensor along = ctx.make({count, 3}, HEDDLE_F32);
      ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{count, 1, 1}, {double(place), 0, 0}}, along);
      for (int axis = 0; axis < 3; ++axis)
        ops::copy_into(ctx, along.slice(1, 0, 1), to.slice(1, axis, axis + 1));
      place += count;
      continue;
    }
    ops::grid_ids_into(ctx,
                       heddle_grid_ids_attrs{
                           {1, span.height, span.width},
                           {double(place), middle(span.height, rows), middle(span.width, columns)}},
                       to);
    place += std::max(span.height, span.width);
  }
  ops::grid_ids_into(
      ctx,
      heddle_grid_ids_attrs{{1, rows, columns},
                            {double(place), middle(rows, rows), middle(columns, columns)}},
      ids.slice(0, before, all));
  const heddle_rope_table_attrs attrs{3,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[axis_2], "axis_2"), 0},
                                      ctx[theta]};
  const auto [c, s] = ops::rope_table(ctx, ids, attrs);
  ctx[cos] = c;
  ctx[sin] = s;
}

void Qwen21TextIn::execute(Context& ctx) {
  const Tensor factor =
      ops::scale_clamp(ctx, ops::cast(ctx, ctx[norm], HEDDLE_F32), {1, 1, -kNoEnd, kNoEnd});
  const Tensor seen = ops::rms_norm(ctx, ctx[context], factor, ctx[eps]);
  const Tensor raised = ops::linear(ctx, seen, ctx[in], {}, HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[last], {});
}

void Qwen21ImageIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  const std::int64_t batch = latent.size(0), channels = latent.size(1), rows = latent.size(2),
                     columns = latent.size(3);
  std::int64_t count = rows * columns;
  std::vector<Tensor> pictures;
  for (const Input<Tensor>& port : shown) {
    if (!ctx.has(port)) break;
    pictures.push_back(ctx[port]);
    count += pictures.back().size(2) * pictures.back().size(3);
  }
  pictures.push_back(latent);
  const Tensor packed = ctx.make({batch, count, channels}, HEDDLE_F32);
  std::int64_t at = 0;
  for (const Tensor& picture : pictures) {
    if (picture.size(1) != matrix.size(1))
      throw Error(HEDDLE_INVALID_ARGUMENT, "the model takes " + std::to_string(matrix.size(1)) +
                                               " latent channels, got " +
                                               std::to_string(picture.size(1)));
    const std::int64_t given = picture.size(0), height = picture.size(2), width = picture.size(3),
                       end = at + height * width;
    if (given != 1 && given != batch)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a shown picture is for " + std::to_string(given) +
                                               " pictures, the latent holds " +
                                               std::to_string(batch) +
                                               ". Give it once, or once for each picture.");
    for (std::int64_t b = 0; b < batch; b += given)
      ops::copy_into(ctx, picture.permute({0, 2, 3, 1}),
                     packed.slice(0, b, b + given)
                         .slice(1, at, end)
                         .reshape({given, height, width, channels}));
    at = end;
  }
  ctx[out] = blocks::wide_linear(ctx, packed, matrix, {});
}

void Qwen21Join::execute(Context& ctx) {
  const Tensor text = ctx[txt], image = ctx[img];
  const std::int64_t batch = image.size(0), given = text.size(0);
  if (given != 1 && given != batch)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "context is for " + std::to_string(given) + " pictures, the latent holds " +
                    std::to_string(batch) + ". Give one context, or one for each picture.");
  const std::int64_t all = text.size(1) + image.size(1);
  const Tensor joined = ctx.make({batch, all, image.size(2)}, HEDDLE_F32);
  std::int64_t before = 0, shown = 0;
  for (const Qwen21Span& span : qwen21_prefix(ctx, text.size(1))) {
    const std::int64_t count = span.range.end - span.range.begin;
    const Tensor to = tokens(joined, span.range);
    const Range from{span.begin, span.begin + count};
    before = span.range.end;
    if (!span.is_text()) {
      ops::copy_into(ctx, tokens(image, from), to);
      shown = from.end;
      continue;
    }
    for (std::int64_t b = 0; b < batch; b += given)
      ops::copy_into(ctx, tokens(text, from), to.slice(0, b, b + given));
  }
  ops::copy_into(ctx, tokens(image, {shown, image.size(1)}), tokens(joined, {before, all}));
  ctx[out] = joined;
}

void Qwen21Layer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor seen = attention_in_order(ctx, scaled(ctx, x, 0));
  const Tensor middle = gated(ctx, x, joined(ctx, seen, proj), 1);
  const Tensor both = ops::linear(ctx, scaled(ctx, middle, 2), ctx[up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_SILU, raised);
  ctx[out] = gated(ctx, middle, joined(ctx, raised, down), 3);
}

void Qwen21Final::execute(Context& ctx) {
  const Tensor latent = ctx[x], all = ctx[hidden], scale = ctx[last];
  const std::int64_t rows = latent.size(2), columns = latent.size(3);
  const Tensor image = all.slice(1, all.size(1) - rows * columns, all.size(1));
  const Tensor none = ctx.make(scale.shape(), HEDDLE_F32),
               seen = ctx.make(image.shape(), HEDDLE_F32);
  ops::fill(ctx, none, 0);
  ops::modulated_norm_into(ctx, image, none, scale, ctx[eps], seen);
  const Tensor packed = blocks::wide_linear(ctx, seen, ctx[weight], {});
  const std::int64_t channels = packed.size(2);
  const Tensor picture = ctx.make({all.size(0), channels, rows, columns}, latent.dtype());
  ops::copy_into(ctx, packed.reshape({all.size(0), rows, columns, channels}),
                 picture.permute({0, 2, 3, 1}));
  ctx[out] = picture;
}

}  // namespace heddle::denoisers
