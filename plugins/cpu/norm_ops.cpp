// The ops of abi/norm_ops.h: plain loops, which are their meaning, and fast ones, whose sums are
// those of fast_norm.cpp.
#include <algorithm>
#include <cmath>

#include "fast.h"
#include "heddle/abi/norm_ops.h"
#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

double root_mean_square(const float* x, std::int64_t count, double eps) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += double{x[i]} * x[i];
  return std::sqrt(squares / static_cast<double>(count) + eps);
}

float fast_rms_factor(const VectorKernels& vector, const float* x, std::int64_t count, double eps) {
  const double square = vector.sum_of_squares(x, 0, count) / static_cast<double>(count);
  return static_cast<float>(1 / std::sqrt(square + eps));
}

struct ModulatedRmsNorm : Reference {
  static constexpr const char* op = HEDDLE_OP_MODULATED_RMS_NORM;
  static void check(const heddle_op_call& call) { check_modulated_rms_norm(call); }
  static void run(const Call& call) {
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const heddle_view *scales = call.maybe(1), *shifts = call.maybe(2);
    const std::int64_t d = last_size(out.info);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const auto row_of = [&](const heddle_view* view) {
        return view == nullptr ? nullptr : load_whole_row(*view, out.info, row, scratch);
      };
      const float *x = row_of(&call.in(0)), *scale = row_of(scales), *shift = row_of(shifts);
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const double inverse = 1 / root_mean_square(x, d, eps);
      for (std::int64_t i = 0; i < d; ++i)
        result[i] = static_cast<float>(x[i] * inverse * (scale != nullptr ? scale[i] : 1.0f) +
                                       (shift != nullptr ? shift[i] : 0.0f));
      store_piece(out, {row, 0, d}, result);
    });
  }
};

struct FastModulatedRmsNorm : Fast {
  static constexpr const char* op = HEDDLE_OP_MODULATED_RMS_NORM;
  static void check(const heddle_op_call& call) { check_modulated_rms_norm(call); }
  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const heddle_view *scales = call.maybe(1), *shifts = call.maybe(2);
    const std::int64_t d = last_size(out.info);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const Piece piece{row, 0, d};
      const auto row_of = [&](const heddle_view* view) {
        return view == nullptr ? nullptr : floats_of(vector, *view, out.info, piece, scratch);
      };
      const float *x = row_of(&call.in(0)), *scale = row_of(scales), *shift = row_of(shifts);
      const Result result(vector, out, piece, scratch);
      vector.normalise(x, 0, fast_rms_factor(vector, x, d, eps), scale, shift, result.values(), d);
      result.finish();
    });
  }
};

// A row's heads, and where the first of a pair, the second and its angles are.
template <class Turn>
void for_each_turned(const heddle_norm_rope_half_attrs& attrs, std::int64_t d, Turn&& turn) {
  for (std::int64_t begin = 0, column = 0; begin < d; begin += attrs.head, column += attrs.pairs)
    turn(begin, begin + attrs.pairs, column);
}

struct NormRopeHalf : Reference {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE_HALF;
  static void check(const heddle_op_call& call) { check_norm_rope_half(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_norm_rope_half_attrs>();
    const heddle_view& out = call.out();
    const std::int64_t s = out.info.shape[1], h = out.info.shape[2], d = out.info.shape[3],
                       columns = d / attrs.head * attrs.pairs;
    const float* weight = load_vector(call.maybe(1), call.stream().call_scratch());
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const float* x = load_whole_row(call.in(0), out.info, row, scratch);
      auto* y = scratch.take<double>(static_cast<std::size_t>(d));
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const double inverse = weight != nullptr ? 1 / root_mean_square(x, d, attrs.eps) : 1;
      for (std::int64_t i = 0; i < d; ++i) {
        y[i] = x[i] * inverse * (weight != nullptr ? weight[i] : 1.0f);
        result[i] = static_cast<float>(y[i]);
      }
      const Piece table_row{row / h % s, 0, columns};
      const float* cosine = load_piece(call.in(2), call.in(2).info, table_row, scratch);
      const float* sine = load_piece(call.in(3), call.in(3).info, table_row, scratch);
      for_each_turned(attrs, d, [&](std::int64_t first, std::int64_t second, std::int64_t column) {
        for (std::int64_t i = 0; i < attrs.pairs; ++i) {
          const double a = y[first + i], b = y[second + i], c = cosine[column + i],
                       n = sine[column + i];
          result[first + i] = static_cast<float>(a * c - b * n);
          result[second + i] = static_cast<float>(a * n + b * c);
        }
      });
      store_piece(out, {row, 0, d}, result);
    });
  }
};

struct FastNormRopeHalf : Fast {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE_HALF;
  static void check(const heddle_op_call& call) { check_norm_rope_half(call); }
  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const auto attrs = call.attrs<heddle_norm_rope_half_attrs>();
    const heddle_view& out = call.out();
    const std::int64_t s = out.info.shape[1], h = out.info.shape[2], d = out.info.shape[3],
                       columns = d / attrs.head * attrs.pairs;
    const float* weight = vector_of(vector, call.maybe(1), call.stream().call_scratch());
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const Piece piece{row, 0, d}, table_row{row / h % s, 0, columns};
      const float* x = floats_of(vector, call.in(0), out.info, piece, scratch);
      const float* cosine = floats_of(vector, call.in(2), call.in(2).info, table_row, scratch);
      const float* sine = floats_of(vector, call.in(3), call.in(3).info, table_row, scratch);
      const Result result(vector, out, piece, scratch);
      float* const y = result.values();
      if (weight != nullptr)
        vector.normalise(x, 0, fast_rms_factor(vector, x, d, attrs.eps), weight, nullptr, y, d);
      else if (x != y)
        std::copy_n(x, d, y);
      for_each_turned(attrs, d, [&](std::int64_t first, std::int64_t second, std::int64_t column) {
        vector.turn(y + first, y + second, cosine + column, sine + column, attrs.pairs);
      });
      result.finish();
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceModulatedRmsNorm = kernel_table<ModulatedRmsNorm>();
constexpr heddle_kernel kFastModulatedRmsNorm = kernel_table<FastModulatedRmsNorm>();
constexpr heddle_kernel kReferenceNormRopeHalf = kernel_table<NormRopeHalf>();
constexpr heddle_kernel kFastNormRopeHalf = kernel_table<FastNormRopeHalf>();

}  // namespace heddle::cpu
