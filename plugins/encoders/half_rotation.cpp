#include "half_rotation.h"

#include <heddle/ops.hpp>

namespace heddle::encoders {
namespace {

// The last two axes (2, n/2), of halves, as one of neighbours (2i, 2i + 1).
Tensor as_neighbours(Context& ctx, const Tensor& halves) {
  Shape shape = halves.shape();
  std::vector<int> order;
  for (int axis = 0; axis < int(shape.size()); ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const Tensor turned = ops::contiguous(ctx, halves.permute(order));
  const std::int64_t width = 2 * shape.back();
  shape.pop_back();
  shape.back() = width;
  return turned.reshape(shape);
}

}  // namespace

Tensor rotated(Context& ctx, const Tensor& x, std::int64_t heads, const Tensor& norm,
               const Rotation& rotation) {
  const std::int64_t width = x.size(2) / heads;
  const Shape by_head{x.size(0), x.size(1), heads, width};
  const Tensor out = ctx.make(by_head);
  const bool keeps = rotation.neighbours;
  const Tensor halves = x.reshape({x.size(0), x.size(1), heads, 2, width / 2});
  ops::norm_rope_into(ctx, keeps ? x.reshape(by_head) : as_neighbours(ctx, halves).reshape(by_head),
                      keeps || !norm ? norm : as_neighbours(ctx, norm.reshape({2, width / 2})),
                      rotation.cos, rotation.sin, rotation.eps, out);
  return out;
}

}  // namespace heddle::encoders
