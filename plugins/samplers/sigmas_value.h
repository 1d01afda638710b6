// SIGMAS values: a tensor (n) f32 in host memory. One call's thread.
#pragma once

#include <algorithm>

#include <heddle/node.hpp>

#include "noise_schedule.h"

namespace heddle::samplers {

// The part of SIGMAS where infer() tells their numbers, a list.
inline constexpr const char* kToldLevels = "levels";

inline Sigmas sigmas_of(Context& ctx, const Tensor& tensor) {
  if (tensor.rank() != 1 || tensor.dtype() != HEDDLE_F32)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "SIGMAS is no f32 tensor of one axis. Link the output of a scheduler node.");
  return tensor.count() == 0 ? Sigmas{} : ctx.read<float>(tensor);
}

inline Tensor tensor_of(Context& ctx, const Sigmas& sigmas) {
  const Tensor tensor = ctx.make_host({std::int64_t(sigmas.size())}, HEDDLE_F32);
  std::copy(sigmas.begin(), sigmas.end(), tensor.data<float>());
  return tensor;
}

}  // namespace heddle::samplers
