// gated_delta_rule/1: a tile is some columns of one head's matrix, which no other columns meet. The
// reference has it in double, the fast kernel in f32, in the same order.
#include <algorithm>
#include <cmath>

#include "fast.h"
#include "heddle/abi/delta_ops.h"
#include "kernels.h"
#include "op_check_delta.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kStateColumns = 32;  // of a tile
// Beyond this softplus(x) is x in f32.
constexpr double kLinearFrom = 20;

// One head's columns [begin, begin + count) of an item, its tokens and its matrix.
struct DeltaHead {
  const Call& call;
  std::int64_t item, head, begin, count;

  const heddle_view& qk() const { return call.in(0); }
  std::int64_t tokens() const { return qk().info.shape[1]; }
  std::int64_t depth() const { return qk().info.shape[3]; }

  // A token's query or key, of length 1.
  template <class Number>
  void load_unit(std::int64_t token, bool is_key, float* row, Number* to) const {
    const heddle_tensor_info& info = qk().info;
    const std::int64_t pairs = info.shape[2] / 2, times = call.in(1).info.shape[2] / pairs,
                       place = head / times + (is_key ? pairs : 0);
    load_row(info.dtype,
             element(qk(), item * info.stride[0] + token * info.stride[1] + place * info.stride[2]),
             depth(), 1, row);
    double squares = 0;
    for (std::int64_t i = 0; i < depth(); ++i) squares += double{row[i]} * row[i];
    const auto& attrs = call.attrs<heddle_gated_delta_rule_attrs>();
    const double factor = (is_key ? 1 : attrs.scale) / std::sqrt(squares + attrs.eps);
    for (std::int64_t i = 0; i < depth(); ++i) to[i] = static_cast<Number>(row[i] * factor);
  }
  double number(const heddle_view& view, std::int64_t at) const {
    float value = 0;
    load_row(view.info.dtype, element(view, at), 1, 1, &value);
    return value;
  }
  double gate(std::int64_t token, std::int64_t column) const {
    const heddle_view& gates = call.in(2);
    return number(gates, item * gates.info.stride[0] + token * gates.info.stride[1] + column);
  }
  double decay(std::int64_t token) const {
    const double x = gate(token, head) + number(call.in(4), head),
                 softplus = x > kLinearFrom ? x : std::log1p(std::exp(x));
    return std::exp(-std::exp(number(call.in(3), head)) * softplus);
  }
  double share(std::int64_t token) const {
    return 1 / (1 + std::exp(-gate(token, call.in(1).info.shape[2] + head)));
  }
  // A token's values, or where its results go.
  std::byte* row_of(const heddle_view& view, std::int64_t token) const {
    const heddle_tensor_info& info = view.info;
    return element(view,
                   item * info.stride[0] + token * info.stride[1] + head * info.stride[2] + begin);
  }
  // Row i of the matrix.
  std::byte* row_in(const heddle_view& state, std::int64_t i) const {
    const heddle_tensor_info& info = state.info;
    return element(state,
                   item * info.stride[0] + head * info.stride[1] + i * info.stride[2] + begin);
  }
};

template <class Number, class Base>
struct DeltaRule : Base {
  static constexpr const char* op = HEDDLE_OP_GATED_DELTA_RULE;
  static void check(const heddle_op_call& call) { check_gated_delta_rule(call); }

  static void load_state(const DeltaHead& at, float* row, Number* matrix) {
    const heddle_view* before = at.call.maybe(5);
    for (std::int64_t i = 0; i < at.depth(); ++i, matrix += at.count) {
      std::fill_n(row, at.count, 0.0f);
      if (before != nullptr) load_row(HEDDLE_F32, at.row_in(*before, i), at.count, 1, row);
      std::copy_n(row, at.count, matrix);
    }
  }
  // Of a token with this query and key: what it reads, into out.
  static void step(const DeltaHead& at, std::int64_t token, const Number* q, const Number* k,
                   const float* values, Number* matrix, Number* change, Number* out) {
    const auto decay = static_cast<Number>(at.decay(token)),
               share = static_cast<Number>(at.share(token));
    std::fill_n(change, at.count, Number{0});
    std::fill_n(out, at.count, Number{0});
    for (std::int64_t i = 0; i < at.depth(); ++i) {
      Number* const line = matrix + i * at.count;
      for (std::int64_t c = 0; c < at.count; ++c) {
        line[c] *= decay;
        change[c] += k[i] * line[c];
      }
    }
    for (std::int64_t c = 0; c < at.count; ++c) change[c] = share * (values[c] - change[c]);
    for (std::int64_t i = 0; i < at.depth(); ++i) {
      Number* const line = matrix + i * at.count;
      for (std::int64_t c = 0; c < at.count; ++c) {
        line[c] += k[i] * change[c];
        out[c] += q[i] * line[c];
      }
    }
  }

  static void run_head(const DeltaHead& at, Scratch& scratch) {
    const heddle_view &v = at.call.in(1), &out = at.call.out(0), &state = at.call.out(1);
    const auto depth = static_cast<std::size_t>(at.depth()),
               count = static_cast<std::size_t>(at.count);
    auto *matrix = scratch.take<Number>(depth * count), *q = scratch.take<Number>(depth),
         *k = scratch.take<Number>(depth), *change = scratch.take<Number>(count),
         *sums = scratch.take<Number>(count);
    auto* row = scratch.take<float>(std::max(depth, count));
    load_state(at, row, matrix);
    for (std::int64_t token = 0; token < at.tokens(); ++token) {
      at.call.check_wanted();
      at.load_unit(token, false, row, q);
      at.load_unit(token, true, row, k);
      load_row(v.info.dtype, at.row_of(v, token), at.count, 1, row);
      step(at, token, q, k, row, matrix, change, sums);
      for (std::size_t c = 0; c < count; ++c) row[c] = static_cast<float>(sums[c]);
      store_row(out.info.dtype, row, at.count, 1, at.row_of(out, token));
    }
    for (std::int64_t i = 0; i < at.depth(); ++i, matrix += count) {
      for (std::size_t c = 0; c < count; ++c) row[c] = static_cast<float>(matrix[c]);
      store_row(HEDDLE_F32, row, at.count, 1, at.row_in(state, i));
    }
  }

  static void run(const Call& call) {
    const heddle_tensor_info& v = call.in(1).info;
    const std::int64_t heads = v.shape[2], width = v.shape[3],
                       tiles = (width + kStateColumns - 1) / kStateColumns;
    call.parallel_for(v.shape[0] * heads * tiles, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t begin = tile % tiles * kStateColumns;
      run_head({call, tile / tiles / heads, tile / tiles % heads, begin,
                std::min(kStateColumns, width - begin)},
               scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceGatedDeltaRule = kernel_table<DeltaRule<double, Reference>>();
constexpr heddle_kernel kFastGatedDeltaRule = kernel_table<DeltaRule<float, Fast>>();

}  // namespace heddle::cpu
