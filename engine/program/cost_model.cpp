#include "engine/program/cost_model.h"

#include <algorithm>

namespace heddle::engine {

double DeviceRates::computing_seconds(const OpWork& op, double busy) const {
  const double own = op.kind == OpKind::attention   ? attention_flops_per_second
                     : op.kind == OpKind::fp8_gemm  ? fp8_flops_per_second
                     : op.kind == OpKind::int8_gemm ? int8_flops_per_second
                                                    : 0;
  const double rate = own > 0 ? own : flops_per_second;
  const double faster = 1 + rest_gain * std::clamp(2 * (1 - busy), 0.0, 1.0);
  return std::max(op.flops / (rate * faster), op.bytes / bytes_per_second);
}

}  // namespace heddle::engine
