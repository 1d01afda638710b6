// Normalisations. Rows are summed in f32 in short stretches and in double across them, always in
// the same order.
#include <algorithm>
#include <cmath>

#include "fast.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

struct Scale {
  float mean, factor;  // normalised x is (x - mean) * factor
};

Scale layer_scale(const VectorKernels& vector, const float* x, std::int64_t count, double eps) {
  const auto mean = static_cast<float>(vector.sum(x, count) / static_cast<double>(count));
  const double variance = vector.sum_of_squares(x, mean, count) / static_cast<double>(count);
  return {mean, static_cast<float>(1 / std::sqrt(variance + eps))};
}

Scale rms_scale(const VectorKernels& vector, const float* x, std::int64_t count, double eps) {
  const double square = vector.sum_of_squares(x, 0, count) / static_cast<double>(count);
  return {0, static_cast<float>(1 / std::sqrt(square + eps))};
}

// out = normalised x * weight + bias, row by row.
template <class ScaleOf>
void normalise_rows(const Call& call, const heddle_view* bias_view, ScaleOf&& scale_of) {
  const VectorKernels& vector = call.device().vector();
  const double eps = call.attrs<heddle_norm_attrs>().eps;
  const heddle_view& out = call.out();
  const std::int64_t d = last_size(out.info);
  const float* weight = vector_of(vector, call.maybe(1), call.stream().call_scratch());
  const float* bias = vector_of(vector, bias_view, call.stream().call_scratch());
  for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
    const Piece piece{row, 0, d};
    const float* x = floats_of(vector, call.in(0), out.info, piece, scratch);
    const Result result(vector, out, piece, scratch);
    const Scale scale = scale_of(vector, x, d, eps);
    vector.normalise(x, scale.mean, scale.factor, weight, bias, result.values(), d);
    result.finish();
  });
}

struct FastLayerNorm : Fast {
  static constexpr const char* op = HEDDLE_OP_LAYER_NORM;
  static void check(const heddle_op_call& call) { check_layer_norm(call); }
  static void run(const Call& call) { normalise_rows(call, call.maybe(2), layer_scale); }
};

struct FastRmsNorm : Fast {
  static constexpr const char* op = HEDDLE_OP_RMS_NORM;
  static void check(const heddle_op_call& call) { check_rms_norm(call); }
  static void run(const Call& call) { normalise_rows(call, nullptr, rms_scale); }
};

struct FastModulatedNorm : Fast {
  static constexpr const char* op = HEDDLE_OP_MODULATED_NORM;
  static void check(const heddle_op_call& call) { check_modulated_norm(call); }
  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t d = last_size(out.info);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const Piece piece{row, 0, d};
      const float* x = floats_of(vector, call.in(0), out.info, piece, scratch);
      const float* shift = floats_of(vector, call.in(1), out.info, piece, scratch);
      const float* factor = floats_of(vector, call.in(2), out.info, piece, scratch);
      const Result result(vector, out, piece, scratch);
      const Scale scale = layer_scale(vector, x, d, eps);
      vector.modulate(x, scale.mean, scale.factor, factor, shift, result.values(), d);
      result.finish();
    });
  }
};

struct FastNormRope : Fast {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE;
  static void check(const heddle_op_call& call) { check_norm_rope(call); }

  // The tables with every number twice, the sines with the sign of their place: out[i] = x[i] c[i]
  // + x[i ^ 1] s[i].
  struct Tables {
    const float *cosine, *sine;
  };
  static Tables spread_tables(const Call& call, std::int64_t positions, std::int64_t d) {
    const heddle_view *cosines = call.maybe(2), *sines = call.maybe(3);
    if (cosines == nullptr) return {};
    auto* cosine =
        call.stream().call_scratch().take<float>(static_cast<std::size_t>(positions * d));
    auto* sine = call.stream().call_scratch().take<float>(static_cast<std::size_t>(positions * d));
    for (std::int64_t s = 0; s < positions; ++s) {
      const auto* c =
          reinterpret_cast<const float*>(element(*cosines, s * cosines->info.stride[0]));
      const auto* n = reinterpret_cast<const float*>(element(*sines, s * sines->info.stride[0]));
      for (std::int64_t i = 0; i < d / 2; ++i) {
        cosine[s * d + 2 * i] = cosine[s * d + 2 * i + 1] = c[i];
        sine[s * d + 2 * i] = -n[i];
        sine[s * d + 2 * i + 1] = n[i];
      }
    }
    return {cosine, sine};
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const double eps = call.attrs<heddle_norm_attrs>().eps;
    const heddle_view& out = call.out();
    const std::int64_t s = out.info.shape[1], h = out.info.shape[2], d = out.info.shape[3];
    const float* weight = vector_of(vector, call.maybe(1), call.stream().call_scratch());
    const Tables tables = spread_tables(call, s, d);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const Piece piece{row, 0, d};
      const float* x = floats_of(vector, call.in(0), out.info, piece, scratch);
      const Result result(vector, out, piece, scratch);
      if (weight != nullptr || x == result.values()) {  // in place: rotating reads neighbours
        auto* apart = scratch.take<float>(static_cast<std::size_t>(d));
        if (weight != nullptr)
          vector.normalise(x, 0, rms_scale(vector, x, d, eps).factor, weight, nullptr, apart, d);
        else
          std::copy_n(x, d, apart);
        x = apart;
      }
      const std::int64_t position = row / h % s * d;
      if (tables.cosine != nullptr)
        vector.rotate(x, tables.cosine + position, tables.sine + position, result.values(), d);
      else
        vector.activate(HEDDLE_ACT_NONE, x, result.values(), d);
      result.finish();
    });
  }
};

// Three passes, each over stretches of pixels fixed by shape. What the stretches of one picture
// found is put together in their order by one thread (Chan, Golub, LeVeque 1979: the variance of a
// union from those of its parts).
struct FastGroupNorm : Fast {
  static constexpr const char* op = HEDDLE_OP_GROUP_NORM;
  static void check(const heddle_op_call& call) { check_group_norm(call); }

  struct Part {
    double mean, squares;  // the sum of squared differences from that mean
  };

  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_group_norm_attrs>();
    const heddle_view& out = call.out();
    const std::int64_t items = out.info.shape[0], pixels = out.info.shape[1] * out.info.shape[2],
                       channels = out.info.shape[3];
    if (items * pixels * channels == 0) return;
    constexpr std::int64_t kStretchElements = 32768;
    const std::int64_t stretch = std::clamp<std::int64_t>(kStretchElements / channels, 1, pixels);
    const std::int64_t stretches = (pixels + stretch - 1) / stretch, groups = attrs.groups,
                       width = channels / groups;
    Scratch& shared = call.stream().call_scratch();
    auto* parts = shared.take<Part>(static_cast<std::size_t>(items * stretches * groups));
    call.parallel_for(items * stretches, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t first = tile % stretches * stretch,
                         count = std::min(stretch, pixels - first);
      measure(call, tile / stretches * pixels + first, count, width, parts + tile * groups,
              scratch);
    });
    auto* mean = shared.take<float>(static_cast<std::size_t>(items * channels));
    auto* factor = shared.take<float>(static_cast<std::size_t>(items * channels));
    const float* weight = vector_of(call.device().vector(), call.maybe(1), shared);
    const float* bias = vector_of(call.device().vector(), call.maybe(2), shared);
    for (std::int64_t n = 0; n < items * groups; ++n) {
      const Part* first = parts + n / groups * stretches * groups + n % groups;
      Part whole{0, 0};
      double seen = 0;
      for (std::int64_t i = 0; i < stretches; ++i) {
        const Part& part = first[i * groups];
        const double count = static_cast<double>(std::min(stretch, pixels - i * stretch) * width),
                     apart = part.mean - whole.mean;
        whole.squares += part.squares + apart * apart * seen * count / (seen + count);
        whole.mean += apart * count / (seen + count);
        seen += count;
      }
      const double scale = 1 / std::sqrt(whole.squares / seen + attrs.eps);
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t channel = n % groups * width + c, at = n / groups * channels + channel;
        mean[at] = static_cast<float>(whole.mean);
        factor[at] = static_cast<float>(scale * weight[channel]);
      }
    }
    call.parallel_for(items * stretches, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t item = tile / stretches, first = tile % stretches * stretch,
                         count = std::min(stretch, pixels - first);
      apply(call, item * pixels + first, count, mean + item * channels, factor + item * channels,
            bias, scratch);
    });
  }

 private:
  static void measure(const Call& call, std::int64_t first, std::int64_t count, std::int64_t width,
                      Part* parts, Scratch& scratch) {
    const VectorKernels& vector = call.device().vector();
    const heddle_tensor_info& whole = call.out().info;
    const std::int64_t channels = whole.shape[3];
    auto* sums = scratch.take<float>(static_cast<std::size_t>(channels));
    auto* means = scratch.take<float>(static_cast<std::size_t>(channels));
    const auto for_each_pixel = [&](auto&& body) {
      std::fill(sums, sums + channels, 0.0f);
      for (std::int64_t p = first; p < first + count; ++p) {
        const Scratch::Frame frame(scratch);
        body(floats_of(vector, call.in(0), whole, {p, 0, channels}, scratch));
      }
    };
    const auto group_sum = [&](std::int64_t group) {
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c) sum += sums[group * width + c];
      return sum;
    };
    for_each_pixel([&](const float* x) { vector.add(sums, x, sums, channels); });
    for (std::int64_t g = 0; g < channels / width; ++g) {
      // The mean as f32: the squares below are taken from exactly this number.
      const auto mean = static_cast<float>(group_sum(g) / static_cast<double>(count * width));
      parts[g].mean = mean;
      std::fill(means + g * width, means + (g + 1) * width, mean);
    }
    for_each_pixel(
        [&](const float* x) { vector.add_square_of_difference(x, means, sums, channels); });
    for (std::int64_t g = 0; g < channels / width; ++g) parts[g].squares = group_sum(g);
  }

  static void apply(const Call& call, std::int64_t first, std::int64_t count, const float* mean,
                    const float* factor, const float* bias, Scratch& scratch) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view& out = call.out();
    const heddle_activation kind = call.attrs<heddle_group_norm_attrs>().activation;
    const std::int64_t channels = out.info.shape[3];
    for (std::int64_t p = first; p < first + count; ++p) {
      const Scratch::Frame frame(scratch);
      const Piece piece{p, 0, channels};
      const Result result(vector, out, piece, scratch);
      vector.normalise_each(floats_of(vector, call.in(0), out.info, piece, scratch), mean, factor,
                            bias, result.values(), channels);
      if (kind != HEDDLE_ACT_NONE)
        vector.activate(kind, result.values(), result.values(), channels);
      result.finish();
    }
  }
};

}  // namespace

constexpr heddle_kernel kFastLayerNorm = kernel_table<FastLayerNorm>();
constexpr heddle_kernel kFastRmsNorm = kernel_table<FastRmsNorm>();
constexpr heddle_kernel kFastModulatedNorm = kernel_table<FastModulatedNorm>();
constexpr heddle_kernel kFastNormRope = kernel_table<FastNormRope>();
constexpr heddle_kernel kFastGroupNorm = kernel_table<FastGroupNorm>();

}  // namespace heddle::cpu
