// plugins/vae/ltxv_filter.h - the convolutions over frames of the autoencoders of LTX-Video
// (autoencoder_ltxv_blocks.h) and of MiniMax H3 (h3_video_blocks.h), and the norms before them.
// Shapes: B videos, T frames, H x W cells, C channels. Functions of blocks that are being traced;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// A filter (O, C, 3, R, S) over three frames. Each frame it makes reads that frame and its
// neighbours, or, where it is causal, that frame and the two before it. Before the first frame
// there is the first one once more, behind the last one the last. Around a frame there are zeros,
// or what its edges mirror.
struct LtxvFilter {
  Tensor weight, bias;
  bool is_causal = false, mirrors = false;
  std::int64_t stride = 1;        // of frames, rows and columns
  std::int64_t frame_stride = 0;  // of frames; 0: as of rows and columns
  bool begins_empty = false;      // before the first frame there are zeros instead
  bool reads_on_behind = false;   // of mirrors: behind the last row and column alone
  // The frames that the first and the last one read besides are in x, as of a piece of a video.
  bool has_neighbours = false;
};

// That of a block with the weights conv and bias.
template <class B>
LtxvFilter ltxv_filter(Context& ctx, bool is_causal, std::int64_t stride = 1) {
  LtxvFilter filter{ctx[B::conv], ctx[B::bias], is_causal, ctx[B::mirrors], stride};
  filter.has_neighbours = ctx[B::framed];
  return filter;
}

// x (B, T, H, W, C), plus `base` where that is given, -> (B, T', H', W', C') in `dtype`. Sums are
// in f32 and rounded once.
Tensor ltxv_convolved(Context& ctx, const Tensor& x, const LtxvFilter& filter, heddle_dtype dtype,
                      const Tensor& base = {});

// Of each channel (C) f32: what a norm is scaled and shifted by. None: not at all.
struct LtxvModulation {
  Tensor factor, shift;
};
// The nth pair, shift and then scale, of embedding (k C) plus table (k, C), k C numbers each. None
// without an embedding.
LtxvModulation ltxv_modulation(Context& ctx, const Tensor& embedding, const Tensor& table,
                               std::int64_t nth);

// SiLU of x in a norm without a mean over its channels, modulated.
Tensor ltxv_activated(Context& ctx, const Tensor& x, double eps, const LtxvModulation& by = {});

// Frames as items of a batch.
inline Tensor ltxv_pictures(const Tensor& x) {
  return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3), x.size(4)});
}

// One frame of (B, T, H, W, C): (H, W, C).
inline Tensor ltxv_frame(const Tensor& x, std::int64_t item, std::int64_t frame) {
  return x.slice(0, item, item + 1)
      .slice(1, frame, frame + 1)
      .reshape({x.size(2), x.size(3), x.size(4)});
}

}  // namespace heddle::vae
