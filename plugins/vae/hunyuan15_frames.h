// plugins/vae/hunyuan15_frames.h - what blocks of HunyuanVideo 1.5's autoencoder and of its
// upsamplers share: frames with those before them and their edges, for a causal filter, and norms.
// Pure; one call's thread.
#pragma once

#include <heddle/frame_ops.hpp>
#include <heddle/node.hpp>

namespace heddle::vae {

inline constexpr heddle_conv2d_attrs kHunyuanPoint{{1, 1}, {0, 0, 0, 0}};            // 1x1
inline constexpr heddle_conv3d_attrs kHunyuanFilter{{1, 1, 1}, {0, 0, 0, 0, 0, 0}};  // 3x3x3
inline constexpr std::int64_t kFramesBefore = 2;
// PyTorch's normalize() divides by the length, but by no less than 1e-12.
inline constexpr double kHunyuanEps = 1e-24;

// x (T, H, W, C) as videos: (1, T, H, W, C), or of pictures (T, 1, H, W, C).
inline Tensor hunyuan_videos(const Tensor& x, bool pictures) {
  return x.reshape(
      {pictures ? x.size(0) : 1, pictures ? 1 : x.size(0), x.size(1), x.size(2), x.size(3)});
}

// Frames with those before them and all edges, for a filter: (N, 2 + T, H + 2, W + 2, C).
class HunyuanEdged {
 public:
  // shape: of the chunk, (T, H, W, C).
  HunyuanEdged(Context& ctx, const Shape& shape, bool pictures, const Tensor& kept)
      : ctx_(ctx),
        all_(ctx.make({pictures ? shape[0] : 1, kFramesBefore + (pictures ? 1 : shape[0]),
                       shape[1] + 2, shape[2] + 2, shape[3]})),
        shape_(shape),
        kept_(kept) {}

  // Where the chunk is to be written, (N, T, H, W, C).
  Tensor chunk() const { return inside().slice(1, kFramesBefore, all_.size(1)); }

  // What the filter makes of it, (T, H, W, C').
  Tensor filtered(const Tensor& weight, const Tensor& bias, heddle_dtype dtype) const {
    complete();
    const Shape shape = ops::conv3d_shape(all_, weight, kHunyuanFilter);
    const Tensor out = ctx_.make(shape, dtype);
    ops::conv3d_into(ctx_, all_, weight, bias, kHunyuanFilter, {}, out);
    return out.reshape({shape[0] * shape[1], shape[2], shape[3], shape[4]});
  }

  // What the next chunk is given, (2, H, W, C); of pictures nobody reads it.
  Tensor keeps() const {
    const std::int64_t end = all_.size(1);
    return ops::contiguous(ctx_, inside().slice(0, 0, 1).slice(1, end - kFramesBefore, end))
        .reshape({kFramesBefore, shape_[1], shape_[2], shape_[3]});
  }

 private:
  Tensor inside() const { return all_.slice(2, 1, 1 + shape_[1]).slice(3, 1, 1 + shape_[2]); }
  void complete() const {
    const Tensor pixels = inside(), first = pixels.slice(1, kFramesBefore, kFramesBefore + 1);
    for (std::int64_t t = 0; t < kFramesBefore; ++t) {
      const Tensor to = pixels.slice(1, t, t + 1);
      ops::copy_into(ctx_, kept_ ? kept_.slice(0, t, t + 1).reshape(to.shape()) : first, to);
    }
    // Columns first, then whole rows, corners among them.
    for (const int axis : {3, 2}) {
      const Tensor among = axis == 3 ? all_.slice(2, 1, 1 + shape_[1]) : all_;
      const std::int64_t last = among.size(axis) - 1;
      ops::copy_into(ctx_, among.slice(axis, 1, 2), among.slice(axis, 0, 1));
      ops::copy_into(ctx_, among.slice(axis, last - 1, last), among.slice(axis, last, last + 1));
    }
  }

  Context& ctx_;
  const Tensor all_;
  const Shape shape_;
  const Tensor kept_;
};

inline Tensor hunyuan_kept(Context& ctx, const Input<Tensor>& input) {
  return ctx.has(input) ? ctx[input] : Tensor();
}
// Before a run a chunk's type is told as f32; what products read is in the compute type.
inline Tensor in_hunyuan_compute(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

inline void hunyuan_normed_to(Context& ctx, const Tensor& x, const Tensor& weight, bool pictures,
                              const Tensor& to) {
  const Tensor made = ops::rms_norm(ctx, x, weight.reshape({x.size(3)}), kHunyuanEps);
  ops::activate_into(ctx, hunyuan_videos(made, pictures), HEDDLE_ACT_SILU, to);
}

// Each number of x (T, H, W, C) so often, one after another.
inline Tensor hunyuan_repeated(Context& ctx, const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const Tensor all = ctx.make({x.size(0), x.size(1), x.size(2), x.size(3), times});
  const Tensor one = x.reshape({x.size(0), x.size(1), x.size(2), x.size(3), 1});
  for (std::int64_t i = 0; i < times; ++i) ops::copy_into(ctx, one, all.slice(4, i, i + 1));
  return all.reshape({x.size(0), x.size(1), x.size(2), x.size(3) * times});
}

}  // namespace heddle::vae
