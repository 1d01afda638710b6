// The blocks of LTX-Video's autoencoders that change how many frames, rows and columns there are.
#include <heddle/ops.hpp>

#include "autoencoder_ltxv_blocks.h"
#include "ltxv_filter.h"

namespace heddle::vae {
namespace {

// Blocks of frames, rows and columns that channels are, channel by channel.
struct LtxvBlocks {
  std::int64_t frames, side;
  std::int64_t count() const { return frames * side * side; }
};

// The frame within its block of from (H, W, count C) -> to (H side, W side, C).
void spread_frame(Context& ctx, const Tensor& from, std::int64_t frame, const LtxvBlocks& blocks,
                  const Tensor& to) {
  const std::int64_t height = from.size(0), width = from.size(1),
                     channels = from.size(2) / blocks.count(), side = blocks.side;
  ops::copy_into(
      ctx,
      from.reshape({height, width, channels, blocks.frames, side, side}).slice(3, frame, frame + 1),
      to.reshape({height, side, width, side, channels, 1}).permute({0, 2, 4, 5, 1, 3}));
}

// The other way: from (H side, W side, C) -> the frame within its block of to (H, W, count C).
void gather_frame(Context& ctx, const Tensor& from, std::int64_t frame, const LtxvBlocks& blocks,
                  const Tensor& to) {
  const std::int64_t height = to.size(0), width = to.size(1), channels = from.size(2),
                     side = blocks.side;
  ops::copy_into(
      ctx, from.reshape({height, side, width, side, channels, 1}).permute({0, 2, 4, 5, 1, 3}),
      to.reshape({height, width, channels, blocks.frames, side, side}).slice(3, frame, frame + 1));
}

// to (..., C) plus x (..., C / n), repeated n times.
void add_repeated(Context& ctx, const Tensor& x, const Tensor& to) {
  const std::int64_t channels = x.size(2);
  for (std::int64_t at = 0; at < to.size(2); at += channels) {
    const Tensor part = to.slice(2, at, at + channels);
    ops::add_into(ctx, part, x, part);
  }
}

// The mean of each group of x (H, W, n C), added to (H, W, C).
Tensor with_group_means(Context& ctx, const Tensor& to, const Tensor& x) {
  const std::int64_t height = to.size(0), width = to.size(1), channels = to.size(2),
                     group = x.size(2) / channels;
  const Tensor members = x.reshape({height, width, channels, group});
  Tensor sum = to;
  for (std::int64_t k = 0; k < group; ++k) {
    const Tensor one = ops::contiguous(ctx, members.slice(3, k, k + 1)).reshape(to.shape());
    sum = ops::combine(ctx, {{1.0, sum}, {1.0 / double(group), one}});
  }
  return sum;
}

}  // namespace

void LtxvVaeUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const LtxvBlocks blocks{ctx[frames], ctx[side]};
  const Tensor cells =
      ltxv_convolved(ctx, x, ltxv_filter<LtxvVaeUpsample>(ctx, ctx[causal]), ctx.compute());
  // Of a piece, the frame of x that the first one of the convolution's belongs to.
  const std::int64_t own_from = !ctx[framed] ? 0 : ctx[causal] ? 2 : 1;
  const std::int64_t count = blocks.frames * cells.size(1),
                     left_out = ctx[continues] ? 0 : blocks.frames - 1,
                     height = blocks.side * x.size(2), width = blocks.side * x.size(3);
  const Tensor whole = ctx.make(
      {x.size(0), count - left_out, height, width, cells.size(4) / blocks.count()}, ctx.compute());
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t t = left_out; t < count; ++t) {
      const std::int64_t from = t / blocks.frames, frame = t % blocks.frames;
      const Tensor to = ltxv_frame(whole, i, t - left_out);
      spread_frame(ctx, ltxv_frame(cells, i, from), frame, blocks, to);
      if (!ctx[residual]) continue;
      const Tensor own = ctx.make({height, width, x.size(4) / blocks.count()}, x.dtype());
      spread_frame(ctx, ltxv_frame(x, i, own_from + from), frame, blocks, own);
      add_repeated(ctx, own, to);
    }
  ctx[out] = whole;
}

void LtxvVaeDownsample::execute(Context& ctx) {
  ctx[out] =
      ltxv_convolved(ctx, ctx[hidden], ltxv_filter<LtxvVaeDownsample>(ctx, true, 2), ctx.compute());
}

void LtxvVaeGather::execute(Context& ctx) {
  const Tensor given = ctx[hidden];
  const LtxvBlocks blocks{ctx[frames], ctx[side]};
  // The first frame several times, so that it makes a block of its own; a piece has it so.
  const std::int64_t more = ctx[framed] ? 0 : blocks.frames - 1;
  Tensor x = given;
  if (more > 0) {
    x = ctx.make({given.size(0), given.size(1) + more, given.size(2), given.size(3), given.size(4)},
                 given.dtype());
    for (std::int64_t t = 0; t < more; ++t)
      ops::copy_into(ctx, given.slice(1, 0, 1), x.slice(1, t, t + 1));
    ops::copy_into(ctx, given, x.slice(1, more, x.size(1)));
  }
  const Tensor made = ltxv_convolved(ctx, x, ltxv_filter<LtxvVaeGather>(ctx, true), ctx.compute());
  const std::int64_t own_from = ctx[framed] ? 2 : 0;
  const std::int64_t count = made.size(1) / blocks.frames, height = x.size(2) / blocks.side,
                     width = x.size(3) / blocks.side, channels = made.size(4) * blocks.count();
  const Tensor whole = ctx.make({x.size(0), count, height, width, channels}, ctx.compute());
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t t = 0; t < count; ++t) {
      const Tensor cells = ctx.make({height, width, channels}, ctx.compute()),
                   own = ctx.make({height, width, x.size(4) * blocks.count()}, x.dtype());
      for (std::int64_t k = 0; k < blocks.frames; ++k) {
        gather_frame(ctx, ltxv_frame(made, i, t * blocks.frames + k), k, blocks, cells);
        gather_frame(ctx, ltxv_frame(x, i, own_from + t * blocks.frames + k), k, blocks, own);
      }
      ops::copy_into(ctx, with_group_means(ctx, cells, own), ltxv_frame(whole, i, t));
    }
  ctx[out] = whole;
}

}  // namespace heddle::vae
