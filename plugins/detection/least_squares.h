// plugins/detection/least_squares.h - the number that makes a sum of squares least, by the method
// of Levenberg and Marquardt as MINPACK's lmdif has it (More, Garbow, Hillstrom 1980), for one
// unknown, whose steps are measured by the steepest slope yet. scipy.optimize.least_squares(
// method="lm") of 1.16 and later is the same, so where a search ends early it ends at the same
// number (earlier ones measured steps as they are). Pure; any thread.
#pragma once

#include <functional>
#include <memory_resource>
#include <vector>

namespace heddle::detection {

// Writes what is left over at x.
using Residuals = std::function<void(double x, std::pmr::vector<double>& out)>;

struct LeastSquares {
  double start = 0;
  double relative_error = 1e-8;  // of the sum of squares: where a step promises and gains less
  int most_calls = 200;
};
// `count`: of what is left over. Not a number where that is not finite at the start.
double least_squares(const Residuals& residuals, std::size_t count, const LeastSquares& search,
                     std::pmr::memory_resource& memory);

}  // namespace heddle::detection
