// Norms: a block (or, where rows are short, a warp) sums up a row in a fixed order, in f32 and in
// two passes, so that the variance does not cancel.
#include "call.h"
#include "kernels.h"
#include "norm.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;

// ---- rows of any length ----

__device__ float at(const View& view, std::int64_t offset, std::int64_t i) {
  return load(view.data, view.dtype, offset + i);
}

template <Norm kNorm>
__global__ void __launch_bounds__(kThreads) norm_rows(const __grid_constant__ Row row) {
  const int axes = row.space.rank - 1;
  const std::int64_t width = row.space.shape[axes];
  const std::int64_t x = offset_of(row.x, row.space, blockIdx.x, axes),
                     out = offset_of(row.out, row.space, blockIdx.x, axes);
  const std::int64_t weight = offset_of(row.weight, row.space, blockIdx.x, axes),
                     bias = offset_of(row.bias, row.space, blockIdx.x, axes);
  float mean = 0, squares = 0;
  if (has_mean(kNorm)) {
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < width; i += kThreads) sum += at(row.x, x, i);
    mean = block_sum<kThreads>(sum) / static_cast<float>(width);
  }
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
    const float difference = at(row.x, x, i) - mean;
    squares += difference * difference;
  }
  const float scale = 1 / sqrtf(block_sum<kThreads>(squares) / static_cast<float>(width) + row.eps);
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
    float y = (at(row.x, x, i) - mean) * scale;
    const float w = row.weight.data != nullptr ? at(row.weight, weight, i) : 0;
    if (row.weight.data != nullptr) y *= kNorm == Norm::kModulated ? 1 + w : w;
    if (row.bias.data != nullptr) y += at(row.bias, bias, i);
    store(row.out.data, row.out.dtype, out + i, y);
  }
}

template <Norm kNorm>
void launch_rows(Stream& stream, const heddle_op_call& call) {
  const Row row = row_of<kNorm>(call);
  if (row.space.count == 0) return;
  const heddle_tensor_info& whole = out(call).info;
  const std::int64_t rows = row.space.count / whole.shape[whole.rank - 1];
  norm_rows<kNorm><<<static_cast<unsigned>(rows), kThreads, 0, stream.raw()>>>(row);
}

struct LayerNorm : Plain {
  static constexpr const char* op = HEDDLE_OP_LAYER_NORM;
  static void check(const heddle_op_call& call) { cpu::check_layer_norm(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    launch_rows<Norm::kLayer>(stream, call);
  }
};

struct RmsNorm : Plain {
  static constexpr const char* op = HEDDLE_OP_RMS_NORM;
  static void check(const heddle_op_call& call) { cpu::check_rms_norm(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    launch_rows<Norm::kRms>(stream, call);
  }
};

struct ModulatedNorm : Plain {
  static constexpr const char* op = HEDDLE_OP_MODULATED_NORM;
  static void check(const heddle_op_call& call) { cpu::check_modulated_norm(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    launch_rows<Norm::kModulated>(stream, call);
  }
};

struct ModulatedRmsNorm : Plain {
  static constexpr const char* op = HEDDLE_OP_MODULATED_RMS_NORM;
  static void check(const heddle_op_call& call) { cpu::check_modulated_rms_norm(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    launch_rows<Norm::kModulatedRms>(stream, call);
  }
};

// ---- rows of one head: a warp each ----

__global__ void __launch_bounds__(kThreads) norm_rope(const __grid_constant__ Head head) {
  const int lane = threadIdx.x % 32;
  const std::int64_t width = head.space.shape[3], rows = head.space.count / width;
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads / 32} + threadIdx.x / 32;
  if (row >= rows) return;
  const std::int64_t x = offset_of(head.x, head.space, row, 3),
                     out = offset_of(head.out, head.space, row, 3);
  const std::int64_t token = row / head.heads % head.tokens;
  float scale = 1;
  if (head.weight.data != nullptr) {
    float squares = 0;
    for (std::int64_t i = lane; i < width; i += 32) {
      const float value = at(head.x, x, i);
      squares += value * value;
    }
    scale = 1 / sqrtf(warp_sum(squares) / static_cast<float>(width) + head.eps);
  }
  const auto normed = [&](std::int64_t i) {
    const float value = at(head.x, x, i);
    return head.weight.data != nullptr ? value * scale * at(head.weight, 0, i) : value;
  };
  if (head.cosines.data == nullptr) {
    for (std::int64_t i = lane; i < width; i += 32)
      store(head.out.data, head.out.dtype, out + i, normed(i));
    return;
  }
  const auto* cosines =
      static_cast<const float*>(head.cosines.data) + token * head.cosines.stride[0];
  const auto* sines = static_cast<const float*>(head.sines.data) + token * head.sines.stride[0];
  for (std::int64_t i = lane; i < width / 2; i += 32) {
    const float a = normed(2 * i), b = normed(2 * i + 1);
    const float cosine = cosines[i * head.cosines.stride[1]],
                sine = sines[i * head.sines.stride[1]];
    store(head.out.data, head.out.dtype, out + 2 * i, a * cosine - b * sine);
    store(head.out.data, head.out.dtype, out + 2 * i + 1, a * sine + b * cosine);
  }
}

struct NormRope : Plain {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE;
  static void check(const heddle_op_call& call) { cpu::check_norm_rope(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Head head = head_of(call);
    if (head.space.count == 0) return;
    const std::int64_t rows = head.space.count / head.space.shape[3];
    norm_rope<<<blocks_for(rows, kThreads / 32), kThreads, 0, stream.raw()>>>(head);
  }
};

// ---- group norm: statistics of a group in parts, each part by one block, the parts added up in
// order ----

struct Groups {
  View x, weight, bias, out;
  Space space;  // (N, H, W, C)
  std::int32_t groups, parts, activation;
  float eps;
  float* sums;  // (N, groups, parts) sums, then as many sums of squared differences from the mean
};

constexpr std::int64_t kPixelsOfPart = 512;

__device__ std::int64_t pixel_at(const View& view, const Space& space, std::int64_t item,
                                 std::int64_t pixel) {
  const std::int64_t y = pixel / space.shape[2];
  return item * view.stride[0] + y * view.stride[1] + (pixel - y * space.shape[2]) * view.stride[2];
}

__device__ float sum_of_parts(const float* parts, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += parts[i];
  return sum;
}

// grid: (parts, N * groups). kSquares: the second pass, around the mean.
template <bool kSquares>
__global__ void __launch_bounds__(kThreads) group_sums(const __grid_constant__ Groups g) {
  const std::int64_t item = blockIdx.y / g.groups, group = blockIdx.y % g.groups,
                     width = g.space.shape[3] / g.groups;
  const std::int64_t pixels = g.space.shape[1] * g.space.shape[2],
                     begin = blockIdx.x * kPixelsOfPart;
  const std::int64_t here = min(kPixelsOfPart, pixels - begin);
  float* sums = g.sums + std::int64_t{blockIdx.y} * g.parts;
  const std::int64_t second = g.space.shape[0] * g.groups * g.parts;
  const float mean = kSquares ? sum_of_parts(sums, g.parts) /
                                    (static_cast<float>(pixels) * static_cast<float>(width))
                              : 0;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < here * width; i += kThreads) {
    const std::int64_t pixel = i / width;
    const float value =
        load(g.x.data, g.x.dtype,
             pixel_at(g.x, g.space, item, begin + pixel) + group * width + (i - pixel * width)) -
        mean;
    sum += kSquares ? value * value : value;
  }
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) sums[(kSquares ? second : 0) + blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) group_apply(const __grid_constant__ Groups g) {
  const std::int64_t item = blockIdx.y / g.groups, group = blockIdx.y % g.groups,
                     width = g.space.shape[3] / g.groups;
  const std::int64_t pixels = g.space.shape[1] * g.space.shape[2],
                     begin = blockIdx.x * kPixelsOfPart;
  const std::int64_t here = min(kPixelsOfPart, pixels - begin);
  const float* sums = g.sums + std::int64_t{blockIdx.y} * g.parts;
  const float count = static_cast<float>(pixels) * static_cast<float>(width);
  const float mean = sum_of_parts(sums, g.parts) / count;
  const float scale =
      1 /
      sqrtf(sum_of_parts(sums + g.space.shape[0] * g.groups * g.parts, g.parts) / count + g.eps);
  for (std::int64_t i = threadIdx.x; i < here * width; i += kThreads) {
    const std::int64_t pixel = i / width, channel = group * width + (i - pixel * width);
    const float x =
        load(g.x.data, g.x.dtype, pixel_at(g.x, g.space, item, begin + pixel) + channel);
    const float y = (x - mean) * scale * load(g.weight.data, g.weight.dtype, channel) +
                    load(g.bias.data, g.bias.dtype, channel);
    store(g.out.data, g.out.dtype, pixel_at(g.out, g.space, item, begin + pixel) + channel,
          activate(g.activation, y));
  }
}

struct GroupNorm : Plain {
  static constexpr const char* op = HEDDLE_OP_GROUP_NORM;
  static void check(const heddle_op_call& call) { cpu::check_group_norm(call); }

  static std::int64_t parts(const heddle_op_call& call) {
    const heddle_tensor_info& info = out(call).info;
    return (info.shape[1] * info.shape[2] + kPixelsOfPart - 1) / kPixelsOfPart;
  }
  static std::size_t workspace(Device&, const heddle_op_call& call) {
    return static_cast<std::size_t>(2 * out(call).info.shape[0] *
                                    attrs<heddle_group_norm_attrs>(call).groups * parts(call)) *
           sizeof(float);
  }

  static void run(Stream& stream, const heddle_op_call& call, void* workspace) {
    const heddle_tensor_info& whole = out(call).info;
    const auto& a = attrs<heddle_group_norm_attrs>(call);
    const Groups g{view_of(call.in[0], whole),
                   view_of(call.in[1], in(call, 1).info),
                   view_of(call.in[2], in(call, 2).info),
                   view_of(call.out[0], whole),
                   space_of(whole),
                   a.groups,
                   static_cast<std::int32_t>(parts(call)),
                   a.activation,
                   static_cast<float>(a.eps),
                   static_cast<float*>(workspace)};
    if (g.space.count == 0) return;
    const dim3 grid(static_cast<unsigned>(g.parts),
                    static_cast<unsigned>(whole.shape[0] * a.groups));
    group_sums<false><<<grid, kThreads, 0, stream.raw()>>>(g);
    group_sums<true><<<grid, kThreads, 0, stream.raw()>>>(g);
    group_apply<<<grid, kThreads, 0, stream.raw()>>>(g);
  }
};

}  // namespace

constexpr heddle_kernel kLayerNorm = kernel_table<LayerNorm>();
constexpr heddle_kernel kRmsNorm = kernel_table<RmsNorm>();
constexpr heddle_kernel kModulatedNorm = kernel_table<ModulatedNorm>();
constexpr heddle_kernel kModulatedRmsNorm = kernel_table<ModulatedRmsNorm>();
constexpr heddle_kernel kNormRope = kernel_table<NormRope>();
constexpr heddle_kernel kGroupNorm = kernel_table<GroupNorm>();

}  // namespace heddle::cuda
