#include "attention_blocks.h"

#include <cmath>

#include <heddle/batch_ops.hpp>

#include "plugins/blocks/heads.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

// Where a port may be left out.
Tensor given(const Context& ctx, const Input<Tensor>& port) {
  return ctx.has(port) ? ctx[port] : Tensor();
}

}  // namespace

void Attend::execute(Context& ctx) {
  const Tensor whole = ctx[x];
  const bool is_before = ctx[norm_first];
  const std::int64_t head_count = ctx[heads];
  const Tensor from =
      is_before ? normalised(ctx, whole, ctx[norm], ctx[norm_bias], ctx[eps]) : whole;
  const Tensor queries = narrow(ctx, sum(ctx, from, given(ctx, places)));
  Tensor keys = queries, values = narrow(ctx, from);
  if (ctx.has(memory)) {
    keys = narrow(ctx, sum(ctx, ctx[memory], given(ctx, memory_places)));
    values = narrow(ctx, ctx[memory]);
  }
  const auto part = [&](const Tensor& of, const Weight& weight, const Weight& added) {
    return blocks::split_heads(ops::linear(ctx, of, ctx[weight], ctx[added]), head_count);
  };
  const Tensor asked = part(queries, q, q_bias);
  const double scale = 1 / std::sqrt(double(asked.size(3)));
  const Tensor attended = blocks::join_heads(ops::attention(
      ctx, asked, part(keys, k, k_bias), part(values, v, v_bias), given(ctx, bias), scale));
  const Tensor made = product(ctx, attended, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE,
                              ctx[keeps] ? whole : Tensor());
  ctx[out] = is_before ? made : normalised(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps]);
}

void FeedForward::execute(Context& ctx) {
  const Tensor whole = ctx[x];
  const bool is_before = ctx[norm_first];
  const Tensor from =
      is_before ? normalised(ctx, whole, ctx[norm], ctx[norm_bias], ctx[eps]) : whole;
  const Tensor raised = ops::linear(ctx, narrow(ctx, from), ctx[up], ctx[up_bias],
                                    ctx[gelu] ? HEDDLE_ACT_GELU : HEDDLE_ACT_RELU);
  const Tensor made = product(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, whole);
  ctx[out] = is_before ? made : normalised(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps]);
}

void TokenHead::execute(Context& ctx) {
  const Tensor all = ctx[x];
  const std::int64_t last = ctx[end] == 0 ? all.size(1) : ctx[end];
  const std::int64_t step = ctx[every], groups = (last - ctx[begin]) / step, one_of = ctx[pick];
  const Tensor taken = ops::contiguous(ctx, all.slice(1, ctx[begin], last))
                           .reshape({all.size(0), groups, step, all.size(2)});
  Tensor tokens = ops::contiguous(ctx, taken.slice(2, one_of, one_of + 1))
                      .reshape({all.size(0), groups, all.size(2)});
  if (ctx[norm]) tokens = normalised(ctx, tokens, ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor one = product(ctx, tokens, ctx[first], ctx[first_bias], HEDDLE_ACT_RELU),
               two = product(ctx, one, ctx[second], ctx[second_bias], HEDDLE_ACT_RELU);
  ctx[out] = product(ctx, two, ctx[third], ctx[third_bias], HEDDLE_ACT_NONE, given(ctx, base));
}

void MaskProduct::execute(Context& ctx) {
  const Tensor of = ctx[codes], grid = ctx[pixels];
  const std::int64_t height = grid.size(1), width = grid.size(2), channels = grid.size(3);
  const Tensor columns =
      ops::contiguous(ctx, grid.reshape({1, height * width, channels}).permute({0, 2, 1}));
  ctx[out] =
      ops::batched_product(ctx, of, columns, HEDDLE_F32).reshape({1, of.size(1), height, width});
}

}  // namespace heddle::detection
