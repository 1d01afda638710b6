#include "swin_blocks.h"

#include "upscaler_blocks.h"
#include "windows.h"

namespace heddle::upscalers {
namespace {

constexpr double kBranchShare = 0.01;  // of HAT's convolutions; no file tells it

// Both kinds of layer: attention's result, projected, and an MLP, each added to what came in.
template <class Layer>
Tensor rest_of(Context& ctx, const Tensor& x, const Tensor& attended, const Tensor& branch) {
  Tensor sum =
      ops::linear(ctx, attended, ctx[Layer::proj], ctx[Layer::proj_bias], HEDDLE_ACT_NONE, x);
  if (branch) sum = ops::combine(ctx, {{1, sum}, {kBranchShare, branch}});
  const Tensor normed =
      ops::layer_norm(ctx, sum, ctx[Layer::norm2], ctx[Layer::norm2_bias], kNormEps);
  const Tensor wide =
      ops::linear(ctx, normed, ctx[Layer::fc1], ctx[Layer::fc1_bias], HEDDLE_ACT_GELU);
  return ops::linear(ctx, wide, ctx[Layer::fc2], ctx[Layer::fc2_bias], HEDDLE_ACT_NONE, sum);
}

// HAT's branch: what two convolutions make, each channel by how much of it there is anywhere.
Tensor branch_of(Context& ctx, const Tensor& normed) {
  using L = SwinLayer;
  if (!ctx[L::conv1]) return {};
  const Tensor narrow = ops::conv2d(ctx, normed, ctx[L::conv1], ctx[L::conv1_bias], kSame);
  ops::activate_into(ctx, narrow, HEDDLE_ACT_GELU, narrow);
  const Tensor made = ops::conv2d(ctx, narrow, ctx[L::conv2], ctx[L::conv2_bias], kSame);
  const Tensor few =
      ops::conv2d(ctx, mean_of(ctx, made), ctx[L::squeeze], ctx[L::squeeze_bias], kPoint);
  ops::activate_into(ctx, few, HEDDLE_ACT_RELU, few);
  const Tensor share =
      sigmoid(ctx, ops::conv2d(ctx, few, ctx[L::excite], ctx[L::excite_bias], kPoint));
  return ops::mul(ctx, made, share);
}

}  // namespace

void SwinLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor normed = ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], kNormEps);
  const Tensor projected = ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  const std::int64_t side = ctx[window], shift = ctx.has(masks) ? side / 2 : 0;
  const Tensor attended = ctx.make(x.shape());
  attend_in_windows(ctx, projected, {ctx[heads], {side, side}, shift, shift},
                    position_bias(ctx, ctx[table], ctx[ids]),
                    shift > 0 ? Tensor(ctx[masks]) : Tensor(), attended);
  ctx[out] = rest_of<SwinLayer>(ctx, x, attended, branch_of(ctx, normed));
}

void OverlapLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor normed = ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], kNormEps);
  const Tensor projected = ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  const Tensor attended = attend_to_overlaps(ctx, projected, ctx[heads], ctx[window], ctx[reach],
                                             position_bias(ctx, ctx[table], ctx[ids]));
  ctx[out] = rest_of<OverlapLayer>(ctx, x, attended, {});
}

}  // namespace heddle::upscalers
