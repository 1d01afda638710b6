#include "compare.h"

#include <algorithm>
#include <cmath>

#include "heddle/device.hpp"

namespace heddle::conformance {

namespace {

// Half a step of the type, relative to a value: what rounding once may cost at most.
double half_step(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
      return 0x1p-11;
    case HEDDLE_BF16:
      return 0x1p-8;
    case HEDDLE_F32:
      return 0x1p-24;
    default:
      return 0;
  }
}

}  // namespace

Tolerance tolerance(heddle_dtype output, heddle_dtype compute) {
  // Sums of some hundred f32 terms deviate by tens of half steps; a bf16 operand is off by one half
  // step itself. The rounding of the output flips by a whole step where the value before lay next
  // to the middle.
  constexpr double kSums = 50;
  const double inside =
      compute == HEDDLE_F32 ? kSums * half_step(HEDDLE_F32) : 2 * half_step(compute);
  const double flips = output == HEDDLE_F32 ? 0 : half_step(output);
  const double bound = std::max(inside, flips);
  return {bound, 4 * bound};
}

std::string difference(const HostTensor& got, const HostTensor& expected, Tolerance allowed) {
  const bool exact = !device::is_float(expected.info().dtype);
  double squares = 0, norm = 0, largest = 0, worst = -1;
  std::int64_t where = -1;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double a = got.get(i), b = expected.get(i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    const double distance = same ? 0 : std::isfinite(a - b) ? std::fabs(a - b) : INFINITY;
    if (std::isfinite(b)) {
      norm += b * b;
      largest = std::max(largest, std::fabs(b));
    }
    squares += distance * distance;
    if (distance > worst) {
      worst = distance;
      where = i;
    }
  }
  if (where < 0 || worst == 0) return {};
  // Below the smallest normal f16 the steps do not shrink any more.
  constexpr double kSmallest = 0x1p-24;
  const bool close = !exact && std::isfinite(worst) &&
                     std::sqrt(squares) <= allowed.relative * std::sqrt(norm) + kSmallest &&
                     worst <= allowed.largest * largest + kSmallest;
  if (close) return {};
  return device::cat("element ", where, " of ", device::describe(expected.info()), " is ",
                     got.get(where), ", expected ", expected.get(where),
                     "; relative error of the whole ", std::sqrt(squares / std::max(norm, 1e-300)),
                     ", allowed ", allowed.relative);
}

}  // namespace heddle::conformance
