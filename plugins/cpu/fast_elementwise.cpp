// The elementwise ops and copies between float types, a piece in cache at a time.
#include "fast.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// Gives each piece of the output to compute(piece, floats of operand, result, scratch).
template <class Compute>
void for_each_result(const Call& call, Compute&& compute) {
  const VectorKernels& vector = call.device().vector();
  const heddle_view& out = call.out();
  for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
    const auto operand = [&](std::uint32_t index) {
      return floats_of(vector, call.in(index), out.info, piece, scratch);
    };
    const Result result(vector, out, piece, scratch);
    compute(piece, operand, result.values());
    result.finish();
  });
}

struct FastAdd : Fast {
  static constexpr const char* op = HEDDLE_OP_ADD;
  static void check(const heddle_op_call& call) { check_broadcast(call); }
  static void run(const Call& call) {
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      call.device().vector().add(operand(0), operand(1), out, piece.count);
    });
  }
};

struct FastMul : Fast {
  static constexpr const char* op = HEDDLE_OP_MUL;
  static void check(const heddle_op_call& call) { check_broadcast(call); }
  static void run(const Call& call) {
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      call.device().vector().multiply_each(operand(0), operand(1), out, piece.count);
    });
  }
};

struct FastGatedAdd : Fast {
  static constexpr const char* op = HEDDLE_OP_GATED_ADD;
  static void check(const heddle_op_call& call) { check_gated_add(call); }
  static void run(const Call& call) {
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      call.device().vector().gated_add(operand(0), operand(1), operand(2), out, piece.count);
    });
  }
};

struct FastScaleClamp : Fast {
  static constexpr const char* op = HEDDLE_OP_SCALE_CLAMP;
  static void check(const heddle_op_call& call) { check_scale_clamp(call); }
  static void run(const Call& call) {
    const auto& attrs = call.attrs<heddle_scale_clamp_attrs>();
    const float values[4] = {static_cast<float>(attrs.scale), static_cast<float>(attrs.shift),
                             static_cast<float>(attrs.low), static_cast<float>(attrs.high)};
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      call.device().vector().scale_clamp(operand(0), values, out, piece.count);
    });
  }
};

struct FastActivation : Fast {
  static constexpr const char* op = HEDDLE_OP_ACTIVATION;
  static void check(const heddle_op_call& call) { check_activation(call); }
  static void run(const Call& call) {
    const heddle_activation kind = call.attrs<heddle_activation_attrs>().kind;
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      call.device().vector().activate(kind, operand(0), out, piece.count);
    });
  }
};

// Bound by memory: the compiler's own vectors do.
struct FastLeakyRelu : Fast {
  static constexpr const char* op = HEDDLE_OP_LEAKY_RELU;
  static void check(const heddle_op_call& call) { check_leaky_relu(call); }
  static void run(const Call& call) {
    const auto slope = static_cast<float>(call.attrs<heddle_leaky_relu_attrs>().slope);
    const bool has_slopes = call.maybe(1) != nullptr;
    for_each_result(call, [&](Piece piece, auto&& operand, float* out) {
      const float *const x = operand(0), *const slopes = has_slopes ? operand(1) : nullptr;
      for (std::int64_t i = 0; i < piece.count; ++i)
        out[i] = x[i] > 0 ? x[i] : x[i] * (has_slopes ? slopes[i] : slope);
    });
  }
};

// The sum and the activation need room of their own: the output may be any of the operands.
struct FastGatedActivation : Fast {
  static constexpr const char* op = HEDDLE_OP_GATED_ACTIVATION;
  static void check(const heddle_op_call& call) { check_gated_activation(call); }
  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_activation kind = call.attrs<heddle_activation_attrs>().kind;
    const heddle_view& out = call.out();
    for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
      auto* activated = scratch.take<float>(static_cast<std::size_t>(piece.count));
      vector.activate(kind, floats_of(vector, call.in(0), out.info, piece, scratch), activated,
                      piece.count);
      const Result result(vector, out, piece, scratch);
      vector.multiply_each(activated, floats_of(vector, call.in(1), out.info, piece, scratch),
                           result.values(), piece.count);
      result.finish();
    });
  }
};

struct FastCombine : Fast {
  static constexpr const char* op = HEDDLE_OP_COMBINE;
  static void check(const heddle_op_call& call) { check_combine(call); }
  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const auto& attrs = call.attrs<heddle_combine_attrs>();
    const heddle_view& out = call.out();
    for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
      auto* sum = scratch.take<float>(static_cast<std::size_t>(piece.count));
      vector.scale(floats_of(vector, call.in(0), out.info, piece, scratch),
                   static_cast<float>(attrs.coefficient[0]), sum, piece.count);
      for (std::uint32_t n = 1; n < call.in_count(); ++n)
        if (call.maybe(n) != nullptr)
          vector.add_scaled(floats_of(vector, call.in(n), out.info, piece, scratch),
                            static_cast<float>(attrs.coefficient[n]), sum, piece.count);
      vector.narrow(out.info.dtype, sum, piece.count,
                    element(out, row_offset(out.info, out.info, piece.row) + piece.begin));
    });
  }
};

// Copies among f32, f16 and bf16 whose rows are contiguous; the reference has the others.
struct FastCopy : Fast {
  static constexpr const char* op = HEDDLE_OP_COPY;
  static void check(const heddle_op_call& call) { check_copy(call); }

  static std::int32_t fits(const Device& device, const heddle_op_call& call) {
    const auto fits_one = [](const heddle_view* view) {
      return view != nullptr && device::is_compute_float(view->info.dtype) &&
             (last_stride(view->info) == 1 || last_size(view->info) == 1);
    };
    const bool both = fits_one(device::operand(call, 0)) && call.out_count == 1 &&
                      fits_one(call.out[0]) && call.in[0]->info.dtype != call.out[0]->info.dtype;
    return both ? Fast::fits(device, call) : 0;
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view& out = call.out();
    for_each_piece(call, out.info, [&](Piece piece, Scratch& scratch) {
      const float* from = floats_of(vector, call.in(0), out.info, piece, scratch);
      vector.narrow(out.info.dtype, from, piece.count,
                    element(out, row_offset(out.info, out.info, piece.row) + piece.begin));
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastAdd = kernel_table<FastAdd>();
constexpr heddle_kernel kFastMul = kernel_table<FastMul>();
constexpr heddle_kernel kFastGatedAdd = kernel_table<FastGatedAdd>();
constexpr heddle_kernel kFastScaleClamp = kernel_table<FastScaleClamp>();
constexpr heddle_kernel kFastActivation = kernel_table<FastActivation>();
constexpr heddle_kernel kFastLeakyRelu = kernel_table<FastLeakyRelu>();
constexpr heddle_kernel kFastGatedActivation = kernel_table<FastGatedActivation>();
constexpr heddle_kernel kFastCombine = kernel_table<FastCombine>();
constexpr heddle_kernel kFastCopy = kernel_table<FastCopy>();

}  // namespace heddle::cpu
