// plugins/denoisers/frame_rows.h - numbers that are told for each frame of a video, put to the
// tokens of that frame, of which a device may have a part. Used in blocks, as they are traced; any
// thread.
#pragma once

#include <algorithm>

#include <heddle/ops.hpp>

#include "joint_attention.h"

namespace heddle::denoisers {

// This device's tokens, from `begin` on, of `total` in all; `frames` rows of numbers, or one for
// all tokens. `lead` above 0: of two rows the first is of so many tokens, the second of the others.
struct FrameRows {
  std::int64_t begin, total, frames, lead = 0;

  // rows: (1, frames, D). Throws where the tokens are not those of so many frames.
  static FrameRows of(const Tensor& rows, std::int64_t begin, std::int64_t total,
                      std::int64_t lead = 0) {
    const std::int64_t frames = rows.size(1);
    if (lead > 0) return {begin, total, frames, lead};
    if (total % frames != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the noise of " + std::to_string(frames) +
                      " frames is told, of which the latent's " + std::to_string(total) +
                      " tokens are none. Give the noise mask as many frames as the latent has.");
    return {begin, total, frames};
  }

  // Calls of(tokens of this device in one frame, that frame); count: of this device's tokens.
  template <class Of>
  void each(std::int64_t count, Of&& of) const {
    const std::int64_t size = total / frames;
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const std::int64_t from = lead > 0 ? frame * lead : frame * size,
                         to = lead > 0 && frame > 0 ? total : from + (lead > 0 ? lead : size);
      const Range here{std::max(from - begin, std::int64_t{0}), std::min(to - begin, count)};
      if (here.begin < here.end) of(here, frame);
    }
  }

  // A norm of x (B, l, D), scaled and shifted by (1, frames, D).
  void modulate_into(Context& ctx, const Tensor& x, const Tensor& shift, const Tensor& scale,
                     double eps, const Tensor& out) const {
    if (frames == 1) return ops::modulated_norm_into(ctx, x, shift, scale, eps, out);
    each(x.size(1), [&](Range here, std::int64_t frame) {
      ops::modulated_norm_into(ctx, tokens(x, here), row(shift, frame), row(scale, frame), eps,
                               tokens(out, here));
    });
  }
  // x plus gate (1, frames, D) times y.
  Tensor gated(Context& ctx, const Tensor& x, const Tensor& gate, const Tensor& y) const {
    if (frames == 1) return ops::gated_add(ctx, x, gate, y);
    static const Op op(HEDDLE_OP_GATED_ADD);
    const Tensor out = ctx.make_like(x);
    each(x.size(1), [&](Range here, std::int64_t frame) {
      ctx.op(op, {tokens(x, here).raw(), row(gate, frame).raw(), tokens(y, here).raw()},
             {tokens(out, here).raw()});
    });
    return out;
  }

 private:
  static Tensor row(const Tensor& rows, std::int64_t frame) {
    return rows.slice(1, frame, frame + 1);
  }
};

}  // namespace heddle::denoisers
