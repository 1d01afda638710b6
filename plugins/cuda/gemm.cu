// linear/1, conv2d/1, conv3d/1 and upsample_nearest/1 by our own kernels, for every type and
// stride. Both products are the same tiles: an output row is a token or a pixel, a column an output
// channel, and the terms are summed one after the other in f32, so that the order depends on
// nothing.
#include "call.h"
#include "frame_kernels.h"
#include "kernels.h"
#include "layouts.h"
#include "stored.cuh"
#include "widen.h"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64, kDepth = 16, kEach = 4;  // a thread makes 4 x 4 of the tile's 64 x 64

// What differs: where the terms lie.
struct LinearTerms {
  View x, weight;
  Space rows;  // the axes of x without the last
  __device__ std::int64_t row_start(std::int64_t row) const {
    return offset_of(x, rows, row, rows.rank);
  }
  __device__ float left(std::int64_t start, std::int64_t, std::int64_t k) const {
    return load(x.data, x.dtype, start + k);
  }
  __device__ float right(std::int64_t column, std::int64_t k) const {
    return load(weight.data, weight.dtype, column * weight.stride[0] + k);
  }
};

// A matrix in blocks or of 8 bits.
struct StoredTerms : LinearTerms {
  const float* scales;  // nullptr: none
  __device__ float right(std::int64_t column, std::int64_t k) const {
    const float value = load_stored(weight.data, weight.dtype, column * weight.stride[0] + k);
    return scales != nullptr ? value * scales[column] : value;
  }
};

// A rotated matrix as rows of i8. What reads a block passes over its scale, which is not there.
struct TurnedTerms : StoredTerms {
  __device__ float right(std::int64_t column, std::int64_t k) const {
    const auto* const row =
        static_cast<const unsigned char*>(weight.data) + column * weight.stride[0];
    const std::int64_t first = k / 256 * 256;
    return rotated_sum(HEDDLE_I8_ROTATED, row + first - sizeof(float),
                       static_cast<int>(k - first)) *
           (scales[column] / kRotationRoot);
  }
};

struct ConvTerms {
  View x, weight;  // weight: strides of O, C, R, S
  std::int64_t height, width, channels, out_height, out_width, across;  // across: S
  std::int32_t stride[2], padding[2];
  __device__ std::int64_t row_start(std::int64_t row) const {
    return row / out_width / out_height * x.stride[0];
  }
  __device__ float left(std::int64_t start, std::int64_t row, std::int64_t k) const {
    const std::int64_t tap = k / channels, c = k - tap * channels;
    const std::int64_t y = row / out_width % out_height * stride[0] - padding[0] + tap / across;
    const std::int64_t z = row % out_width * stride[1] - padding[1] + tap % across;
    if (y < 0 || y >= height || z < 0 || z >= width) return 0;
    return load(x.data, x.dtype, start + y * x.stride[1] + z * x.stride[2] + c);
  }
  __device__ float right(std::int64_t column, std::int64_t k) const {
    const std::int64_t tap = k / channels, c = k - tap * channels;
    return load(weight.data, weight.dtype,
                column * weight.stride[0] + c * weight.stride[1] + tap / across * weight.stride[2] +
                    tap % across * weight.stride[3]);
  }
};

// Axes are frames, height and width.
struct FrameTerms {
  View x, weight;  // weight: strides of O, C, F, R, S
  std::int64_t size[3], made[3], taps[3], channels;
  std::int32_t stride[3], padding[3];
  __device__ std::int64_t row_start(std::int64_t row) const {
    return row / made[2] / made[1] / made[0] * x.stride[0];
  }
  __device__ float left(std::int64_t start, std::int64_t row, std::int64_t k) const {
    const std::int64_t tap = k / channels, c = k - tap * channels, line = row / made[2];
    const std::int64_t t =
        line / made[1] % made[0] * stride[0] - padding[0] + tap / taps[2] / taps[1];
    const std::int64_t y = line % made[1] * stride[1] - padding[1] + tap / taps[2] % taps[1];
    const std::int64_t z = row % made[2] * stride[2] - padding[2] + tap % taps[2];
    if (t < 0 || t >= size[0] || y < 0 || y >= size[1] || z < 0 || z >= size[2]) return 0;
    return load(x.data, x.dtype, start + t * x.stride[1] + y * x.stride[2] + z * x.stride[3] + c);
  }
  __device__ float right(std::int64_t column, std::int64_t k) const {
    const std::int64_t tap = k / channels, c = k - tap * channels, line = tap / taps[2];
    return load(weight.data, weight.dtype,
                column * weight.stride[0] + c * weight.stride[1] +
                    line / taps[1] * weight.stride[2] + line % taps[1] * weight.stride[3] +
                    tap % taps[2] * weight.stride[4]);
  }
};

struct Result {
  View bias, residual, out;
  Space rows;  // the axes of out without the last
  std::int64_t m, n, k;
  std::int32_t activation;
};

template <class Terms>
__global__ void __launch_bounds__(kThreads)
    gemm(const __grid_constant__ Terms terms, const __grid_constant__ Result result) {
  __shared__ float left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const std::int64_t first_row = std::int64_t{blockIdx.x} * kTile,
                     first_column = std::int64_t{blockIdx.y} * kTile;
  const int across = threadIdx.x % 16, down = threadIdx.x / 16;
  // For loading: a thread has one place along the sum, and every 16th row and column.
  const int depth = threadIdx.x % kDepth, line = threadIdx.x / kDepth;
  std::int64_t starts[kTile / 16];
#pragma unroll
  for (int i = 0; i < kTile / 16; ++i) {
    const std::int64_t row = first_row + line + 16 * i;
    starts[i] = row < result.m ? terms.row_start(row) : 0;
  }
  float sums[kEach][kEach] = {};
  for (std::int64_t begin = 0; begin < result.k; begin += kDepth) {
    const std::int64_t k = begin + depth;
#pragma unroll
    for (int i = 0; i < kTile / 16; ++i) {
      const std::int64_t row = first_row + line + 16 * i, column = first_column + line + 16 * i;
      left[depth][line + 16 * i] =
          row < result.m && k < result.k ? terms.left(starts[i], row, k) : 0;
      right[depth][line + 16 * i] = column < result.n && k < result.k ? terms.right(column, k) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float a[kEach], b[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        a[i] = left[d][down * kEach + i];
        b[i] = right[d][across + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t row = first_row + down * kEach + i;
    if (row >= result.m) break;
    const std::int64_t to = offset_of(result.out, result.rows, row, result.rows.rank);
    const std::int64_t added = offset_of(result.residual, result.rows, row, result.rows.rank);
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t column = first_column + across + 16 * j;
      if (column >= result.n) continue;
      float y = sums[i][j];
      if (result.bias.data != nullptr) y += load(result.bias.data, result.bias.dtype, column);
      y = activate(result.activation, y);
      if (result.residual.data != nullptr)
        y += load(result.residual.data, result.residual.dtype, added + column);
      store(result.out.data, result.out.dtype, to + column, y);
    }
  }
}

Space without_last(const heddle_tensor_info& info) {
  heddle_tensor_info rows = info;
  rows.rank = info.rank - 1;
  return space_of(rows);
}

Result result_of(const heddle_op_call& call, std::int64_t k, std::int32_t activation) {
  const heddle_tensor_info& whole = out(call).info;
  Result result{{},
                view_of(device::operand(call, 3), whole),
                view_of(call.out[0], whole),
                without_last(whole),
                0,
                whole.shape[whole.rank - 1],
                k,
                activation};
  if (const heddle_view* bias = device::operand(call, 2)) result.bias = view_of(bias, bias->info);
  result.m = result.rows.count;
  return result;
}

template <class Terms>
void launch(Stream& stream, const Terms& terms, const Result& result) {
  if (result.m == 0 || result.n == 0) return;
  const dim3 grid(blocks_for(result.m, kTile), blocks_for(result.n, kTile));
  gemm<<<grid, kThreads, 0, stream.raw()>>>(terms, result);
}

struct Linear : Plain {
  static constexpr const char* op = HEDDLE_OP_LINEAR;
  static void check(const heddle_op_call& call) { cpu::check_linear(call); }
  static std::int32_t fits(Device&, const heddle_op_call& call) {
    const std::uint32_t layout = call.in[1]->info.layout;
    return layout == 0 || has_scales(layout) || layout == kInt8Rows ? 1 : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info;
    if (fits(stream.device(), call) == 0)
      device::fail(HEDDLE_UNSUPPORTED, "cannot read the weight ", device::describe(weight));
    LinearTerms terms{view_of(call.in[0], x), view_of(call.in[1], weight), without_last(x)};
    if (weight.layout == kInt8Rows) terms.weight.dtype = HEDDLE_I8;
    const Result result =
        result_of(call, weight.shape[1], attrs<heddle_activation_attrs>(call).kind);
    if (weight.layout == kInt8Rows && is_rotated(weight.dtype))
      launch(stream, TurnedTerms{{terms, scales_of(in(call, 1))}}, result);
    else if (is_widened(weight))
      launch(stream, StoredTerms{terms, scales_of(in(call, 1))}, result);
    else
      launch(stream, terms, result);
  }
};

struct Conv2d : Plain {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static void check(const heddle_op_call& call) { cpu::check_conv2d(call); }
  static std::int32_t fits(Device&, const heddle_op_call& call) {
    const std::uint32_t layout = call.in[1]->info.layout;
    return layout == 0 || layout == kChannelsLast ? 1 : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_conv2d_attrs>(call);
    const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                             &whole = out(call).info;
    if (fits(stream.device(), call) == 0)
      device::fail(HEDDLE_UNSUPPORTED, "cannot read the filter ", device::describe(weight));
    ConvTerms terms{view_of(call.in[0], x),
                    view_of(call.in[1], weight),
                    x.shape[1],
                    x.shape[2],
                    x.shape[3],
                    whole.shape[1],
                    whole.shape[2],
                    weight.shape[3],
                    {a.stride[0], a.stride[1]},
                    {a.padding[0], a.padding[1]}};
    if (weight.layout == kChannelsLast) {
      const std::int64_t channels = weight.shape[1];
      const std::int64_t strides[4] = {weight.shape[2] * weight.shape[3] * channels, 1,
                                       weight.shape[3] * channels, channels};
      for (int axis = 0; axis < 4; ++axis) terms.weight.stride[axis] = strides[axis];
    }
    launch(stream, terms,
           result_of(call, weight.shape[1] * weight.shape[2] * weight.shape[3], HEDDLE_ACT_NONE));
  }
};

struct Conv3d : Plain {
  static constexpr const char* op = HEDDLE_OP_CONV3D;
  static void check(const heddle_op_call& call) { cpu::check_conv3d(call); }
  static std::int32_t fits(Device&, const heddle_op_call& call) {
    const std::uint32_t layout = call.in[1]->info.layout;
    return layout == 0 || layout == kChannelsLast ? 1 : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_conv3d_attrs>(call);
    const heddle_tensor_info &x = in(call, 0).info, &weight = in(call, 1).info,
                             &whole = out(call).info;
    if (fits(stream.device(), call) == 0)
      device::fail(HEDDLE_UNSUPPORTED, "cannot read the filter ", device::describe(weight));
    FrameTerms terms{view_of(call.in[0], x), view_of(call.in[1], weight)};
    terms.channels = weight.shape[1];
    for (int axis = 0; axis < 3; ++axis) {
      terms.size[axis] = x.shape[1 + axis];
      terms.made[axis] = whole.shape[1 + axis];
      terms.taps[axis] = weight.shape[2 + axis];
      terms.stride[axis] = a.stride[axis];
      terms.padding[axis] = a.padding[axis];
    }
    const std::int64_t line = terms.taps[2] * terms.channels, frame = terms.taps[1] * line;
    if (weight.layout == kChannelsLast) {
      const std::int64_t strides[5] = {terms.taps[0] * frame, 1, frame, line, terms.channels};
      for (int axis = 0; axis < 5; ++axis) terms.weight.stride[axis] = strides[axis];
    }
    launch(stream, terms, result_of(call, terms.taps[0] * frame, HEDDLE_ACT_NONE));
  }
};

// ---- upsample_nearest ----

// A thread writes eight channels of a pixel. Numbers of 32 bits where they do: dividing longer ones
// takes several times as long.
template <class Index>
__global__ void upsample(const __grid_constant__ View in, const __grid_constant__ View out,
                         const __grid_constant__ Space space, Index height, Index width) {
  const auto channels = static_cast<Index>(space.shape[3]),
             wide = static_cast<Index>(space.shape[2]), high = static_cast<Index>(space.shape[1]);
  const Index pieces = (channels + kVectorSize - 1) / kVectorSize;
  const Index index = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= static_cast<Index>(space.shape[0]) * high * wide * pieces) return;
  const Index pixel = index / pieces, column = (index - pixel * pieces) * kVectorSize;
  const Index line = pixel / wide, z = pixel - line * wide, item = line / high,
              y = line - item * high;
  const int count = static_cast<int>(min(Index{kVectorSize}, channels - column));
  float values[kVectorSize];
  load_vector(in.data, in.dtype,
              item * in.stride[0] + y * height / high * in.stride[1] +
                  z * width / wide * in.stride[2] + column,
              count, values);
  store_vector(out.data, out.dtype,
               item * out.stride[0] + y * out.stride[1] + z * out.stride[2] + column, count,
               values);
}

struct UpsampleNearest : Plain {
  static constexpr const char* op = HEDDLE_OP_UPSAMPLE_NEAREST;
  static void check(const heddle_op_call& call) { cpu::check_upsample_nearest(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info &x = in(call, 0).info, &whole = out(call).info;
    const Space space = space_of(whole);
    if (space.count == 0) return;
    const std::int64_t items =
        space.count / whole.shape[3] * ((whole.shape[3] + kVectorSize - 1) / kVectorSize);
    const View from = view_of(call.in[0], x), to = view_of(call.out[0], whole);
    const unsigned blocks = blocks_for(items, kThreads);
    if (space.count < std::int64_t{1} << 31 && space.shape[1] < 1 << 16 && space.shape[2] < 1 << 16)
      upsample<std::uint32_t><<<blocks, kThreads, 0, stream.raw()>>>(
          from, to, space, static_cast<std::uint32_t>(x.shape[1]),
          static_cast<std::uint32_t>(x.shape[2]));
    else
      upsample<std::int64_t>
          <<<blocks, kThreads, 0, stream.raw()>>>(from, to, space, x.shape[1], x.shape[2]);
  }
};

}  // namespace

constexpr heddle_kernel kLinear = kernel_table<Linear>();
constexpr heddle_kernel kConv2d = kernel_table<Conv2d>();
constexpr heddle_kernel kConv3d = kernel_table<Conv3d>();
constexpr heddle_kernel kUpsampleNearest = kernel_table<UpsampleNearest>();

}  // namespace heddle::cuda
