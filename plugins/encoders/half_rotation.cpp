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

// The same of the last axis (d), of which the first `turned` are such halves.
Tensor in_pairs(Context& ctx, const Tensor& x, std::int64_t turned) {
  const std::int64_t width = x.size(-1);
  const int last = x.rank() - 1;
  Shape halves = x.shape();
  halves.back() = 2;
  halves.push_back(turned / 2);
  if (turned == width) return as_neighbours(ctx, x.reshape(halves)).reshape(x.shape());
  const Tensor all = ctx.make(x.shape(), x.dtype());
  Shape pairs = x.shape();
  pairs.back() = turned / 2;
  pairs.push_back(2);
  std::vector<int> order;
  for (int axis = 0; axis <= last + 1; ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  ops::copy_into(ctx, x.slice(last, 0, turned).reshape(halves).permute(order),
                 all.slice(last, 0, turned).reshape(pairs));
  ops::copy_into(ctx, x.slice(last, turned, width), all.slice(last, turned, width));
  return all;
}

// The same of each of so many parts of the last axis by itself.
Tensor in_pairs_of_parts(Context& ctx, const Tensor& x, std::int64_t parts) {
  Shape split = x.shape();
  const std::int64_t width = split.back() / parts;
  split.back() = parts;
  split.push_back(width);
  return in_pairs(ctx, x.reshape(split), width).reshape(x.shape());
}

}  // namespace

Tensor rotated(Context& ctx, const Tensor& x, const Tensor& norm, const Rotation& rotation) {
  const Tensor out = ctx.make(x.shape());
  const bool keeps = rotation.neighbours;
  const std::int64_t turned = rotation.turned > 0 ? rotation.turned : x.size(-1);
  const auto paired = [&](const Tensor& given) {
    return rotation.parts > 1 ? in_pairs_of_parts(ctx, given, rotation.parts)
                              : in_pairs(ctx, given, turned);
  };
  ops::norm_rope_into(ctx, keeps ? x : paired(x), keeps || !norm ? norm : paired(norm),
                      rotation.cos, rotation.sin, rotation.eps, out);
  return out;
}

Tensor rotated(Context& ctx, const Tensor& x, std::int64_t heads, const Tensor& norm,
               const Rotation& rotation) {
  return rotated(ctx, x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}), norm, rotation);
}

}  // namespace heddle::encoders
