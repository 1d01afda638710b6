#include "unet_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "plugins/blocks/wide.h"
#include "unet_fit.h"

namespace heddle::denoisers {
namespace {

constexpr heddle_conv2d_attrs kPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr heddle_conv2d_attrs kSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
constexpr heddle_conv2d_attrs kHalve{{2, 2}, {1, 1, 1, 1}};  // 3x3, every second pixel

heddle_group_norm_attrs norm_attrs(double eps, std::int64_t groups, heddle_activation activation) {
  return {eps, checked_cast<std::int32_t>(groups, "groups"), activation};
}

// Copies a (1|B, ...) into all items of `to` (B, ...).
void spread(Context& ctx, const Tensor& from, const Tensor& to) {
  if (from.size(0) == to.size(0)) return ops::copy_into(ctx, from, to);
  for (std::int64_t item = 0; item < to.size(0); ++item)
    ops::copy_into(ctx, from, to.slice(0, item, item + 1));
}

// The pooled text (1|B, P), if any, with what its numbers (1|B, n) become behind it.
Tensor label(Context& ctx, const Tensor& text, const Tensor& numbers, std::int64_t waves,
             const heddle_timestep_embedding_attrs& attrs) {
  const std::int64_t items = text ? std::max(text.size(0), numbers.size(0)) : numbers.size(0),
                     count = numbers.size(1), width = text ? text.size(1) : 0;
  const Tensor embedded = ctx.make({numbers.size(0) * count, waves}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, numbers.reshape({numbers.size(0) * count}), attrs, embedded);
  if (!text) return embedded.reshape({items, count * waves});
  const Tensor both = ctx.make({items, width + count * waves}, HEDDLE_F32);
  spread(ctx, text, both.slice(1, 0, width));
  spread(ctx, embedded.reshape({numbers.size(0), count * waves}),
         both.slice(1, width, width + count * waves));
  return both;
}

// conv(x) + bias + mod (1, 1|B, D). Items with numbers of their own are filtered one by one, so
// that they become the same bytes alone as beside others.
Tensor modulated_conv(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                      const Tensor& mod) {
  if (mod.size(0) != 1)
    throw Error(HEDDLE_INTERNAL, "a block of one step got the modulation of " +
                                     std::to_string(mod.size(0)) + " steps");
  const std::int64_t width = filter.size(0), rows = mod.size(1);
  const Tensor sums = ctx.make({rows, width}, HEDDLE_F32);
  ops::add_into(ctx, mod.reshape({rows, width}), bias.reshape({1, width}), sums);
  const Tensor out = ctx.make(ops::conv2d_shape(x, filter, kSame));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto part = [&](const Tensor& all) {
      return rows == 1 ? all : all.slice(0, row, row + 1);
    };
    ops::conv2d_into(ctx, part(x), filter, sums.slice(0, row, row + 1).reshape({width}), kSame, {},
                     part(out));
  }
  return out;
}

// A part of the last axis.
Tensor part_of(const Tensor& x, std::int64_t index, std::int64_t width) {
  return x.slice(2, index * width, (index + 1) * width);
}

// x (B, S, D) with what the gated MLP of a transformer's block makes of it.
Tensor with_mlp(Context& ctx, const Tensor& x) {
  using B = UnetTransformer;
  const Tensor normed = ops::layer_norm(ctx, x, ctx[B::norm3], ctx[B::norm3_bias], ctx[B::eps]);
  const Tensor raised = ops::linear(ctx, normed, ctx[B::up], ctx[B::up_bias]);
  const std::int64_t mlp = raised.size(2) / 2;
  const Tensor gated = ctx.make({raised.size(0), raised.size(1), mlp});
  ops::gated_activation_into(ctx, part_of(raised, 1, mlp), part_of(raised, 0, mlp), HEDDLE_ACT_GELU,
                             gated);
  return ops::linear(ctx, gated, ctx[B::down], ctx[B::down_bias], HEDDLE_ACT_NONE, x);
}

}  // namespace

void UnetVector::execute(Context& ctx) {
  const heddle_timestep_embedding_attrs waves{1, ctx[max_period], 0, 1, 0};
  const Tensor time =
      embed_number(ctx, ctx[timestep], waves, {time_in, time_in_bias, time_out, time_out_bias});
  Tensor sum = time.reshape({time.size(0), 1, time.size(1)});
  if (ctx.has(y) || ctx.has(sizes)) {
    const Tensor pooled = ctx.has(y) ? ctx[y] : Tensor(),
                 told = ctx.has(sizes) ? label(ctx, pooled, ctx[sizes], ctx[size_waves], waves)
                                       : pooled;
    const Tensor inner =
        blocks::wide_linear(ctx, told, ctx[label_in], ctx[label_in_bias], HEDDLE_ACT_SILU);
    const Tensor text = blocks::wide_linear(ctx, inner, ctx[label_out], ctx[label_out_bias]);
    sum = ops::add(ctx, sum, text.reshape({1, text.size(0), text.size(1)}));
  }
  if (ctx.has(level)) {
    const std::int64_t rows = ctx[level].size(0), width = sum.size(2);
    const Tensor told = ctx.make({rows, width}, HEDDLE_F32);
    ops::embedding_into(ctx, ctx[levels], ctx[level], told);
    sum = ops::add(ctx, sum, told.reshape({1, rows, width}));
  }
  if (ctx.has(more)) sum = ops::add(ctx, sum, ctx[more].reshape({1, 1, sum.size(2)}));
  ctx[out] = ops::activate(ctx, sum, HEDDLE_ACT_SILU);
}

void UnetIn::execute(Context& ctx) {
  const Tensor latent = ctx[x].permute({0, 2, 3, 1});
  const Tensor filter = ctx[conv];
  Shape shape = latent.shape();
  const std::int64_t channels = shape[3];
  if (ctx.has(concat)) shape[3] += ctx[concat].size(1);
  if (shape[3] != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model reads " + std::to_string(filter.size(1)) + " channels and gets " +
                    std::to_string(shape[3]) +
                    ". Give it a latent of the autoencoder that it was published with.");
  const Tensor all = ctx.make(shape);
  ops::copy_into(ctx, latent, all.slice(3, 0, channels));
  if (ctx.has(concat))
    spread(ctx, ctx[concat].permute({0, 2, 3, 1}), all.slice(3, channels, shape[3]));
  ctx[out] = ops::conv2d(ctx, all, filter, ctx[conv_bias], kSame);
}

void UnetResnet::execute(Context& ctx) {
  Tensor x = ctx[hidden];
  if (ctx.has(skip)) {
    const Tensor beside = ctx[skip];
    Shape shape = x.shape();
    const std::int64_t channels = shape[3];
    shape[3] += beside.size(3);
    const Tensor both = ctx.make(shape);
    ops::copy_into(ctx, x, both.slice(3, 0, channels));
    ops::copy_into(ctx, beside, both.slice(3, channels, shape[3]));
    x = both;
  }
  const auto attrs = norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU);
  const Tensor first =
      modulated_conv(ctx, ops::group_norm(ctx, x, ctx[norm1], ctx[norm1_bias], attrs), ctx[conv1],
                     ctx[conv1_bias], ctx[mod]);
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kPoint) : x;
  const Tensor normed = ops::group_norm(ctx, first, ctx[norm2], ctx[norm2_bias], attrs);
  ctx[out] = ops::conv2d(ctx, normed, ctx[conv2], ctx[conv2_bias], kSame, base);
}

void UnetTokensIn::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor normed = ops::group_norm(ctx, x, ctx[norm], ctx[norm_bias],
                                        norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_NONE));
  const Tensor made = ctx[proj_filter]
                          ? ops::conv2d(ctx, normed, ctx[proj_filter], ctx[proj_bias], kPoint)
                          : ops::linear(ctx, normed, ctx[proj], ctx[proj_bias]);
  ctx[out] = made.reshape({x.size(0), x.size(1) * x.size(2), made.size(3)});
}

void UnetTokensOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden], all = ctx[tokens];
  const Tensor picture = all.reshape({x.size(0), x.size(1), x.size(2), all.size(2)});
  ctx[out] = ctx[proj_filter]
                 ? ops::conv2d(ctx, picture, ctx[proj_filter], ctx[proj_bias], kPoint, x)
                 : ops::linear(ctx, picture, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
}

void UnetContext::execute(Context& ctx) {
  const Tensor made = ops::linear(ctx, ctx[context], ctx[kv], {});
  if (ctx.has(values_of)) {
    const std::int64_t width = made.size(2) / 2;
    ops::copy_into(ctx, part_of(ops::linear(ctx, ctx[values_of], ctx[kv], {}), 1, width),
                   part_of(made, 1, width));
  }
  if (made.size(0) == ctx[x].size(0)) {
    ctx[out] = made;
    return;
  }
  Shape shape = made.shape();
  shape[0] = ctx[x].size(0);
  const Tensor all = ctx.make(shape);
  spread(ctx, made, all);
  ctx[out] = all;
}

void UnetTransformer::execute(Context& ctx) {
  Tensor x = ctx[tokens];
  const std::int64_t width = x.size(2), count = ctx[heads];
  const auto normed = [&](const Weight& weight, const Weight& bias) {
    return ops::layer_norm(ctx, x, ctx[weight], ctx[bias], ctx[eps]);
  };
  const auto add = [&](const Tensor& made, const Weight& matrix, const Weight& bias) {
    x = ops::linear(ctx, made, ctx[matrix], ctx[bias], HEDDLE_ACT_NONE, x);
  };
  if (ctx.has(crossed)) {
    add(ctx[crossed], text_proj, text_proj_bias);
    ctx[out] = with_mlp(ctx, x);
    return;
  }
  if (ctx.has(attended)) {
    add(ctx[attended], proj, proj_bias);
  } else {
    const Tensor before = normed(norm1, norm1_bias), own = ops::linear(ctx, before, ctx[qkv], {});
    const Tensor q = part_of(own, 0, width), k = part_of(own, 1, width), v = part_of(own, 2, width);
    const std::optional<TokenMerge> merge = merge_at(ctx, x.size(1));
    add(merge ? attend_merged(ctx, before, q, k, v, count, *merge)
              : attend_in_tiles(ctx, q, k, v, count, tiles_at(ctx, x.size(1))),
        proj, proj_bias);
  }
  const Tensor asked = ops::linear(ctx, normed(norm2, norm2_bias), ctx[text_q], {}), text = ctx[kv];
  add(attend_in_tiles(ctx, asked, part_of(text, 0, width), part_of(text, 1, width), count, {}),
      text_proj, text_proj_bias);
  ctx[out] = with_mlp(ctx, x);
}

void UnetDown::execute(Context& ctx) {
  ctx[out] = ops::conv2d(ctx, ctx[hidden], ctx[conv], ctx[conv_bias], kHalve);
}

void UnetUp::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t height = ctx[like].size(1), width = ctx[like].size(2);
  const auto is_double = [](std::int64_t to, std::int64_t from) {
    return to == 2 * from || to == 2 * from - 1;
  };
  Tensor larger;
  if (is_double(height, x.size(1)) && is_double(width, x.size(2))) {
    larger = ops::upsample_nearest(ctx, x, 2);
    if (larger.size(1) != height || larger.size(2) != width)
      larger = ops::contiguous(ctx, larger.slice(1, 0, height).slice(2, 0, width));
  } else {
    larger = nearest_fit(ctx, x, height, width);
  }
  ctx[out] = ops::conv2d(ctx, larger, ctx[conv], ctx[conv_bias], kSame);
}

void UnetOut::execute(Context& ctx) {
  const auto attrs = norm_attrs(ctx[eps], ctx[groups], HEDDLE_ACT_SILU);
  const Tensor normed = ops::group_norm(ctx, ctx[hidden], ctx[norm], ctx[norm_bias], attrs);
  const Tensor made = blocks::wide_conv2d(ctx, normed, ctx[conv], ctx[conv_bias], kSame);
  ctx[out] = ops::cast(ctx, made.permute({0, 3, 1, 2}), ctx[x].dtype());
}

}  // namespace heddle::denoisers
