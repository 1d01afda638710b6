#include "engine/device/op_catalog.h"

#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/text.h"
#include "engine/device/delta_op_checks.h"
#include "engine/device/examined_call.h"
#include "engine/device/frame_op_checks.h"
#include "engine/device/kernel_table.h"
#include "engine/device/norm_op_checks.h"
#include "engine/device/row_op_checks.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/batch_ops.h"
#include "heddle/abi/delta_ops.h"
#include "heddle/abi/frame_ops.h"
#include "heddle/abi/ops.h"
#include "heddle/abi/row_ops.h"

namespace heddle::engine {

namespace {

void check_broadcast(const Examined& e) {
  e.operands(2, 2, 1);
  const auto &a = *e.in(0), &b = *e.in(1), &o = e.out();
  e.require(a.rank == b.rank && a.rank == o.rank, "the operands' numbers of axes differ");
  for (std::uint32_t i = 0; i < o.rank; ++i)
    e.require((a.shape[i] == o.shape[i] || a.shape[i] == 1) &&
                  (b.shape[i] == o.shape[i] || b.shape[i] == 1) &&
                  (a.shape[i] == o.shape[i] || b.shape[i] == o.shape[i]),
              cat("axis ", i, " does not broadcast"));
}

void check_norm(const Examined& e, bool with_bias) {
  e.operands(1, with_bias ? 3 : 2, 1);
  e.same(*e.in(0), e.out(), "the input's and the output's shape");
  e.vector(1, e.size(*e.in(0), -1), "weight");
  e.vector(2, e.size(*e.in(0), -1), "bias");
  e.attrs<heddle_norm_attrs>();
}

// (B|1, 1, D) against (B, S, D).
void check_row(const Examined& e, std::uint32_t i, const heddle_tensor_info& x,
               std::string_view name) {
  const auto& row = *e.in(i);
  e.rank(row, 3, name);
  e.require((row.shape[0] == x.shape[0] || row.shape[0] == 1) && row.shape[1] == 1 &&
                row.shape[2] == x.shape[2],
            cat("the ", name, " is not (", x.shape[0], "|1, 1, ", x.shape[2], ")"));
}

void check_linear(const Examined& e) {
  e.operands(2, 4, 1);
  const auto &x = *e.in(0), &w = *e.in(1), &o = e.out();
  e.require(x.rank >= 1 && x.rank == o.rank, "the input's and the output's numbers of axes differ");
  e.rank(w, 2, "weight");
  e.equal(e.size(x, -1), w.shape[1], "the input's last size and the weight's inner size");
  e.equal(e.size(o, -1), w.shape[0], "the output's last size and the weight's outer size");
  for (std::uint32_t i = 0; i + 1 < x.rank; ++i) e.equal(x.shape[i], o.shape[i], cat("axis ", i));
  e.vector(2, w.shape[0], "bias");
  if (const auto* r = e.in(3)) e.same(*r, o, "the residual's and the output's shape");
  e.attrs<heddle_activation_attrs>();
}

void check_batched_product(const Examined& e) {
  e.operands(2, 2, 1);
  const auto &a = *e.in(0), &b = *e.in(1), &o = e.out();
  e.rank(a, 3, "first matrix");
  e.rank(b, 3, "second matrix");
  e.rank(o, 3, "output");
  e.require(a.shape[0] == b.shape[0] && a.shape[0] == o.shape[0], "the batch sizes differ");
  e.equal(a.shape[2], b.shape[1], "the inner sizes");
  e.require(o.shape[1] == a.shape[1] && o.shape[2] == b.shape[2],
            cat("the output is not ", a.shape[1], " by ", b.shape[2]));
}

void check_attention(const Examined& e) {
  e.operands(3, 4, 1);
  const auto &q = *e.in(0), &k = *e.in(1), &v = *e.in(2), &o = e.out();
  e.rank(q, 4, "query");
  e.rank(k, 4, "key");
  e.rank(v, 4, "value");
  e.rank(o, 4, "output");
  e.require(q.shape[0] == k.shape[0] && q.shape[0] == v.shape[0] && q.shape[0] == o.shape[0],
            "the batch sizes differ");
  e.require(q.shape[2] == k.shape[2] && q.shape[2] == v.shape[2] && q.shape[2] == o.shape[2],
            "the numbers of heads differ");
  e.equal(q.shape[3], k.shape[3], "the head sizes of query and key");
  e.equal(v.shape[3], o.shape[3], "the head sizes of value and output");
  e.equal(k.shape[1], v.shape[1], "the lengths of key and value");
  e.equal(q.shape[1], o.shape[1], "the lengths of query and output");
  e.require(k.shape[1] > 0, "there are no keys");
  if (const auto* b = e.in(3)) {
    e.rank(*b, 4, "bias");
    e.require((b->shape[0] == 1 || b->shape[0] == q.shape[0]) &&
                  (b->shape[1] == 1 || b->shape[1] == q.shape[2]) && b->shape[2] == q.shape[1] &&
                  b->shape[3] == k.shape[1],
              "the bias does not broadcast to (batch, heads, queries, keys)");
  }
  const float cap = e.attrs<heddle_attention_attrs>().cap;
  e.require(cap >= 0 && std::isfinite(cap), "the cap is neither 0 nor a positive number");
}

// The sides of a picture that a filter has gone over.
void check_filtered(const Examined& e, const std::int64_t* filter) {
  const auto &x = *e.in(0), &o = e.out();
  const auto& a = e.attrs<heddle_conv2d_attrs>();
  e.require(a.stride[0] > 0 && a.stride[1] > 0, "a stride is not positive");
  for (const std::int32_t p : a.padding) e.require(p >= 0, "a padding is negative");
  e.equal(x.shape[0], o.shape[0], "the batch sizes");
  for (int d = 0; d < 2; ++d) {
    const std::int64_t padded = x.shape[1 + d] + a.padding[d] + a.padding[2 + d] - filter[d];
    e.require(padded >= 0, "the filter is larger than the padded input");
    e.equal(o.shape[1 + d], padded / a.stride[d] + 1,
            d == 0 ? "the output's height" : "the output's width");
  }
}

void check_conv2d(const Examined& e) {
  e.operands(2, 4, 1);
  const auto &x = *e.in(0), &w = *e.in(1), &o = e.out();
  e.rank(x, 4, "input");
  e.rank(w, 4, "weight");
  e.rank(o, 4, "output");
  e.equal(x.shape[3], w.shape[1], "the input's and the weight's channels");
  e.equal(o.shape[3], w.shape[0], "the output's and the weight's channels");
  check_filtered(e, w.shape + 2);
  e.vector(2, w.shape[0], "bias");
  if (const auto* r = e.in(3)) e.same(*r, o, "the residual's and the output's shape");
}

void check_depthwise_conv2d(const Examined& e) {
  e.operands(2, 3, 1);
  const auto &x = *e.in(0), &w = *e.in(1), &o = e.out();
  e.rank(x, 4, "input");
  e.rank(w, 3, "weight");
  e.rank(o, 4, "output");
  e.equal(x.shape[3], w.shape[2], "the input's and the weight's channels");
  e.equal(o.shape[3], w.shape[2], "the output's and the weight's channels");
  check_filtered(e, w.shape);
  e.vector(2, w.shape[2], "bias");
}

void check_rope_table(const Examined& e) {
  e.operands(1, 1, 2);
  const auto& ids = *e.in(0);
  const auto& a = e.attrs<heddle_rope_table_attrs>();
  e.rank(ids, 2, "ids");
  e.require(a.axes >= 1 && a.axes <= 4 && ids.shape[1] == a.axes,
            "the number of axes is not that of the ids");
  std::int64_t pairs = 0;
  for (int i = 0; i < a.axes; ++i) {
    e.require(a.dim[i] >= 0 && a.dim[i] % 2 == 0, "an axis' size is odd");
    pairs += a.dim[i] / 2;
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    e.rank(e.out(i), 2, "table");
    e.require(e.out(i).shape[0] == ids.shape[0] && e.out(i).shape[1] == pairs &&
                  e.out(i).dtype == HEDDLE_F32,
              cat("a table is not f32 (", ids.shape[0], ", ", pairs, ")"));
  }
}

void check_group_norm(const Examined& e) {
  e.operands(3, 3, 1);
  const auto& x = *e.in(0);
  e.rank(x, 4, "input");
  e.same(x, e.out(), "the input's and the output's shape");
  e.vector(1, x.shape[3], "weight");
  e.vector(2, x.shape[3], "bias");
  const auto& a = e.attrs<heddle_group_norm_attrs>();
  e.require(a.groups > 0 && x.shape[3] % a.groups == 0,
            cat(x.shape[3], " channels do not divide into ", a.groups, " groups"));
}

void check_combine(const Examined& e) {
  e.operands(1, 4, 1);
  for (std::uint32_t i = 0; i < 4; ++i)
    if (const auto* t = e.in(i)) e.same(*t, e.out(), "the shapes");
  e.attrs<heddle_combine_attrs>();
}

void check_leaky_relu(const Examined& e) {
  e.operands(1, 2, 1);
  const auto& out = e.out();
  e.same(*e.in(0), out, "the shapes");
  e.attrs<heddle_leaky_relu_attrs>();
  if (const auto* slope = e.in(1)) {
    e.rank(*slope, out.rank, "slope");
    for (std::uint32_t axis = 0; axis < out.rank; ++axis)
      e.require(slope->shape[axis] == 1 || slope->shape[axis] == out.shape[axis],
                cat("the slope has ", slope->shape[axis], " along axis ", axis, ", the input ",
                    out.shape[axis]));
  }
}

void check_gated_activation(const Examined& e) {
  e.operands(2, 2, 1);
  e.same(*e.in(0), e.out(), "the shapes");
  e.same(*e.in(1), e.out(), "the shapes");
  e.attrs<heddle_activation_attrs>();
}

void check_modulated_norm(const Examined& e) {
  e.operands(3, 3, 1);
  e.rank(*e.in(0), 3, "input");
  e.same(*e.in(0), e.out(), "the input's and the output's shape");
  check_row(e, 1, *e.in(0), "shift");
  check_row(e, 2, *e.in(0), "scale");
  e.attrs<heddle_norm_attrs>();
}

void check_gated_add(const Examined& e) {
  e.operands(3, 3, 1);
  e.rank(*e.in(0), 3, "input");
  e.same(*e.in(0), e.out(), "the shapes");
  e.same(*e.in(2), e.out(), "the shapes");
  check_row(e, 1, *e.in(0), "gate");
}

void check_grid_ids(const Examined& e) {
  e.operands(0, 0, 1);
  const auto& a = e.attrs<heddle_grid_ids_attrs>();
  e.rank(e.out(), 2, "output");
  e.require(a.size[0] >= 0 && a.size[1] >= 0 && a.size[2] >= 0 &&
                e.out().shape[0] == a.size[0] * a.size[1] * a.size[2] && e.out().shape[1] == 3,
            "the output is not (T*H*W, 3)");
}

void check_timestep_embedding(const Examined& e) {
  e.operands(1, 1, 1);
  e.rank(*e.in(0), 1, "input");
  e.rank(e.out(), 2, "output");
  e.equal(e.in(0)->shape[0], e.out().shape[0], "the lengths");
  e.require(e.out().shape[1] % 2 == 0, "the width is odd");
  e.attrs<heddle_timestep_embedding_attrs>();
}

void check_embedding(const Examined& e) {
  e.operands(2, 2, 1);
  const auto& ids = *e.in(1);
  e.rank(*e.in(0), 2, "table");
  e.rank(e.out(), ids.rank + 1, "output");
  for (std::uint32_t i = 0; i < ids.rank; ++i)
    e.equal(ids.shape[i], e.out().shape[i], cat("axis ", i));
  e.equal(e.in(0)->shape[1], e.size(e.out(), -1), "the table's and the output's width");
  e.require(ids.dtype == HEDDLE_I32 || ids.dtype == HEDDLE_I64, "the ids are neither i32 nor i64");
}

void check_relative_bucket(const Examined& e) {
  e.operands(0, 0, 1);
  e.rank(e.out(), 2, "output");
  e.require(e.out().dtype == HEDDLE_I32, "the output is not i32");
  const auto& a = e.attrs<heddle_relative_bucket_attrs>();
  e.require(a.buckets >= 4 && a.max_distance > a.buckets / 2,
            "too few buckets, or a distance too small");
}

void check_upsample_nearest(const Examined& e) {
  e.operands(1, 1, 1);
  e.rank(*e.in(0), 4, "input");
  e.rank(e.out(), 4, "output");
  const auto &x = *e.in(0), &o = e.out();
  e.require(x.shape[0] == o.shape[0] && x.shape[3] == o.shape[3], "batch or channels differ");
  for (int i = 1; i < 3; ++i)
    e.require(x.shape[i] > 0 && o.shape[i] % x.shape[i] == 0, "a factor is not whole");
}

using Check = void (*)(const Examined&);

const std::map<std::string_view, Check>& checks() {
  static const std::map<std::string_view, Check> table{
      {HEDDLE_OP_COPY,
       [](const Examined& e) {
         e.operands(1, 1, 1);
         e.same(*e.in(0), e.out(), "the shapes");
       }},
      {HEDDLE_OP_FILL,
       [](const Examined& e) {
         e.operands(0, 0, 1);
         e.attrs<heddle_fill_attrs>();
       }},
      {HEDDLE_OP_ADD, check_broadcast},
      {HEDDLE_OP_MUL, check_broadcast},
      {HEDDLE_OP_COMBINE, check_combine},
      {HEDDLE_OP_SCALE_CLAMP,
       [](const Examined& e) {
         e.operands(1, 1, 1);
         e.same(*e.in(0), e.out(), "the shapes");
         e.attrs<heddle_scale_clamp_attrs>();
       }},
      {HEDDLE_OP_ACTIVATION,
       [](const Examined& e) {
         e.operands(1, 1, 1);
         e.same(*e.in(0), e.out(), "the shapes");
         e.attrs<heddle_activation_attrs>();
       }},
      {HEDDLE_OP_LEAKY_RELU, check_leaky_relu},
      {HEDDLE_OP_RSQRT,
       [](const Examined& e) {
         e.operands(1, 1, 1);
         e.same(*e.in(0), e.out(), "the shapes");
       }},
      {HEDDLE_OP_GATED_ACTIVATION, check_gated_activation},
      {HEDDLE_OP_LAYER_NORM, [](const Examined& e) { check_norm(e, true); }},
      {HEDDLE_OP_RMS_NORM, [](const Examined& e) { check_norm(e, false); }},
      {HEDDLE_OP_MODULATED_NORM, check_modulated_norm},
      {HEDDLE_OP_GATED_ADD, check_gated_add},
      {HEDDLE_OP_NORM_ROPE, check_norm_rope},
      {HEDDLE_OP_ROPE_TABLE, check_rope_table},
      {HEDDLE_OP_GRID_IDS, check_grid_ids},
      {HEDDLE_OP_TIMESTEP_EMBEDDING, check_timestep_embedding},
      {HEDDLE_OP_EMBEDDING, check_embedding},
      {HEDDLE_OP_RELATIVE_BUCKET, check_relative_bucket},
      {HEDDLE_OP_MATCH_ROWS, check_match_rows},
      {HEDDLE_OP_MERGE_ROWS, check_merge_rows},
      {HEDDLE_OP_ATTENTION, check_attention},
      {HEDDLE_OP_LINEAR, check_linear},
      {HEDDLE_OP_BATCHED_PRODUCT, check_batched_product},
      {HEDDLE_OP_GATED_DELTA_RULE, check_gated_delta_rule},
      {HEDDLE_OP_MODULATED_RMS_NORM, check_modulated_rms_norm},
      {HEDDLE_OP_NORM_ROPE_HALF, check_norm_rope_half},
      {HEDDLE_OP_CONV2D, check_conv2d},
      {HEDDLE_OP_CONV3D, check_conv3d},
      {HEDDLE_OP_DEPTHWISE_CONV2D, check_depthwise_conv2d},
      {HEDDLE_OP_GROUP_NORM, check_group_norm},
      {HEDDLE_OP_UPSAMPLE_NEAREST, check_upsample_nearest},
  };
  return table;
}

double elements(const heddle_view* view) {
  return view == nullptr ? 0 : double(element_count(view->info));
}

}  // namespace

void check_op(const heddle_op_call& call) {
  const auto found = checks().find(call.op);
  if (found != checks().end()) found->second(Examined(call));
}

OpCost op_cost(const heddle_op_call& call) {
  OpCost cost;
  for (std::uint32_t i = 0; i < call.in_count; ++i)
    if (call.in[i] != nullptr) cost.bytes += double(dense_bytes(call.in[i]->info));
  for (std::uint32_t i = 0; i < call.out_count; ++i)
    cost.bytes += double(dense_bytes(call.out[i]->info));
  const std::string_view op = call.op;
  const double out = call.out_count > 0 ? elements(call.out[0]) : 0;
  if (op == HEDDLE_OP_LINEAR) {
    cost.flops = 2 * out * double(call.in[1]->info.shape[1]);
  } else if (op == HEDDLE_OP_BATCHED_PRODUCT) {
    cost.flops = 2 * out * double(call.in[0]->info.shape[2]);
  } else if (op == HEDDLE_OP_CONV2D) {
    const auto& w = call.in[1]->info;
    cost.flops = 2 * out * double(w.shape[1]) * double(w.shape[2]) * double(w.shape[3]);
  } else if (op == HEDDLE_OP_CONV3D) {
    const auto& w = call.in[1]->info;
    cost.flops =
        2 * out * double(w.shape[1]) * double(w.shape[2]) * double(w.shape[3]) * double(w.shape[4]);
  } else if (op == HEDDLE_OP_DEPTHWISE_CONV2D) {
    const auto& w = call.in[1]->info;
    cost.flops = 2 * out * double(w.shape[0]) * double(w.shape[1]);
  } else if (op == HEDDLE_OP_ATTENTION) {
    // Two products: (Q x D) (D x K) and (Q x K) (K x E), for each head.
    const auto &q = call.in[0]->info, &k = call.in[1]->info, &v = call.in[2]->info;
    cost.flops = 2.0 * double(q.shape[0]) * double(q.shape[2]) * double(q.shape[1]) *
                 double(k.shape[1]) * double(q.shape[3] + v.shape[3]);
  } else if (op == HEDDLE_OP_GATED_DELTA_RULE) {
    cost.flops = gated_delta_rule_flops(call);
  } else if (op == HEDDLE_OP_MATCH_ROWS) {
    cost.flops = 2 * elements(call.in[0]);
  } else if (op != HEDDLE_OP_COPY && op != HEDDLE_OP_FILL && op != HEDDLE_OP_EMBEDDING &&
             op != HEDDLE_OP_UPSAMPLE_NEAREST) {
    cost.flops = 4 * out;  // a few operations an element; never what a plan hangs on
  }
  return cost;
}

}  // namespace heddle::engine
