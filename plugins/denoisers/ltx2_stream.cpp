#include "ltx2_stream.h"

#include <heddle/norm_ops.hpp>

namespace heddle::denoisers {

Ltx2Modulated::Ltx2Modulated(Context& ctx, const Tensor& mod, const Tensor& x,
                             const heddle_shard& shard, double eps, int pieces)
    : ctx_(ctx),
      mod_(mod),
      width_(x.size(2)),
      tokens_(x.size(1)),
      rows_(FrameRows::of(mod, shard.begin, shard.total)),
      eps_(eps),
      pieces_(pieces > 0 ? pieces : int(mod.size(2) / x.size(2))) {}

Tensor Ltx2Modulated::plain(const Tensor& x) const { return ops::rms_norm(ctx_, x, {}, eps_); }

Tensor Ltx2Modulated::normed(const Tensor& x, int shift, int scale) const {
  const Tensor added = piece(shift), factor = piece(scale < 0 ? shift + 1 : scale),
               out = ctx_.make(x.shape());
  if (is_by_token()) {
    ops::modulated_rms_norm_into(ctx_, x, of_tokens(factor), of_tokens(added), eps_, out);
    return out;
  }
  rows_.each(tokens_, [&](Range here, std::int64_t frame) {
    ops::modulated_rms_norm_into(ctx_, tokens(x, here), factor.slice(1, frame, frame + 1),
                                 added.slice(1, frame, frame + 1), eps_, tokens(out, here));
  });
  return out;
}

Tensor Ltx2Modulated::gated(const Tensor& x, int n, const Tensor& y) const {
  const Tensor gate = piece(n);
  if (!is_by_token()) return rows_.gated(ctx_, x, gate, y);
  const Tensor out = ctx_.make_like(x);
  ops::mul_into(ctx_, y, of_tokens(gate), out);
  ops::add_into(ctx_, out, x, out);
  return out;
}

Tensor ltx2_final_norm(Context& ctx, const Tensor& x, const Tensor& mod, double eps) {
  const std::int64_t width = x.size(2), frames = mod.size(1), size = x.size(1) / frames;
  const Tensor normed = ctx.make(x.shape(), HEDDLE_F32), shift = mod.slice(2, 0, width),
               scale = mod.slice(2, width, 2 * width);
  for (std::int64_t frame = 0; frame < frames; ++frame)
    ops::modulated_norm_into(ctx, x.slice(1, frame * size, (frame + 1) * size),
                             shift.slice(1, frame, frame + 1), scale.slice(1, frame, frame + 1),
                             eps, normed.slice(1, frame * size, (frame + 1) * size));
  return normed;
}

}  // namespace heddle::denoisers
