// Rotary embeddings whose pairs are (i, i + d/2), as transformers has them, by an op that rotates
// neighbours. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

struct Rotation {
  Tensor cos, sin;  // (S, d/2) f32
  double eps;       // of the norm
  bool neighbours;  // the pairs are (2i, 2i + 1), and not (i, i + d/2)
  // Elements of a head that turn, the first; 0: all. cos and sin have a place for each pair of the
  // others, too, which turn them by nothing. Not with `neighbours`.
  std::int64_t turned = 0;
  // Parts of a head, one behind the other, each of which has such pairs. Not with the two above.
  std::int64_t parts = 1;
};

// x (B, S, n, d), normed where `norm` (d) is not empty, and rotated head by head: (B, S, n, d), in
// the compute type. The elements of each head come in another order, the same for all heads, which
// does not matter to products of queries and keys.
Tensor rotated(Context& ctx, const Tensor& x, const Tensor& norm, const Rotation& rotation);
// x (B, S, n d).
Tensor rotated(Context& ctx, const Tensor& x, std::int64_t heads, const Tensor& norm,
               const Rotation& rotation);

}  // namespace heddle::encoders
