#include "even_sides.h"

#include <string>

#include <heddle/ops.hpp>

namespace heddle::denoisers {

Tensor even_sides(Context& ctx, const Tensor& x, std::int64_t patch) {
  const std::int64_t height = x.size(2), width = x.size(3);
  const std::int64_t rows = tokens_along(height, patch) * patch,
                     columns = tokens_along(width, patch) * patch;
  if (rows == height && columns == width) return x;
  if (rows - height > height || columns - width > width)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a picture of " + std::to_string(width) + "x" + std::to_string(height) +
                    " pixels cannot be completed to squares of " + std::to_string(patch) +
                    " pixels a side. Draw one of at least " + std::to_string(patch / 2) +
                    " pixels a side, best a multiple of " + std::to_string(patch) + ".");
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
