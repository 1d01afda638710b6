// What the kernels of norms share: a row and its vectors, which broadcast over the rows.
#pragma once

#include "call.h"
#include "view.cuh"

namespace heddle::cuda {

struct Row {
  View x, weight, bias, out;  // weight and bias: vectors, or broadcast over the rows
  Space space;
  float eps;
};

enum class Norm { kLayer, kRms, kModulated, kModulatedRms };

constexpr bool has_mean(Norm norm) { return norm == Norm::kLayer || norm == Norm::kModulated; }

// A vector operand in every row.
inline View spread(const heddle_view* vector, const heddle_tensor_info& whole) {
  View view;
  if (vector == nullptr) return view;
  view.data = vector->data;
  view.dtype = vector->info.dtype;
  view.rank = static_cast<std::int32_t>(whole.rank);
  view.stride[whole.rank - 1] = 1;
  return view;
}

template <Norm kNorm>
Row row_of(const heddle_op_call& call) {
  const heddle_tensor_info& whole = out(call).info;
  View weight, bias;
  if constexpr (kNorm == Norm::kModulated) {
    weight = view_of(call.in[2], whole), bias = view_of(call.in[1], whole);
  } else if constexpr (kNorm == Norm::kModulatedRms) {
    weight = view_of(device::operand(call, 1), whole);
    bias = view_of(device::operand(call, 2), whole);
  } else {
    weight = spread(device::operand(call, 1), whole);
    if constexpr (kNorm == Norm::kLayer) bias = spread(device::operand(call, 2), whole);
  }
  Row row{view_of(call.in[0], whole),
          weight,
          bias,
          view_of(call.out[0], whole),
          space_of(whole),
          static_cast<float>(attrs<heddle_norm_attrs>(call).eps)};
  // Of a row of one element the stride has been set to 0: nothing is stepped over.
  collapse(row.space, 1, {&row.x, &row.weight, &row.bias, &row.out});
  return row;
}

// One head of a token, for norm_rope.
struct Head {
  View x, weight, cosines, sines, out;
  Space space;
  std::int64_t heads, tokens;
  float eps;
};

inline Head head_of(const heddle_op_call& call) {
  const heddle_tensor_info& whole = out(call).info;
  Head head{view_of(call.in[0], whole),
            spread(device::operand(call, 1), whole),
            {},
            {},
            view_of(call.out[0], whole),
            space_of(whole),
            whole.shape[2],
            whole.shape[1],
            static_cast<float>(attrs<heddle_norm_attrs>(call).eps)};
  if (const heddle_view* cosines = device::operand(call, 2)) {
    head.cosines = view_of(cosines, cosines->info);
    head.sines = view_of(call.in[3], call.in[3]->info);
  }
  return head;
}

}  // namespace heddle::cuda
