#include "ltx2_stream.h"

#include <string>

#include <heddle/norm_ops.hpp>

namespace heddle::denoisers {

Ltx2Modulated::Ltx2Modulated(Context& ctx, const Tensor& mod, const Tensor& x, double eps,
                             int pieces)
    : ctx_(ctx),
      mod_(mod),
      width_(x.size(2)),
      tokens_(x.size(1)),
      frames_(mod.size(1)),
      eps_(eps),
      pieces_(pieces > 0 ? pieces : int(mod.size(2) / x.size(2))) {
  if (tokens_ % frames_ != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the noise of " + std::to_string(frames_) + " frames is told, of which the " +
                    std::to_string(tokens_) +
                    " tokens of the latent are none. Give the noise mask as many frames as the "
                    "latent has.");
}

template <class Of>
void Ltx2Modulated::each_frame(Of&& of) const {
  const std::int64_t size = tokens_ / frames_;
  for (std::int64_t frame = 0; frame < frames_; ++frame)
    of(frame * size, (frame + 1) * size, frame);
}

Tensor Ltx2Modulated::plain(const Tensor& x) const { return ops::rms_norm(ctx_, x, {}, eps_); }

Tensor Ltx2Modulated::normed(const Tensor& x, int shift, int scale) const {
  const Tensor added = piece(shift), factor = piece(scale < 0 ? shift + 1 : scale),
               out = ctx_.make(x.shape());
  if (frames_ > 1 && frames_ == tokens_) {  // each token has its own
    ops::modulated_rms_norm_into(ctx_, x, factor, added, eps_, out);
    return out;
  }
  each_frame([&](std::int64_t begin, std::int64_t end, std::int64_t frame) {
    ops::modulated_rms_norm_into(ctx_, x.slice(1, begin, end), factor.slice(1, frame, frame + 1),
                                 added.slice(1, frame, frame + 1), eps_, out.slice(1, begin, end));
  });
  return out;
}

Tensor Ltx2Modulated::gated(const Tensor& x, int n, const Tensor& y) const {
  const Tensor gate = piece(n), out = ctx_.make_like(x);
  if (frames_ > 1 && frames_ == tokens_) {
    ops::mul_into(ctx_, y, gate, out);
    ops::add_into(ctx_, out, x, out);
    return out;
  }
  static const Op op(HEDDLE_OP_GATED_ADD);
  each_frame([&](std::int64_t begin, std::int64_t end, std::int64_t frame) {
    ctx_.op(op,
            {x.slice(1, begin, end).raw(), gate.slice(1, frame, frame + 1).raw(),
             y.slice(1, begin, end).raw()},
            {out.slice(1, begin, end).raw()});
  });
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
