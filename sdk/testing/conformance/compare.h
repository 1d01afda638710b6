// Comparing what a device gave with what it should have given. Two bounds for floats: the relative
// error of the whole output, |a - b| / |b| in the Euclidean norm, and the largest single deviation
// against the largest expected value; a kernel that is right on average but wrong in a corner fails
// the second. Integers have to be equal. Pure functions.
#pragma once

#include <string>

#include "host_tensor.h"

namespace heddle::conformance {

struct Tolerance {
  double relative;  // of the whole output
  double largest;   // of one element, against the largest expected magnitude
};

// What rounding once to the output's type, or computing in `compute`, explains; the coarser of the
// two.
Tolerance tolerance(heddle_dtype output, heddle_dtype compute);

// Empty when equal within the tolerance; else what differs most, with its place and both values.
std::string difference(const HostTensor& got, const HostTensor& expected, Tolerance allowed);

}  // namespace heddle::conformance
