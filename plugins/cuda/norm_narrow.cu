// RMS norms of many short rows: heads of queries and keys, channels of a pixel. A few lanes of a
// warp have a row, so that a block has several at a time. For rows of whole eights up to 512.
#include <algorithm>

#include "norm_narrow.cuh"

namespace heddle::cuda {

namespace {

constexpr int kNarrowThreads = 128, kWarpLanes = 32;
constexpr int kNarrowBlocksEach = 16;  // on a multiprocessor at a time

template <int kGroup, int kPieces, Lies kLies>
__global__ void __launch_bounds__(kNarrowThreads) norm_narrow(const __grid_constant__ Row row) {
  const int axes = row.space.rank - 1;
  const auto width = static_cast<int>(row.space.shape[axes]);
  const std::int64_t rows = row.space.count / width;
  constexpr int kRows = kNarrowThreads / kGroup;
  const int own = static_cast<int>(threadIdx.x) / kGroup;
  const auto column_of = [](int piece) {
    return (piece * kGroup + static_cast<int>(threadIdx.x) % kGroup) * kVectorSize;
  };
  float factors[kPieces][kVectorSize];
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) factors[piece][i] = 1;
    if (row.weight.data != nullptr && column_of(piece) < width)
      load_vector(row.weight.data, row.weight.dtype, column_of(piece), kVectorSize, factors[piece]);
  }
  for (std::int64_t begin = std::int64_t{blockIdx.x} * kRows; begin < rows;
       begin += std::int64_t{gridDim.x} * kRows) {
    // Lanes without a row of their own take part in the shuffles.
    const std::int64_t r = min(begin + own, rows - 1);
    const std::int64_t x = offset_of(row.x, row.space, r, axes);
    Piece<kLies> pieces[kPieces];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
      pieces[piece].fetch(row.x, x + column_of(piece), column_of(piece) < width);
    float values[kPieces][kVectorSize], squares = 0;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      pieces[piece].get(values[piece]);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i) squares += values[piece][i] * values[piece][i];
    }
#pragma unroll
    for (int lanes = kGroup / 2; lanes > 0; lanes /= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, lanes);
    const float scale = 1 / sqrtf(squares / static_cast<float>(width) + row.eps);
    if (begin + own >= rows) continue;
    const std::int64_t out = offset_of(row.out, row.space, r, axes);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (column_of(piece) >= width) break;
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i) values[piece][i] *= scale * factors[piece][i];
      store_vector(row.out.data, row.out.dtype, out + column_of(piece), kVectorSize, values[piece]);
    }
  }
}

template <int kGroup, int kPieces>
void launch(Stream& stream, const Row& row, std::int64_t rows) {
  constexpr std::int64_t kRows = kNarrowThreads / kGroup;
  const auto blocks = static_cast<unsigned>(
      std::min((rows + kRows - 1) / kRows,
               std::int64_t{stream.device().multiprocessors()} * kNarrowBlocksEach));
  const Lies lies = how_lies(row.x);
  if (lies == Lies::kBf16)
    norm_narrow<kGroup, kPieces, Lies::kBf16><<<blocks, kNarrowThreads, 0, stream.raw()>>>(row);
  else if (lies == Lies::kF16)
    norm_narrow<kGroup, kPieces, Lies::kF16><<<blocks, kNarrowThreads, 0, stream.raw()>>>(row);
  else
    norm_narrow<kGroup, kPieces, Lies::kAnyhow><<<blocks, kNarrowThreads, 0, stream.raw()>>>(row);
}

}  // namespace

void narrow_rms_norm(Stream& stream, const Row& row, std::int64_t rows, std::int64_t width) {
  const std::int64_t eights = width / kVectorSize;
  if (eights <= 8)
    launch<8, 1>(stream, row, rows);
  else if (eights <= 16)
    launch<16, 1>(stream, row, rows);
  else if (eights <= kWarpLanes)
    launch<kWarpLanes, 1>(stream, row, rows);
  else
    launch<kWarpLanes, 2>(stream, row, rows);
}

}  // namespace heddle::cuda
