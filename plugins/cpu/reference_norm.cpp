// Normalisations: over the last axis, with or without modulation or rotation, and over groups of
// channels.
#include <algorithm>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Moments {
  double mean, variance;  // biased: divided by the count
};

// Two passes: the variance of the differences does not cancel.
Moments moments(const float* x, std::int64_t count) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, squares / static_cast<double>(count)};
}

double mean_square(const float* x, std::int64_t count) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += double{x[i]} * x[i];
  return squares / static_cast<double>(count);
}

struct LayerNorm : Reference {
  static constexpr const char* op = HEDDLE_OP_LAYER_NORM;
  static void check(const heddle_op_call& call) { check_layer_norm(call); }
  static void run(const Call& call) {
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t d = last_size(out.info);
    const float* weight = load_vector(call.maybe(1), call.stream().call_scratch());
    const float* bias = load_vector(call.maybe(2), call.stream().call_scratch());
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const float* x = load_whole_row(call.in(0), out.info, row, scratch);
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const auto [mean, variance] = moments(x, d);
      const double scale = 1 / std::sqrt(variance + eps);
      for (std::int64_t i = 0; i < d; ++i) {
        double y = (x[i] - mean) * scale;
        if (weight != nullptr) y *= weight[i];
        if (bias != nullptr) y += bias[i];
        result[i] = static_cast<float>(y);
      }
      store_piece(out, {row, 0, d}, result);
    });
  }
};

struct RmsNorm : Reference {
  static constexpr const char* op = HEDDLE_OP_RMS_NORM;
  static void check(const heddle_op_call& call) { check_rms_norm(call); }
  static void run(const Call& call) {
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t d = last_size(out.info);
    const float* weight = load_vector(call.maybe(1), call.stream().call_scratch());
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const float* x = load_whole_row(call.in(0), out.info, row, scratch);
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const double scale = 1 / std::sqrt(mean_square(x, d) + eps);
      for (std::int64_t i = 0; i < d; ++i)
        result[i] = static_cast<float>(x[i] * scale * (weight != nullptr ? weight[i] : 1.0f));
      store_piece(out, {row, 0, d}, result);
    });
  }
};

struct ModulatedNorm : Reference {
  static constexpr const char* op = HEDDLE_OP_MODULATED_NORM;
  static void check(const heddle_op_call& call) { check_modulated_norm(call); }
  static void run(const Call& call) {
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t d = last_size(out.info);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const float* x = load_whole_row(call.in(0), out.info, row, scratch);
      const float* shift = load_whole_row(call.in(1), out.info, row, scratch);
      const float* scale = load_whole_row(call.in(2), out.info, row, scratch);
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const auto [mean, variance] = moments(x, d);
      const double inverse = 1 / std::sqrt(variance + eps);
      for (std::int64_t i = 0; i < d; ++i)
        result[i] = static_cast<float>((x[i] - mean) * inverse * (1 + double{scale[i]}) + shift[i]);
      store_piece(out, {row, 0, d}, result);
    });
  }
};

struct NormRope : Reference {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE;
  static void check(const heddle_op_call& call) { check_norm_rope(call); }
  static void run(const Call& call) {
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t s = out.info.shape[1], h = out.info.shape[2], d = out.info.shape[3];
    const float* weight = load_vector(call.maybe(1), call.stream().call_scratch());
    const heddle_view *cosines = call.maybe(2), *sines = call.maybe(3);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const float* x = load_whole_row(call.in(0), out.info, row, scratch);
      auto* y = scratch.take<double>(static_cast<std::size_t>(d));
      auto* result = scratch.take<float>(static_cast<std::size_t>(d));
      const double scale = weight != nullptr ? 1 / std::sqrt(mean_square(x, d) + eps) : 1;
      for (std::int64_t i = 0; i < d; ++i)
        y[i] = weight != nullptr ? x[i] * scale * weight[i] : x[i];
      if (cosines != nullptr) {
        const Piece table_row{row / h % s, 0, d / 2};
        const float* cosine = load_piece(*cosines, cosines->info, table_row, scratch);
        const float* sine = load_piece(*sines, sines->info, table_row, scratch);
        for (std::int64_t i = 0; i < d / 2; ++i) {
          const double a = y[2 * i], b = y[2 * i + 1];
          y[2 * i] = a * cosine[i] - b * sine[i];
          y[2 * i + 1] = a * sine[i] + b * cosine[i];
        }
      }
      for (std::int64_t i = 0; i < d; ++i) result[i] = static_cast<float>(y[i]);
      store_piece(out, {row, 0, d}, result);
    });
  }
};

// One tile for each picture and group: its mean and variance come from one thread.
struct GroupNorm : Reference {
  static constexpr const char* op = HEDDLE_OP_GROUP_NORM;
  static void check(const heddle_op_call& call) { check_group_norm(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_group_norm_attrs>();
    const heddle_view &in = call.in(0), &out = call.out();
    const std::int64_t pixels = out.info.shape[1] * out.info.shape[2], channels = out.info.shape[3];
    const std::int64_t width = channels / attrs.groups;
    if (pixels == 0 || width == 0) return;
    const float* weight = load_vector(call.maybe(1), call.stream().call_scratch());
    const float* bias = load_vector(call.maybe(2), call.stream().call_scratch());
    call.parallel_for(out.info.shape[0] * attrs.groups, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t item = tile / attrs.groups, first = tile % attrs.groups * width;
      auto* x = scratch.take<float>(static_cast<std::size_t>(width));
      const auto load = [&](std::int64_t pixel) {
        load_row(in.info.dtype,
                 element(in, row_offset(in.info, out.info, item * pixels + pixel) + first), width,
                 1, x);
      };
      double sum = 0, squares = 0;
      const double count = static_cast<double>(pixels) * static_cast<double>(width);
      for (std::int64_t p = 0; p < pixels; ++p) {
        load(p);
        for (std::int64_t c = 0; c < width; ++c) sum += x[c];
      }
      const double mean = sum / count;
      for (std::int64_t p = 0; p < pixels; ++p) {
        load(p);
        for (std::int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
      }
      const double scale = 1 / std::sqrt(squares / count + attrs.eps);
      for (std::int64_t p = 0; p < pixels; ++p) {
        load(p);
        for (std::int64_t c = 0; c < width; ++c) {
          const double y = (x[c] - mean) * scale * weight[first + c] + bias[first + c];
          x[c] = static_cast<float>(activate(attrs.activation, y));
        }
        const std::int64_t to = row_offset(out.info, out.info, item * pixels + p) + first;
        store_row(out.info.dtype, x, width, 1, element(out, to));
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceLayerNorm = kernel_table<LayerNorm>();
constexpr heddle_kernel kReferenceRmsNorm = kernel_table<RmsNorm>();
constexpr heddle_kernel kReferenceModulatedNorm = kernel_table<ModulatedNorm>();
constexpr heddle_kernel kReferenceNormRope = kernel_table<NormRope>();
constexpr heddle_kernel kReferenceGroupNorm = kernel_table<GroupNorm>();

}  // namespace heddle::cpu
