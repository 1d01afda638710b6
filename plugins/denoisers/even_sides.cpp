#include "even_sides.h"

#include <heddle/ops.hpp>

#include "patches.h"

namespace heddle::denoisers {

Tensor even_sides(Context& ctx, const Tensor& x) {
  const std::int64_t height = x.size(2), width = x.size(3);
  const std::int64_t rows = tokens_along(height) * kPatch, columns = tokens_along(width) * kPatch;
  if (rows == height && columns == width) return x;
  const Tensor even = ctx.make({x.size(0), x.size(1), rows, columns}, x.dtype());
  const auto part = [](const Tensor& t, std::int64_t top, std::int64_t bottom, std::int64_t left,
                       std::int64_t right) {
    return t.slice(2, top, bottom).slice(3, left, right);
  };
  const std::int64_t low = rows - height, right = columns - width;
  ops::copy_into(ctx, x, part(even, 0, height, 0, width));
  if (low > 0) ops::copy_into(ctx, part(x, 0, low, 0, width), part(even, height, rows, 0, width));
  if (right > 0)
    ops::copy_into(ctx, part(x, 0, height, 0, right), part(even, 0, height, width, columns));
  if (low > 0 && right > 0)
    ops::copy_into(ctx, part(x, 0, low, 0, right), part(even, height, rows, width, columns));
  return even;
}

}  // namespace heddle::denoisers
