#include "wan_fun_blocks.h"

#include <heddle/ops.hpp>

#include "frame_pictures.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr auto kTokenStep = std::int32_t(kPatch);
constexpr heddle_conv2d_attrs kByTokens{{kTokenStep, kTokenStep}, {0, 0, 0, 0}},
    kAround{{1, 1}, {1, 1, 1, 1}};

}  // namespace

void WanCameraIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(camera)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[camera];
  if (given.size(1) != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the model reads " + std::to_string(filter.size(1)) +
                                             " numbers of a camera in each cell, got " +
                                             std::to_string(given.size(1)) +
                                             ". Give it what WanCameraEmbedding makes.");
  const Tensor made =
      ops::conv2d(ctx, pictures_of_frames(ctx, given), filter, ctx[bias], kByTokens);
  const Tensor raised = ops::activate(
      ctx, ops::conv2d(ctx, made, ctx[first], ctx[first_bias], kAround), HEDDLE_ACT_RELU);
  const Tensor added = ctx.make(made.shape(), HEDDLE_F32);
  ops::conv2d_into(ctx, raised, ctx[second], ctx[second_bias], kAround, made, added);
  const std::int64_t items = given.size(0);
  ctx[out] = added.reshape({items, added.count() / (items * filter.size(0)), filter.size(0)});
}

void WanReferenceIn::execute(Context& ctx) {
  const Tensor filter = ctx[weight];
  if (!ctx.has(reference)) {
    ctx[out] = ctx.make({1, 0, filter.size(0)}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[reference];
  const Tensor made =
      blocks::wide_conv2d(ctx, pictures_of_frames(ctx, given), filter, ctx[bias], kByTokens);
  ctx[out] = made.reshape({given.size(0), made.size(1) * made.size(2), made.size(3)});
}

void WanFunJoin::execute(Context& ctx) {
  const Tensor own = ctx[hidden];
  const std::int64_t items = own.size(0), tokens = own.size(1), width = own.size(2);
  const auto of = [&](const Input<Tensor>& port) {
    return ctx.has(port) && ctx[port].size(1) > 0 ? ctx[port] : Tensor();
  };
  const Tensor rays = of(camera), shown = of(reference);
  if (rays && rays.size(1) != tokens)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a camera of " + std::to_string(rays.size(1)) +
                                             " tokens, and a video of " + std::to_string(tokens) +
                                             ". Make both of one size and length.");
  const std::int64_t before = shown ? shown.size(1) : 0;
  const Tensor all = ctx.make({items, before + tokens, width}, HEDDLE_F32);
  const auto item_of = [](const Tensor& given, std::int64_t item) {
    const std::int64_t row = given.size(0) == 1 ? 0 : item;
    return given.slice(0, row, row + 1);
  };
  for (std::int64_t item = 0; item < items; ++item) {
    const Tensor to = all.slice(0, item, item + 1), video = to.slice(1, before, before + tokens);
    if (shown) ops::copy_into(ctx, item_of(shown, item), to.slice(1, 0, before));
    if (rays)
      ops::add_into(ctx, own.slice(0, item, item + 1), item_of(rays, item), video);
    else
      ops::copy_into(ctx, own.slice(0, item, item + 1), video);
  }
  ctx[out] = all;
}

}  // namespace heddle::denoisers
