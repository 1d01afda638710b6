// Convolutions that were trained as several, made one when a model is loaded: one of 1x1, one of
// 3x3 and one of 1x1, one after another, and a short cut of 1x1 around them (SPAN). Any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::loaders {

// The model whose modules in its setting "joined_convolutions" have what ".conv.0", ".conv.1",
// ".conv.2" and ".sk" make together as their ".eval_conv", whatever the file has there. REQUIRES:
// these have the shapes that its family has looked at. Sums are in double precision, rounded once.
Value with_joined_convolutions(const Value& model);

}  // namespace heddle::loaders
