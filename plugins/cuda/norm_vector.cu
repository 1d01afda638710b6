// Norms of rows that fit into registers: each element is read once, eight neighbours at a time, and
// the sums run over what has been read. For rows of whole eights; the others are norm.cu's.
#include <algorithm>

#include "kernels.h"
#include "norm.cuh"

namespace heddle::cuda {

namespace {

// ---- rows of up to 8192: a block each ----

constexpr int kThreads = 128;
constexpr int kMostPieces = 8;

template <Norm kNorm, int kPieces, bool kWide>
__global__ void __launch_bounds__(kThreads) norm_pieces(const __grid_constant__ Row row) {
  const int axes = row.space.rank - 1;
  const auto width = static_cast<int>(row.space.shape[axes]);
  const std::int64_t x = offset_of(row.x, row.space, blockIdx.x, axes),
                     out = offset_of(row.out, row.space, blockIdx.x, axes);
  const std::int64_t weight = offset_of(row.weight, row.space, blockIdx.x, axes),
                     bias = offset_of(row.bias, row.space, blockIdx.x, axes);
  const auto column_of = [](int piece) {
    return (piece * kThreads + static_cast<int>(threadIdx.x)) * kLanes;
  };
  Piece<kWide> pieces[kPieces];
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece)
    pieces[piece].fetch(row.x, x + column_of(piece), column_of(piece) < width);
  float values[kLanes], mean = 0, squares = 0;
  if (kNorm != Norm::kRms) {
    float sum = 0;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      pieces[piece].get(row.x.dtype, values);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) sum += values[i];
    }
    mean = block_sum<kThreads>(sum) / static_cast<float>(width);
  }
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const bool inside = column_of(piece) < width;
    pieces[piece].get(row.x.dtype, values);
#pragma unroll
    for (int i = 0; i < kLanes; ++i)
      squares += inside ? (values[i] - mean) * (values[i] - mean) : 0;
  }
  const float scale = 1 / sqrtf(block_sum<kThreads>(squares) / static_cast<float>(width) + row.eps);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const int column = column_of(piece);
    if (column >= width) break;
    float factor[kLanes];
    pieces[piece].get(row.x.dtype, values);
    if (row.weight.data != nullptr)
      load_lanes(row.weight.data, row.weight.dtype, weight + column, kLanes, factor);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      values[i] = (values[i] - mean) * scale;
      if (row.weight.data != nullptr)
        values[i] *= kNorm == Norm::kModulated ? 1 + factor[i] : factor[i];
    }
    if (row.bias.data != nullptr) {
      load_lanes(row.bias.data, row.bias.dtype, bias + column, kLanes, factor);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) values[i] += factor[i];
    }
    store_lanes(row.out.data, row.out.dtype, out + column, kLanes, values);
  }
}

template <Norm kNorm, int kPieces = 1>
void launch_pieces(Stream& stream, const Row& row, std::int64_t rows, std::int64_t pieces) {
  if constexpr (kPieces < kMostPieces)
    if (pieces > kPieces) return launch_pieces<kNorm, kPieces + 1>(stream, row, rows, pieces);
  const auto grid = static_cast<unsigned>(rows);
  if (lies_wide(row.x))
    norm_pieces<kNorm, kPieces, true><<<grid, kThreads, 0, stream.raw()>>>(row);
  else
    norm_pieces<kNorm, kPieces, false><<<grid, kThreads, 0, stream.raw()>>>(row);
}

struct Vector {
  static constexpr const char* name = "vector";
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }
};

template <Norm kNorm>
struct RowNorm : Vector {
  static constexpr const char* op = kNorm == Norm::kLayer ? HEDDLE_OP_LAYER_NORM
                                    : kNorm == Norm::kRms ? HEDDLE_OP_RMS_NORM
                                                          : HEDDLE_OP_MODULATED_NORM;
  static void check(const heddle_op_call& call) {
    if constexpr (kNorm == Norm::kLayer) cpu::check_layer_norm(call);
    if constexpr (kNorm == Norm::kRms) cpu::check_rms_norm(call);
    if constexpr (kNorm == Norm::kModulated) cpu::check_modulated_norm(call);
  }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_tensor_info& whole = call.out[0]->info;
    const std::int64_t width = whole.shape[whole.rank - 1];
    return !device.settings().reference_only && width > 0 && width % kLanes == 0 &&
                   width <= kThreads * kLanes * kMostPieces
               ? 10
               : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Row row = row_of<kNorm>(call);
    if (row.space.count == 0) return;
    const std::int64_t width = row.space.shape[row.space.rank - 1];
    launch_pieces<kNorm>(stream, row, row.space.count / width,
                         (width + kThreads * kLanes - 1) / (kThreads * kLanes));
  }
};

// ---- heads of 64, 128 or 256: a block for each token, and as many lanes of a warp for a head as
// there are eights in one; what the token's heads share is read once ----

constexpr int kTokenThreads = 384;
constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid's first axis

template <int kWidth>
__global__ void __launch_bounds__(kTokenThreads)
    norm_rope_token(const __grid_constant__ Head head) {
  constexpr int kGroup = kWidth / kLanes;
  const int column = static_cast<int>(threadIdx.x) % kGroup * kLanes;
  const int first = static_cast<int>(threadIdx.x) / kGroup,
            step = static_cast<int>(blockDim.x) / kGroup;
  const auto tokens = static_cast<std::uint32_t>(head.tokens);
  const std::uint32_t item = blockIdx.x / tokens, token = blockIdx.x - item * tokens;
  const std::int64_t x = item * head.x.stride[0] + token * head.x.stride[1] + column;
  const std::int64_t out = item * head.out.stride[0] + token * head.out.stride[1] + column;
  float factor[kLanes], cosine[kLanes / 2], sine[kLanes / 2];
  if (head.weight.data != nullptr)
    load_lanes(head.weight.data, head.weight.dtype, column, kLanes, factor);
  if (head.cosines.data != nullptr) {
    const auto* cosines =
        static_cast<const float*>(head.cosines.data) + token * head.cosines.stride[0] + column / 2;
    const auto* sines =
        static_cast<const float*>(head.sines.data) + token * head.sines.stride[0] + column / 2;
    if (is_aligned(cosines) && is_aligned(sines)) {
      const float4 c = *reinterpret_cast<const float4*>(cosines),
                   s = *reinterpret_cast<const float4*>(sines);
      cosine[0] = c.x, cosine[1] = c.y, cosine[2] = c.z, cosine[3] = c.w;
      sine[0] = s.x, sine[1] = s.y, sine[2] = s.z, sine[3] = s.w;
    } else {
#pragma unroll
      for (int i = 0; i < kLanes / 2; ++i) cosine[i] = cosines[i], sine[i] = sines[i];
    }
  }
  const auto heads = static_cast<int>(head.heads);
  for (int begin = 0; begin < heads; begin += step) {
    // Lanes without a head of their own take part in the shuffles.
    const int wanted = begin + first, number = min(wanted, heads - 1);
    float values[kLanes];
    load_lanes(head.x.data, head.x.dtype, x + number * head.x.stride[2], kLanes, values);
    if (head.weight.data != nullptr) {
      float squares = 0;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) squares += values[i] * values[i];
#pragma unroll
      for (int lanes = kGroup / 2; lanes > 0; lanes /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, lanes);
      const float scale = 1 / sqrtf(squares / kWidth + head.eps);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) values[i] = values[i] * scale * factor[i];
    }
    if (head.cosines.data != nullptr) {
#pragma unroll
      for (int i = 0; i < kLanes / 2; ++i) {
        const float a = values[2 * i], b = values[2 * i + 1];
        values[2 * i] = a * cosine[i] - b * sine[i];
        values[2 * i + 1] = a * sine[i] + b * cosine[i];
      }
    }
    if (wanted < heads)
      store_lanes(head.out.data, head.out.dtype, out + number * head.out.stride[2], kLanes, values);
  }
}

struct HeadNorm : Vector {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE;
  static void check(const heddle_op_call& call) { cpu::check_norm_rope(call); }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const std::int64_t width = call.out[0]->info.shape[3];
    if (device.settings().reference_only || (width != 64 && width != 128 && width != 256)) return 0;
    const heddle_tensor_info& whole = call.out[0]->info;
    if (whole.shape[0] * whole.shape[1] > kMostBlocks) return 0;
    const heddle_view *cosines = device::operand(call, 2), *sines = device::operand(call, 3);
    return cosines == nullptr || (cosines->info.stride[1] == 1 && sines->info.stride[1] == 1) ? 10
                                                                                              : 0;
  }
  template <int kWidth>
  static void launch(Stream& stream, const Head& head) {
    constexpr int kGroup = kWidth / kLanes, kWarp = 32;
    const std::int64_t lanes = (head.heads * kGroup + kWarp - 1) / kWarp * kWarp;
    const auto tokens = static_cast<unsigned>(head.space.count / (head.heads * kWidth));
    norm_rope_token<kWidth>
        <<<tokens, static_cast<unsigned>(std::min<std::int64_t>(lanes, kTokenThreads)), 0,
           stream.raw()>>>(head);
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Head head = head_of(call);
    if (head.space.count == 0) return;
    if (head.space.shape[3] == 64)
      launch<64>(stream, head);
    else if (head.space.shape[3] == 128)
      launch<128>(stream, head);
    else
      launch<256>(stream, head);
  }
};

}  // namespace

constexpr heddle_kernel kVectorLayerNorm = kernel_table<RowNorm<Norm::kLayer>>();
constexpr heddle_kernel kVectorRmsNorm = kernel_table<RowNorm<Norm::kRms>>();
constexpr heddle_kernel kVectorModulatedNorm = kernel_table<RowNorm<Norm::kModulated>>();
constexpr heddle_kernel kVectorNormRope = kernel_table<HeadNorm>();

}  // namespace heddle::cuda
