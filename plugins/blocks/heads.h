// plugins/blocks/heads.h - the two faces of an activation around attention. Views only: nothing is
// copied, and the tensor keeps its elements. Any thread.
#pragma once

#include <heddle/value.hpp>

namespace heddle::blocks {

// (B, S, H d) -> (B, S, H, d).
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads});
}

// (B, S, H, d) -> (B, S, H d).
inline Tensor join_heads(const Tensor& x) {
  return x.reshape({x.size(0), x.size(1), x.size(2) * x.size(3)});
}

}  // namespace heddle::blocks
