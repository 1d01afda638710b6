// Elementwise ops: each output element from the elements at the same place. A piece is loaded whole
// before any of it is written, so an output may lie exactly on an input.
#include <algorithm>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

// out[i] = value(the operands' pieces, i), computed in double, written once.
template <class Load, class Value>
void for_each_element(const Call& call, Load&& load, Value&& value) {
  const heddle_view& out = call.out();
  for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
    const auto operands = load(piece, scratch);
    auto* result = scratch.take<float>(static_cast<std::size_t>(piece.count));
    for (std::int64_t i = 0; i < piece.count; ++i)
      result[i] = static_cast<float>(value(operands, i));
    store_piece(out, piece, result);
  });
}

struct Pair {
  const float *a, *b;
};

template <class Value>
void for_each_pair(const Call& call, Value&& value) {
  const heddle_tensor_info& whole = call.out().info;
  for_each_element(
      call,
      [&](Piece piece, Scratch& scratch) {
        return Pair{load_piece(call.in(0), whole, piece, scratch),
                    load_piece(call.in(1), whole, piece, scratch)};
      },
      [&](const Pair& x, std::int64_t i) { return value(double{x.a[i]}, double{x.b[i]}); });
}

template <class Value>
void for_each_single(const Call& call, Value&& value) {
  const heddle_tensor_info& whole = call.out().info;
  for_each_element(
      call,
      [&](Piece piece, Scratch& scratch) { return load_piece(call.in(0), whole, piece, scratch); },
      [&](const float* x, std::int64_t i) { return value(double{x[i]}); });
}

struct Add : Reference {
  static constexpr const char* op = HEDDLE_OP_ADD;
  static void check(const heddle_op_call& call) { check_broadcast(call); }
  static void run(const Call& call) {
    for_each_pair(call, [](double a, double b) { return a + b; });
  }
};

struct Mul : Reference {
  static constexpr const char* op = HEDDLE_OP_MUL;
  static void check(const heddle_op_call& call) { check_broadcast(call); }
  static void run(const Call& call) {
    for_each_pair(call, [](double a, double b) { return a * b; });
  }
};

struct GatedActivation : Reference {
  static constexpr const char* op = HEDDLE_OP_GATED_ACTIVATION;
  static void check(const heddle_op_call& call) { check_gated_activation(call); }
  static void run(const Call& call) {
    const heddle_activation kind = call.attrs<heddle_activation_attrs>().kind;
    for_each_pair(call, [kind](double a, double b) { return activate(kind, a) * b; });
  }
};

struct Activation : Reference {
  static constexpr const char* op = HEDDLE_OP_ACTIVATION;
  static void check(const heddle_op_call& call) { check_activation(call); }
  static void run(const Call& call) {
    const heddle_activation kind = call.attrs<heddle_activation_attrs>().kind;
    for_each_single(call, [kind](double x) { return activate(kind, x); });
  }
};

struct LeakyRelu : Reference {
  static constexpr const char* op = HEDDLE_OP_LEAKY_RELU;
  static void check(const heddle_op_call& call) { check_leaky_relu(call); }
  static void run(const Call& call) {
    const double slope = call.attrs<heddle_leaky_relu_attrs>().slope;
    const auto leak = [](double x, double by) { return x > 0 ? x : x * by; };
    if (call.maybe(1) != nullptr)
      for_each_pair(call, leak);
    else
      for_each_single(call, [&](double x) { return leak(x, slope); });
  }
};

struct Rsqrt : Reference {
  static constexpr const char* op = HEDDLE_OP_RSQRT;
  static void check(const heddle_op_call& call) { check_rsqrt(call); }
  static void run(const Call& call) {
    for_each_single(call, [](double x) { return 1 / std::sqrt(x); });
  }
};

struct ScaleClamp : Reference {
  static constexpr const char* op = HEDDLE_OP_SCALE_CLAMP;
  static void check(const heddle_op_call& call) { check_scale_clamp(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_scale_clamp_attrs>();
    for_each_single(call, [attrs](double x) {
      const double y = x * attrs.scale + attrs.shift;
      return std::isnan(y) ? y : std::min(std::max(y, attrs.low), attrs.high);
    });
  }
};

// Summed in f32 in the order of the operands, as the op says, so that it can be followed bit by
// bit.
struct Combine : Reference {
  static constexpr const char* op = HEDDLE_OP_COMBINE;
  static void check(const heddle_op_call& call) { check_combine(call); }
  static void run(const Call& call) {
    const auto& attrs = call.attrs<heddle_combine_attrs>();
    const heddle_view& out = call.out();
    for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
      auto* sum = scratch.take<float>(static_cast<std::size_t>(piece.count));
      for (std::uint32_t n = 0; n < call.in_count(); ++n) {
        if (call.maybe(n) == nullptr) continue;
        const float* x = load_piece(call.in(n), out.info, piece, scratch);
        const auto coefficient = static_cast<float>(attrs.coefficient[n]);
        for (std::int64_t i = 0; i < piece.count; ++i) {
          const float term = coefficient * x[i];
          sum[i] = n == 0 ? term : sum[i] + term;
        }
      }
      store_piece(out, piece, sum);
    });
  }
};

struct GatedAdd : Reference {
  static constexpr const char* op = HEDDLE_OP_GATED_ADD;
  static void check(const heddle_op_call& call) { check_gated_add(call); }
  static void run(const Call& call) {
    struct Operands {
      const float *x, *gate, *y;
    };
    const heddle_tensor_info& whole = call.out().info;
    for_each_element(
        call,
        [&](Piece piece, Scratch& scratch) {
          return Operands{load_piece(call.in(0), whole, piece, scratch),
                          load_piece(call.in(1), whole, piece, scratch),
                          load_piece(call.in(2), whole, piece, scratch)};
        },
        [](const Operands& in, std::int64_t i) {
          return double{in.x[i]} + double{in.gate[i]} * in.y[i];
        });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceAdd = kernel_table<Add>();
constexpr heddle_kernel kReferenceMul = kernel_table<Mul>();
constexpr heddle_kernel kReferenceCombine = kernel_table<Combine>();
constexpr heddle_kernel kReferenceScaleClamp = kernel_table<ScaleClamp>();
constexpr heddle_kernel kReferenceActivation = kernel_table<Activation>();
constexpr heddle_kernel kReferenceLeakyRelu = kernel_table<LeakyRelu>();
constexpr heddle_kernel kReferenceRsqrt = kernel_table<Rsqrt>();
constexpr heddle_kernel kReferenceGatedActivation = kernel_table<GatedActivation>();
constexpr heddle_kernel kReferenceGatedAdd = kernel_table<GatedAdd>();

}  // namespace heddle::cpu
