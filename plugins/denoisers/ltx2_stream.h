// plugins/denoisers/ltx2_stream.h - how the tokens of one stream of LTX 2 are normalised and
// modulated: all alike, by their frame, or each by itself. A device may have a part of them. Used
// in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

#include "frame_rows.h"

namespace heddle::denoisers {

// Norms, shifts, scales and gates of x (B, l, D) by mod (1, F', k D), where F' is 1, or of a video
// its L tokens are F' frames, or L. shard: which of the L tokens x holds. Throws where tokens do
// not divide into frames.
class Ltx2Modulated {
 public:
  // pieces: k; 0: as many as there are.
  Ltx2Modulated(Context& ctx, const Tensor& mod, const Tensor& x, const heddle_shard& shard,
                double eps, int pieces = 0);

  int pieces() const { return pieces_; }
  // norm(x) times the piece behind `shift`, or `scale`, plus the piece `shift`; in the compute
  // type.
  Tensor normed(const Tensor& x, int shift, int scale = -1) const;
  // norm(x) alone.
  Tensor plain(const Tensor& x) const;
  // x plus y times a piece, f32.
  Tensor gated(const Tensor& x, int piece, const Tensor& y) const;

 private:
  Tensor piece(int n) const { return mod_.slice(2, n * width_, (n + 1) * width_); }
  // Each token has a row of its own; where not, those of a frame have.
  bool is_by_token() const { return rows_.frames > 1 && rows_.frames == rows_.total; }
  // A piece with the rows of these tokens alone.
  Tensor of_tokens(const Tensor& piece) const {
    return piece.slice(1, rows_.begin, rows_.begin + tokens_);
  }

  Context& ctx_;
  Tensor mod_;
  std::int64_t width_, tokens_;
  FrameRows rows_;
  double eps_;
  int pieces_;
};

// The end of a stream: layer norms of x (B, L, D) with shift and scale, mod (1, F', 2 D); f32.
Tensor ltx2_final_norm(Context& ctx, const Tensor& x, const Tensor& mod, double eps);

}  // namespace heddle::denoisers
