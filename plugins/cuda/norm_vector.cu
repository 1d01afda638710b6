// Norms of rows that fit into registers: each element is read once, eight neighbours at a time, and
// the sums run over what has been read. For rows of whole eights; the others are norm.cu's.
#include <algorithm>
#include <bit>

#include "kernels.h"
#include "norm_narrow.cuh"
#include "norm_warp.cuh"

namespace heddle::cuda {

namespace {

// ---- rows of up to 8192: a block goes from row to row, and has the next one on its way while it
// sums up one. What rows share is read once, while it stays the same ----

constexpr int kThreads = 128;
constexpr int kMostPieces = 8;
constexpr int kMostKept = 4;    // pieces whose vectors stay in registers
constexpr int kBlocksEach = 3;  // on a multiprocessor at a time

// What a row is multiplied by and what is added to it.
struct Vectors {
  float scale[kVectorSize], shift[kVectorSize];
  __device__ void read(const Row& row, std::int64_t weight, std::int64_t bias) {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) scale[i] = 1, shift[i] = 0;
    if (row.weight.data != nullptr)
      load_vector(row.weight.data, row.weight.dtype, weight, kVectorSize, scale);
    if (row.bias.data != nullptr)
      load_vector(row.bias.data, row.bias.dtype, bias, kVectorSize, shift);
  }
};

template <Norm kNorm, int kPieces, Lies kLies>
__global__ void __launch_bounds__(kThreads, kPieces <= kMostKept ? kBlocksEach : 1)
    norm_pieces(const __grid_constant__ Row row) {
  const int axes = row.space.rank - 1;
  const auto width = static_cast<int>(row.space.shape[axes]);
  const std::int64_t rows = row.space.count / width;
  const auto column_of = [](int piece) {
    return (piece * kThreads + static_cast<int>(threadIdx.x)) * kVectorSize;
  };
  // From the last row to the first: what was written last is still near.
  const auto place_of = [&](const View& view, std::int64_t r) {
    return offset_of(view, row.space, rows - 1 - r, axes);
  };
  Piece<kLies> next[kPieces];
  const auto fetch = [&](std::int64_t r) {
    const std::int64_t x = place_of(row.x, r);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
      next[piece].fetch(row.x, x + column_of(piece), column_of(piece) < width);
  };
  constexpr bool kKeeps = kPieces <= kMostKept;
  Vectors vectors[kKeeps ? kPieces : 1];
  std::int64_t weight = place_of(row.weight, blockIdx.x), bias = place_of(row.bias, blockIdx.x);
  const auto keep_vectors = [&] {
#pragma unroll
    for (int piece = 0; piece < (kKeeps ? kPieces : 0); ++piece)
      if (column_of(piece) < width)
        vectors[piece].read(row, weight + column_of(piece), bias + column_of(piece));
  };
  fetch(blockIdx.x);
  keep_vectors();

  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    Piece<kLies> pieces[kPieces];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) pieces[piece] = next[piece];
    if (r + gridDim.x < rows) fetch(r + gridDim.x);
    float values[kVectorSize], mean = 0, squares = 0;
    if (has_mean(kNorm)) {
      float sum = 0;
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        pieces[piece].get(values);
#pragma unroll
        for (int i = 0; i < kVectorSize; ++i) sum += values[i];
      }
      mean = block_sum<kThreads>(sum) / static_cast<float>(width);
    }
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const bool inside = column_of(piece) < width;
      pieces[piece].get(values);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i)
        squares += inside ? (values[i] - mean) * (values[i] - mean) : 0;
    }
    const float scale =
        1 / sqrtf(block_sum<kThreads>(squares) / static_cast<float>(width) + row.eps);
    const std::int64_t out = place_of(row.out, r), own_weight = place_of(row.weight, r),
                       own_bias = place_of(row.bias, r);
    if (own_weight != weight || own_bias != bias) {
      weight = own_weight, bias = own_bias;
      keep_vectors();
    }
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int column = column_of(piece);
      if (column >= width) break;
      Vectors& own = vectors[kKeeps ? piece : 0];
      if (!kKeeps) own.read(row, weight + column, bias + column);
      pieces[piece].get(values);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i)
        values[i] = (values[i] - mean) * scale *
                        (kNorm == Norm::kModulated ? 1 + own.scale[i] : own.scale[i]) +
                    own.shift[i];
      store_vector(row.out.data, row.out.dtype, out + column, kVectorSize, values);
    }
  }
}

template <Norm kNorm, Lies kLies, int kPieces = 1>
void launch_pieces(Stream& stream, const Row& row, std::int64_t rows, std::int64_t pieces) {
  // Not a kernel for each number: lengths of their own are only those that models have.
  constexpr int kNext = kLies == Lies::kAnyhow || kPieces > 3 ? 2 * kPieces : kPieces + 1;
  if constexpr (kPieces < kMostPieces)
    if (pieces > kPieces) return launch_pieces<kNorm, kLies, kNext>(stream, row, rows, pieces);
  const auto blocks = static_cast<unsigned>(
      std::min(rows, std::int64_t{stream.device().multiprocessors()} * kBlocksEach));
  norm_pieces<kNorm, kPieces, kLies><<<blocks, kThreads, 0, stream.raw()>>>(row);
}

struct Vector {
  static constexpr const char* name = "vector";
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }
};

template <Norm kNorm>
struct RowNorm : Vector {
  static constexpr const char* op = kNorm == Norm::kLayer       ? HEDDLE_OP_LAYER_NORM
                                    : kNorm == Norm::kRms       ? HEDDLE_OP_RMS_NORM
                                    : kNorm == Norm::kModulated ? HEDDLE_OP_MODULATED_NORM
                                                                : HEDDLE_OP_MODULATED_RMS_NORM;
  static void check(const heddle_op_call& call) {
    if constexpr (kNorm == Norm::kLayer) cpu::check_layer_norm(call);
    if constexpr (kNorm == Norm::kRms) cpu::check_rms_norm(call);
    if constexpr (kNorm == Norm::kModulated) cpu::check_modulated_norm(call);
    if constexpr (kNorm == Norm::kModulatedRms) cpu::check_modulated_rms_norm(call);
  }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_tensor_info& whole = call.out[0]->info;
    const std::int64_t width = whole.shape[whole.rank - 1];
    return !device.settings().reference_only && width > 0 && width % kVectorSize == 0 &&
                   width <= kThreads * kVectorSize * kMostPieces
               ? 10
               : 0;
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Row row = row_of<kNorm>(call);
    if (row.space.count == 0) return;
    const std::int64_t width = row.space.shape[row.space.rank - 1];
    const std::int64_t rows = row.space.count / width,
                       pieces = (width + kThreads * kVectorSize - 1) / (kThreads * kVectorSize);
    if (kNorm == Norm::kRms && width <= kNarrowRowLimit)
      return narrow_rms_norm(stream, row, rows, width);
    if (kNorm == Norm::kLayer && width <= kWarpRowLimit)
      return warp_layer_norm(stream, row, rows, width);
    const Lies lies = how_lies(row.x);
    if (lies == Lies::kBf16) return launch_pieces<kNorm, Lies::kBf16>(stream, row, rows, pieces);
    // The norm of denoisers, whose sums are in f32.
    if constexpr (kNorm == Norm::kModulated || kNorm == Norm::kModulatedRms) {
      if (lies == Lies::kF32) return launch_pieces<kNorm, Lies::kF32>(stream, row, rows, pieces);
      if (lies == Lies::kF16) return launch_pieces<kNorm, Lies::kF16>(stream, row, rows, pieces);
    }
    launch_pieces<kNorm, Lies::kAnyhow>(stream, row, rows, pieces);
  }
};

// ---- heads of 64, 96, 128 or 256: a block for each token, and for a head as many lanes of a warp
// as there are eights in one, or the next power of two. A lane has several heads on their way; what
// they share is read once ----

constexpr int kHeadsEach = 3;
constexpr int kTokenThreads = 128;
constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid's first axis
template <int kWidth>
constexpr int kLanesOf = std::bit_ceil(unsigned{kWidth / kVectorSize});

template <int kWidth, Lies kLies>
__global__ void __launch_bounds__(kTokenThreads)
    norm_rope_token(const __grid_constant__ Head head) {
  constexpr int kGroup = kLanesOf<kWidth>;
  const int column = static_cast<int>(threadIdx.x) % kGroup * kVectorSize;
  const bool inside = column < kWidth;  // else a lane without numbers, which takes part in shuffles
  const int first = static_cast<int>(threadIdx.x) / kGroup,
            step = static_cast<int>(blockDim.x) / kGroup;
  const auto tokens = static_cast<std::uint32_t>(head.tokens);
  const std::uint32_t item = blockIdx.x / tokens, token = blockIdx.x - item * tokens;
  const std::int64_t x = item * head.x.stride[0] + token * head.x.stride[1] + column;
  const std::int64_t out = item * head.out.stride[0] + token * head.out.stride[1] + column;
  const auto heads = static_cast<int>(head.heads);
  Piece<kLies> pieces[kHeadsEach];
  const auto fetch = [&](int begin) {
  // Lanes without a head of their own take part in the shuffles.
#pragma unroll
    for (int n = 0; n < kHeadsEach; ++n)
      pieces[n].fetch(head.x, x + min(begin + n * step, heads - 1) * head.x.stride[2], inside);
  };
  fetch(first);
  float factor[kVectorSize], cosine[kVectorSize / 2], sine[kVectorSize / 2];
  if (head.weight.data != nullptr && inside)
    load_vector(head.weight.data, head.weight.dtype, column, kVectorSize, factor);
  if (head.cosines.data != nullptr && inside) {
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
      for (int i = 0; i < kVectorSize / 2; ++i) cosine[i] = cosines[i], sine[i] = sines[i];
    }
  }
  for (int begin = first; begin - first < heads; begin += step * kHeadsEach) {
    if (begin != first) fetch(begin);
#pragma unroll
    for (int n = 0; n < kHeadsEach; ++n) {
      const int number = begin + n * step;
      float values[kVectorSize];
      pieces[n].get(values);
      if (head.weight.data != nullptr) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < kVectorSize; ++i) squares += values[i] * values[i];
#pragma unroll
        for (int lanes = kGroup / 2; lanes > 0; lanes /= 2)
          squares += __shfl_xor_sync(0xffffffffu, squares, lanes);
        const float scale = 1 / sqrtf(squares / kWidth + head.eps);
#pragma unroll
        for (int i = 0; i < kVectorSize; ++i) values[i] = values[i] * scale * factor[i];
      }
      if (head.cosines.data != nullptr) {
#pragma unroll
        for (int i = 0; i < kVectorSize / 2; ++i) {
          const float a = values[2 * i], b = values[2 * i + 1];
          values[2 * i] = a * cosine[i] - b * sine[i];
          values[2 * i + 1] = a * sine[i] + b * cosine[i];
        }
      }
      if (number < heads && inside)
        Piece<kLies>::put(head.out, out + number * head.out.stride[2], values);
    }
  }
}

struct HeadNorm : Vector {
  static constexpr const char* op = HEDDLE_OP_NORM_ROPE;
  static void check(const heddle_op_call& call) { cpu::check_norm_rope(call); }
  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const std::int64_t width = call.out[0]->info.shape[3];
    if (device.settings().reference_only ||
        (width != 64 && width != 96 && width != 128 && width != 256))
      return 0;
    const heddle_tensor_info& whole = call.out[0]->info;
    if (whole.shape[0] * whole.shape[1] > kMostBlocks) return 0;
    const heddle_view *cosines = device::operand(call, 2), *sines = device::operand(call, 3);
    return cosines == nullptr || (cosines->info.stride[1] == 1 && sines->info.stride[1] == 1) ? 10
                                                                                              : 0;
  }
  template <int kWidth>
  static void launch(Stream& stream, const Head& head) {
    constexpr int kGroup = kLanesOf<kWidth>, kWarp = 32;
    const std::int64_t groups = (head.heads + kHeadsEach - 1) / kHeadsEach;
    const auto threads = static_cast<unsigned>(
        std::min<std::int64_t>((groups * kGroup + kWarp - 1) / kWarp * kWarp, kTokenThreads));
    const auto tokens = static_cast<unsigned>(head.space.count / (head.heads * kWidth));
    const Lies lies = how_lies(head.x);
    if (lies == Lies::kBf16 && how_lies(head.out) == lies)
      norm_rope_token<kWidth, Lies::kBf16><<<tokens, threads, 0, stream.raw()>>>(head);
    else if (lies == Lies::kF16 && how_lies(head.out) == lies)
      norm_rope_token<kWidth, Lies::kF16><<<tokens, threads, 0, stream.raw()>>>(head);
    else
      norm_rope_token<kWidth, Lies::kAnyhow><<<tokens, threads, 0, stream.raw()>>>(head);
  }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const Head head = head_of(call);
    if (head.space.count == 0) return;
    if (head.space.shape[3] == 64)
      launch<64>(stream, head);
    else if (head.space.shape[3] == 96)
      launch<96>(stream, head);
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
constexpr heddle_kernel kVectorModulatedRmsNorm = kernel_table<RowNorm<Norm::kModulatedRms>>();
constexpr heddle_kernel kVectorNormRope = kernel_table<HeadNorm>();

}  // namespace heddle::cuda
