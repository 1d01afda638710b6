#include "linspace.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {

std::vector<float> linspace(float first, float last, int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  if (count == 0) return values;
  const float step = count > 1 ? (last - first) / static_cast<float>(count - 1) : 0.0f;
  for (int k = 0; k < count; ++k) {
    values[static_cast<std::size_t>(k)] = k < count / 2 || count == 1
                                              ? first + step * static_cast<float>(k)
                                              : last - step * static_cast<float>(count - 1 - k);
  }
  return values;
}

}  // namespace heddle::samplers
