// heddle/ops.hpp - one function per op of abi/ops.h. Each enqueues on the call's device (or
// records, inside a block) and returns at once. Where a function makes its output, the output has
// the activations' element type; the ..._into forms write into a tensor or a slice of one. Shapes
// and meaning: abi/ops.h.
#pragma once

#include "abi/ops.h"
#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {
namespace ops {

// Looks an op up once per plugin and place of use.
#define HEDDLE_OP_HANDLE(name)     \
  static const Op op_handle(name); \
  const Op& op = op_handle

inline void copy_into(Context& ctx, const Tensor& in, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_COPY);
  ctx.op(op, {in.raw()}, {out.raw()});
}
inline Tensor cast(Context& ctx, const Tensor& in, heddle_dtype dtype) {
  const Tensor out = ctx.make(in.shape(), dtype);
  copy_into(ctx, in, out);
  return out;
}
inline Tensor contiguous(Context& ctx, const Tensor& in) { return cast(ctx, in, in.dtype()); }

inline void fill(Context& ctx, const Tensor& out, double value) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_FILL);
  ctx.op(op, {}, {out.raw()}, heddle_fill_attrs{value});
}

inline Shape broadcast(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  for (std::size_t i = 0; i < shape.size() && i < b.rank(); ++i)
    shape[i] = shape[i] == 1 ? b.size(int(i)) : shape[i];
  return shape;
}
inline void add_into(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_ADD);
  ctx.op(op, {a.raw(), b.raw()}, {out.raw()});
}
inline Tensor add(Context& ctx, const Tensor& a, const Tensor& b) {
  const Tensor out = ctx.make(broadcast(a, b), a.dtype());
  add_into(ctx, a, b, out);
  return out;
}
inline void mul_into(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_MUL);
  ctx.op(op, {a.raw(), b.raw()}, {out.raw()});
}
inline Tensor mul(Context& ctx, const Tensor& a, const Tensor& b) {
  const Tensor out = ctx.make(broadcast(a, b), a.dtype());
  mul_into(ctx, a, b, out);
  return out;
}

struct Term {
  double coefficient;
  Tensor x;
};
// Sum of up to four scaled tensors of one shape.
inline void combine_into(Context& ctx, const std::vector<Term>& terms, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_COMBINE);
  if (terms.empty() || terms.size() > 4)
    throw Error(HEDDLE_INVALID_ARGUMENT, "combine/1 takes 1 to 4 terms");
  heddle_combine_attrs attrs{};
  heddle_tensor* in[4] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    attrs.coefficient[i] = terms[i].coefficient;
    in[i] = terms[i].x.raw();
  }
  heddle_tensor* result = out.raw();
  check(service<heddle_ops_service>().enqueue(ctx.raw(), op.handle(), std::uint32_t(terms.size()),
                                              in, 1, &result, &attrs, sizeof attrs));
}
inline Tensor combine(Context& ctx, const std::vector<Term>& terms) {
  if (terms.empty()) throw Error(HEDDLE_INVALID_ARGUMENT, "combine/1 takes 1 to 4 terms");
  const Tensor out = ctx.make_like(terms[0].x);
  combine_into(ctx, terms, out);
  return out;
}

inline void scale_clamp_into(Context& ctx, const Tensor& x, const heddle_scale_clamp_attrs& attrs,
                             const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_SCALE_CLAMP);
  ctx.op(op, {x.raw()}, {out.raw()}, attrs);
}
inline Tensor scale_clamp(Context& ctx, const Tensor& x, const heddle_scale_clamp_attrs& attrs) {
  const Tensor out = ctx.make_like(x);
  scale_clamp_into(ctx, x, attrs, out);
  return out;
}
inline void activate_into(Context& ctx, const Tensor& x, heddle_activation kind,
                          const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_ACTIVATION);
  ctx.op(op, {x.raw()}, {out.raw()}, heddle_activation_attrs{kind});
}
inline Tensor activate(Context& ctx, const Tensor& x, heddle_activation kind) {
  const Tensor out = ctx.make_like(x);
  activate_into(ctx, x, kind, out);
  return out;
}
// slopes: of x's rank, each size that of x or 1; may be empty, then `slope` counts.
inline void leaky_relu_into(Context& ctx, const Tensor& x, const Tensor& slopes, double slope,
                            const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_LEAKY_RELU);
  ctx.op(op, {x.raw(), slopes.raw()}, {out.raw()}, heddle_leaky_relu_attrs{slope});
}
inline Tensor rsqrt(Context& ctx, const Tensor& x) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_RSQRT);
  const Tensor out = ctx.make_like(x);
  ctx.op(op, {x.raw()}, {out.raw()});
  return out;
}
inline void gated_activation_into(Context& ctx, const Tensor& a, const Tensor& b,
                                  heddle_activation kind, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_GATED_ACTIVATION);
  ctx.op(op, {a.raw(), b.raw()}, {out.raw()}, heddle_activation_attrs{kind});
}
inline Tensor gated_activation(Context& ctx, const Tensor& a, const Tensor& b,
                               heddle_activation kind) {
  const Tensor out = ctx.make_like(a);
  gated_activation_into(ctx, a, b, kind, out);
  return out;
}

inline void layer_norm_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                            double eps, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_LAYER_NORM);
  ctx.op(op, {x.raw(), weight.raw(), bias.raw()}, {out.raw()}, heddle_norm_attrs{eps});
}
inline Tensor layer_norm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         double eps) {
  const Tensor out = ctx.make(x.shape());
  layer_norm_into(ctx, x, weight, bias, eps, out);
  return out;
}
inline void rms_norm_into(Context& ctx, const Tensor& x, const Tensor& weight, double eps,
                          const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_RMS_NORM);
  ctx.op(op, {x.raw(), weight.raw()}, {out.raw()}, heddle_norm_attrs{eps});
}
inline Tensor rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, double eps) {
  const Tensor out = ctx.make(x.shape());
  rms_norm_into(ctx, x, weight, eps, out);
  return out;
}
inline void modulated_norm_into(Context& ctx, const Tensor& x, const Tensor& shift,
                                const Tensor& scale, double eps, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_MODULATED_NORM);
  ctx.op(op, {x.raw(), shift.raw(), scale.raw()}, {out.raw()}, heddle_norm_attrs{eps});
}
inline Tensor modulated_norm(Context& ctx, const Tensor& x, const Tensor& shift,
                             const Tensor& scale, double eps) {
  const Tensor out = ctx.make(x.shape());
  modulated_norm_into(ctx, x, shift, scale, eps, out);
  return out;
}
inline Tensor gated_add(Context& ctx, const Tensor& x, const Tensor& gate, const Tensor& y) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_GATED_ADD);
  const Tensor out = ctx.make_like(x);
  ctx.op(op, {x.raw(), gate.raw(), y.raw()}, {out.raw()});
  return out;
}
// weight, cos, sin may be empty.
inline void norm_rope_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& cos,
                           const Tensor& sin, double eps, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_NORM_ROPE);
  ctx.op(op, {x.raw(), weight.raw(), cos.raw(), sin.raw()}, {out.raw()}, heddle_norm_attrs{eps});
}

inline std::pair<Tensor, Tensor> rope_table(Context& ctx, const Tensor& ids,
                                            const heddle_rope_table_attrs& attrs) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_ROPE_TABLE);
  std::int64_t pairs = 0;
  for (int a = 0; a < attrs.axes; ++a) pairs += attrs.dim[a] / 2;
  const Tensor cos = ctx.make({ids.size(0), pairs}, HEDDLE_F32),
               sin = ctx.make({ids.size(0), pairs}, HEDDLE_F32);
  ctx.op(op, {ids.raw()}, {cos.raw(), sin.raw()}, attrs);
  return {cos, sin};
}
inline void grid_ids_into(Context& ctx, const heddle_grid_ids_attrs& attrs, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_GRID_IDS);
  ctx.op(op, {}, {out.raw()}, attrs);
}
inline void timestep_embedding_into(Context& ctx, const Tensor& t,
                                    const heddle_timestep_embedding_attrs& attrs,
                                    const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_TIMESTEP_EMBEDDING);
  ctx.op(op, {t.raw()}, {out.raw()}, attrs);
}
inline Tensor timestep_embedding(Context& ctx, const Tensor& t, std::int64_t width,
                                 const heddle_timestep_embedding_attrs& attrs) {
  const Tensor out = ctx.make({t.size(0), width});
  timestep_embedding_into(ctx, t, attrs, out);
  return out;
}
inline void embedding_into(Context& ctx, const Tensor& table, const Tensor& ids,
                           const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_EMBEDDING);
  ctx.op(op, {table.raw(), ids.raw()}, {out.raw()});
}
inline Tensor embedding(Context& ctx, const Tensor& table, const Tensor& ids) {
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  const Tensor out = ctx.make(shape);
  embedding_into(ctx, table, ids, out);
  return out;
}
inline Tensor relative_bucket(Context& ctx, std::int64_t queries, std::int64_t keys,
                              const heddle_relative_bucket_attrs& attrs) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_RELATIVE_BUCKET);
  const Tensor out = ctx.make({queries, keys}, HEDDLE_I32);
  ctx.op(op, {}, {out.raw()}, attrs);
  return out;
}

enum class Mask { none, causal };
// bias may be empty. cap: 0 for none.
inline void attention_into(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                           const Tensor& bias, double scale, Mask mask, const Tensor& out,
                           double cap = 0) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_ATTENTION);
  ctx.op(op, {q.raw(), k.raw(), v.raw(), bias.raw()}, {out.raw()},
         heddle_attention_attrs{scale, mask == Mask::causal, float(cap)});
}
inline Tensor attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& bias, double scale, Mask mask = Mask::none, double cap = 0) {
  const Tensor out = ctx.make({q.size(0), q.size(1), q.size(2), v.size(3)});
  attention_into(ctx, q, k, v, bias, scale, mask, out, cap);
  return out;
}

// The rows of all ranks along an axis, `total` of them; this rank's begin at `begin`. Alone: x
// itself.
inline Tensor all_gather(Context& ctx, const Tensor& x, std::uint32_t axis, std::int64_t begin,
                         std::int64_t total) {
  if (ctx.group().count == 1) return x;
  HEDDLE_OP_HANDLE(HEDDLE_OP_ALL_GATHER);
  Shape shape = x.shape();
  shape[axis] = total;
  const Tensor out = ctx.make(shape, x.dtype());
  ctx.op(op, {x.raw()}, {out.raw()}, heddle_all_gather_attrs{begin, std::int32_t(axis)});
  return out;
}

// Gives every rank its part of x along one axis, and joins what all give to this one along another.
// What follows and does not read the result is computed meanwhile. With `keeps_own` the block
// writes the rank's own part of out itself. REQUIRES: the block writes to x no more, and has not
// touched out before, but for such a part.
inline void all_to_all_into(Context& ctx, const Tensor& x, const heddle_all_to_all_attrs& attrs,
                            const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_ALL_TO_ALL);
  ctx.op(op, {x.raw()}, {out.raw()}, attrs);
}

// The sum of x over the ranks. Alone: x itself.
inline Tensor all_reduce(Context& ctx, const Tensor& x) {
  if (ctx.group().count == 1) return x;
  HEDDLE_OP_HANDLE(HEDDLE_OP_ALL_REDUCE);
  const Tensor out = ctx.make(x.shape(), x.dtype());
  ctx.op(op, {x.raw()}, {out.raw()});
  return out;
}

// bias and residual may be empty.
inline void linear_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        heddle_activation f, const Tensor& residual, const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_LINEAR);
  ctx.op(op, {x.raw(), weight.raw(), bias.raw(), residual.raw()}, {out.raw()},
         heddle_activation_attrs{f});
}
inline Tensor linear(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     heddle_activation f = HEDDLE_ACT_NONE, const Tensor& residual = {}) {
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const Tensor out = ctx.make(shape);
  linear_into(ctx, x, weight, bias, f, residual, out);
  return out;
}

inline Shape conv2d_shape(const Tensor& x, const Tensor& weight, const heddle_conv2d_attrs& attrs) {
  const std::int64_t height =
      (x.size(1) + attrs.padding[0] + attrs.padding[2] - weight.size(2)) / attrs.stride[0] + 1;
  const std::int64_t width =
      (x.size(2) + attrs.padding[1] + attrs.padding[3] - weight.size(3)) / attrs.stride[1] + 1;
  return {x.size(0), height, width, weight.size(0)};
}
inline void conv2d_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const heddle_conv2d_attrs& attrs, const Tensor& residual,
                        const Tensor& out) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_CONV2D);
  ctx.op(op, {x.raw(), weight.raw(), bias.raw(), residual.raw()}, {out.raw()}, attrs);
}
inline Tensor conv2d(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const heddle_conv2d_attrs& attrs, const Tensor& residual = {}) {
  const Tensor out = ctx.make(conv2d_shape(x, weight, attrs));
  conv2d_into(ctx, x, weight, bias, attrs, residual, out);
  return out;
}
// Keeps the size: strides of 1, an odd filter (R, S, C) with half of it around the picture. bias
// may be empty.
inline Tensor depthwise_conv2d(Context& ctx, const Tensor& x, const Tensor& weight,
                               const Tensor& bias) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_DEPTHWISE_CONV2D);
  const Tensor out = ctx.make(x.shape());
  const auto down = std::int32_t(weight.size(0) / 2), across = std::int32_t(weight.size(1) / 2);
  ctx.op(op, {x.raw(), weight.raw(), bias.raw()}, {out.raw()},
         heddle_conv2d_attrs{{1, 1}, {down, across, down, across}});
  return out;
}
inline Tensor group_norm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const heddle_group_norm_attrs& attrs) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_GROUP_NORM);
  const Tensor out = ctx.make(x.shape());
  ctx.op(op, {x.raw(), weight.raw(), bias.raw()}, {out.raw()}, attrs);
  return out;
}
inline Tensor upsample_nearest(Context& ctx, const Tensor& x, std::int64_t factor) {
  HEDDLE_OP_HANDLE(HEDDLE_OP_UPSAMPLE_NEAREST);
  const Tensor out = ctx.make({x.size(0), x.size(1) * factor, x.size(2) * factor, x.size(3)});
  ctx.op(op, {x.raw()}, {out.raw()});
  return out;
}

#undef HEDDLE_OP_HANDLE

}  // namespace ops
}  // namespace heddle
