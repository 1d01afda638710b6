// Checks of an op's operands against abi/ops.h, one function per op. The engine's catalogue checks
// the same at plan time; these keep a kernel from ever reading outside its views when somebody else
// calls it. They run on the calling thread, before anything is enqueued, and throw device::Error
// naming the operand and the sizes. Pure functions.
#pragma once

#include "heddle/abi/ops.h"
#include "heddle/device.hpp"
#include "op_check_batch.h"
#include "op_check_delta.h"
#include "op_check_frames.h"
#include "op_check_norm.h"
#include "op_check_rows.h"

namespace heddle::cpu {

void check_copy(const heddle_op_call& call);
void check_fill(const heddle_op_call& call);
void check_broadcast(const heddle_op_call& call);  // add, mul
void check_combine(const heddle_op_call& call);
void check_scale_clamp(const heddle_op_call& call);
void check_activation(const heddle_op_call& call);
void check_leaky_relu(const heddle_op_call& call);
void check_rsqrt(const heddle_op_call& call);
void check_gated_activation(const heddle_op_call& call);
void check_layer_norm(const heddle_op_call& call);
void check_rms_norm(const heddle_op_call& call);
void check_modulated_norm(const heddle_op_call& call);
void check_gated_add(const heddle_op_call& call);
void check_norm_rope(const heddle_op_call& call);
void check_rope_table(const heddle_op_call& call);
void check_grid_ids(const heddle_op_call& call);
void check_timestep_embedding(const heddle_op_call& call);
void check_embedding(const heddle_op_call& call);
void check_relative_bucket(const heddle_op_call& call);
void check_attention(const heddle_op_call& call);
void check_group_norm(const heddle_op_call& call);
void check_upsample_nearest(const heddle_op_call& call);
void check_depthwise_conv2d(const heddle_op_call& call);

// These two also take packed weights; a kernel looks at the layout in fits().
void check_linear(const heddle_op_call& call);
void check_conv2d(const heddle_op_call& call);

}  // namespace heddle::cpu
