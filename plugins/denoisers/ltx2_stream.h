// plugins/denoisers/ltx2_stream.h - how the tokens of one stream of LTX 2 are normalised and
// modulated: all alike, by their frame, or each by itself. Used in blocks, as they are traced; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// Norms, shifts, scales and gates of x (B, L, D) by mod (1, F', k D), where F' is 1, or of a video
// L tokens are F' frames, or L. Throws where tokens do not divide into frames.
class Ltx2Modulated {
 public:
  // pieces: k; 0: as many as there are.
  Ltx2Modulated(Context& ctx, const Tensor& mod, const Tensor& x, double eps, int pieces = 0);

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
  // Calls of(tokens [begin, end), frame).
  template <class Of>
  void each_frame(Of&& of) const;

  Context& ctx_;
  Tensor mod_;
  std::int64_t width_, tokens_, frames_;
  double eps_;
  int pieces_;
};

// The end of a stream: layer norms of x (B, L, D) with shift and scale, mod (1, F', 2 D); f32.
Tensor ltx2_final_norm(Context& ctx, const Tensor& x, const Tensor& mod, double eps);

}  // namespace heddle::denoisers
