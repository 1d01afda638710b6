// What FLUX's blocks begin with: the vector that modulates them, rotary tables, and both streams.
#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "attention_guidance.h"
#include "embed_number.h"
#include "even_sides.h"
#include "flux_blocks.h"
#include "joint_attention.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

heddle_timestep_embedding_attrs waves(Context& ctx) {
  return {ctx[FluxVector::time_scale], ctx[FluxVector::max_period], 0, 1, 0};
}

// What guidance-distilled models were trained for is an input; others do not have the layer.
Tensor guidance_numbers(Context& ctx) {
  if (ctx.has(FluxVector::guidance)) {
    const Tensor given = ctx[FluxVector::guidance];
    return given.reshape({given.count()});
  }
  const Tensor one = ctx.make({1}, HEDDLE_F32);
  ops::fill(ctx, one, ctx[FluxVector::default_guidance]);
  return one;
}

// Writes the tokens of a picture (1|B, C, H, W) to out (B, S, p^2 C).
void pack_picture_into(Context& ctx, const Tensor& x, std::int64_t patch, const Tensor& out) {
  const Tensor patches = as_patches(even_sides(ctx, x, patch), patch);
  const std::int64_t channels = x.size(1);
  for (std::int64_t b = 0; b < out.size(0); ++b) {
    // A batch that already fits is one copy; a single picture for all items is copied for each.
    const bool whole = x.size(0) == out.size(0);
    const Tensor to = whole ? out : out.slice(0, b, b + 1);
    ops::copy_into(
        ctx, patches,
        to.reshape({to.size(0), patches.size(1), patches.size(2), channels, patch, patch}));
    if (whole) break;
  }
}

// The same of all pictures of a latent, one behind the other.
void pack_into(Context& ctx, const Tensor& x, std::int64_t patch, const Tensor& out) {
  const std::int64_t frames = frame_count(x), count = out.size(1) / frames;
  for (std::int64_t f = 0; f < frames; ++f)
    pack_picture_into(ctx, frame_of(x, f), patch, out.slice(1, f * count, (f + 1) * count));
}
}  // namespace

void FluxVector::execute(Context& ctx) {
  const Tensor time = embed_number(ctx, ctx[timestep], waves(ctx),
                                   {time_in, time_in_bias, time_out, time_out_bias});
  const Tensor texts = ctx.has(nag) ? as_pairs(ctx[y]) : ctx[y];
  const Tensor pooled =
      blocks::wide_linear(ctx, texts, ctx[text_in], ctx[text_in_bias], HEDDLE_ACT_SILU);
  Tensor text = blocks::wide_linear(ctx, pooled, ctx[text_out], ctx[text_out_bias]);
  if (ctx[guidance_in] && !ctx.has(unguided)) {
    const Tensor numbers = guidance_numbers(ctx);
    text = ops::add(ctx, text,
                    embed_number(ctx, numbers, waves(ctx),
                                 {guidance_in, guidance_in_bias, guidance_out, guidance_out_bias}));
  }
  const std::int64_t width = time.size(1);
  const Tensor sum =
      ops::add(ctx, time.reshape({time.size(0), 1, width}), text.reshape({1, text.size(0), width}));
  ctx[out] = ops::activate(ctx, sum, HEDDLE_ACT_SILU);
}

void FluxRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t text = ctx[context].size(1) / (ctx.has(nag) ? 2 : 1);
  const std::int64_t rows = tokens_along(latent.size(2), ctx[patch]),
                     columns = tokens_along(latent.size(3), ctx[patch]);
  const std::int64_t own = text + rows * columns;
  const std::int64_t shown = ctx.has(reference_positions) ? ctx[reference_positions].size(0) : 0;
  const Tensor ids = ctx.make({own + shown, 3}, HEDDLE_F32);
  if (text > 0) {
    const Tensor of_text = ids.slice(0, 0, text);
    if (ctx[sequential])
      ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{text, 1, 1}, {0, 0, 0}}, of_text);
    else
      ops::fill(ctx, of_text, 0);
  }
  if (shown > 0) ops::copy_into(ctx, ctx[reference_positions], ids.slice(0, own, own + shown));
  const Tensor image = ids.slice(0, text, own);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, rows, columns}, {0, 0, 0}}, image);
  if (ctx.has(positions)) {
    const Tensor moved = ctx[positions];
    const Tensor scaled = ops::mul(ctx, image, moved.slice(0, 0, 1));
    ops::copy_into(ctx, ops::add(ctx, scaled, moved.slice(0, 1, 2)), image);
  }
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

void FluxTextIn::execute(Context& ctx) {
  const std::int64_t of_each = ctx.has(nag) ? 2 : 1, batch = of_each * ctx[x].size(0);
  const Tensor text = ctx.has(nag) ? as_pairs(ctx[context]) : ctx[context];
  const std::int64_t count = std::max(text.size(1), ctx[least]);
  const bool fits = text.size(0) == batch && text.size(1) == count;
  const Tensor projected = blocks::wide_linear(ctx, text, ctx[weight], ctx[bias]);
  if (fits) {
    ctx[out] = projected;
    return;
  }
  if (text.size(0) != batch && text.size(0) != of_each)
    throw Error(HEDDLE_INVALID_ARGUMENT, "context is for " + std::to_string(ctx[context].size(0)) +
                                             " pictures, the latent holds " +
                                             std::to_string(ctx[x].size(0)) +
                                             ". Give one context, or one for each picture.");
  const Tensor all = ctx.make({batch, count, projected.size(2)}, HEDDLE_F32);
  const std::int64_t before = count - text.size(1), rows = text.size(0);
  if (before > 0) ops::fill(ctx, tokens(all, {0, before}), 0);
  for (std::int64_t b = 0; b < batch && before < count; b += rows)
    ops::copy_into(ctx, projected, tokens(all.slice(0, b, b + rows), {before, count}));
  ctx[out] = all;
}

void FluxImageIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], matrix = ctx[weight];
  const std::int64_t side = ctx[patch], area = side * side, own = latent.size(1) * area;
  const std::int64_t more = ctx.has(concat) ? ctx[concat].size(1) * area : 0;
  if (own + more != matrix.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes " + std::to_string(matrix.size(1) / area) +
                    " latent channels, got " + std::to_string(latent.size(1)) + " and " +
                    std::to_string(more / area) + " of conditioning ('concat')");
  const std::int64_t count = token_count(latent, side), batch = latent.size(0);
  const std::int64_t shown = ctx.has(references) ? ctx[references].size(1) : 0;
  const Tensor packed = ctx.make({batch, count + shown, own + more}, HEDDLE_F32);
  const Tensor drawn = packed.slice(1, 0, count);
  pack_into(ctx, latent, side, drawn.slice(2, 0, own));
  if (more > 0) pack_into(ctx, ctx[concat], side, drawn.slice(2, own, own + more));
  if (shown > 0) {
    const Tensor pictures = ctx[references], behind = packed.slice(1, count, count + shown);
    if (pictures.size(2) != own + more)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "reference pictures have tokens of " + std::to_string(pictures.size(2)) +
                      " numbers, the model reads " + std::to_string(own + more) +
                      ". Use a model that is made for them.");
    for (std::int64_t b = 0; b < batch; ++b)
      ops::copy_into(ctx, pictures.size(0) == 1 ? pictures : pictures.slice(0, b, b + 1),
                     behind.slice(0, b, b + 1));
  }
  const Tensor projected = blocks::wide_linear(ctx, packed, matrix, ctx[bias]);
  ctx[out] = ctx.has(nag) ? twice(ctx, projected) : projected;
}

void FluxWiden::execute(Context& ctx) {
  const Tensor latent = ctx[x], beside = ctx[concat];
  const std::int64_t side = ctx[patch], area = side * side, own = latent.size(1) * area,
                     more = beside.size(1) * area;
  const Tensor packed =
      ctx.make({latent.size(0), token_count(latent, side), own + more}, HEDDLE_F32);
  pack_into(ctx, latent, side, packed.slice(2, 0, own));
  pack_into(ctx, beside, side, packed.slice(2, own, own + more));
  const Tensor made =
      blocks::wide_linear(ctx, blocks::wide_linear(ctx, packed, ctx[down], {}), ctx[up], {});
  ctx[out] =
      ops::combine(ctx, {{1.0, ctx[img]}, {ctx[strength], ctx.has(nag) ? twice(ctx, made) : made}});
}
}  // namespace heddle::denoisers
