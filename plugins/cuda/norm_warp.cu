// Layer norms of rows that a warp holds in its registers: all rows are on their way at once, and
// sums need no barrier. For rows of whole eights up to 1536.
#include "norm_warp.cuh"

namespace heddle::cuda {

namespace {

constexpr int kWarpLanes = 32, kRowsEach = 4;  // rows of a block

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

template <int kPieces, Lies kLies>
__global__ void __launch_bounds__(kWarpLanes* kRowsEach)
    norm_warp(const __grid_constant__ Row row) {
  const int axes = row.space.rank - 1;
  const auto width = static_cast<int>(row.space.shape[axes]);
  const std::int64_t rows = row.space.count / width;
  const std::int64_t r =
      std::int64_t{blockIdx.x} * kRowsEach + static_cast<int>(threadIdx.x) / kWarpLanes;
  if (r >= rows) return;  // all lanes of the warp
  const auto column_of = [](int piece) {
    return (piece * kWarpLanes + static_cast<int>(threadIdx.x) % kWarpLanes) * kVectorSize;
  };
  Piece<kLies> pieces[kPieces];
  const std::int64_t x = offset_of(row.x, row.space, r, axes);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece)
    pieces[piece].fetch(row.x, x + column_of(piece), column_of(piece) < width);
  // On their way with the row: a warp has nothing else to do meanwhile.
  float factors[kPieces][kVectorSize], shifts[kPieces][kVectorSize];
  const std::int64_t weight = offset_of(row.weight, row.space, r, axes),
                     bias = offset_of(row.bias, row.space, r, axes);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const int column = column_of(piece);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) factors[piece][i] = 1, shifts[piece][i] = 0;
    if (row.weight.data != nullptr && column < width)
      load_vector(row.weight.data, row.weight.dtype, weight + column, kVectorSize, factors[piece]);
    if (row.bias.data != nullptr && column < width)
      load_vector(row.bias.data, row.bias.dtype, bias + column, kVectorSize, shifts[piece]);
  }
  float values[kVectorSize], sum = 0, squares = 0;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    pieces[piece].get(values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) sum += values[i];
  }
  const float mean = warp_sum(sum) / static_cast<float>(width);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const bool inside = column_of(piece) < width;
    pieces[piece].get(values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      squares += inside ? (values[i] - mean) * (values[i] - mean) : 0;
  }
  const float scale = 1 / sqrtf(warp_sum(squares) / static_cast<float>(width) + row.eps);
  const std::int64_t out = offset_of(row.out, row.space, r, axes);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const int column = column_of(piece);
    if (column >= width) break;
    pieces[piece].get(values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i)
      values[i] = (values[i] - mean) * scale * factors[piece][i] + shifts[piece][i];
    store_vector(row.out.data, row.out.dtype, out + column, kVectorSize, values);
  }
}

template <Lies kLies, int kPieces = 1>
void launch(Stream& stream, const Row& row, std::int64_t rows, std::int64_t pieces) {
  constexpr int kMostPieces = kWarpRowLimit / (kWarpLanes * kVectorSize);
  if constexpr (kPieces < kMostPieces)
    if (pieces > kPieces) return launch<kLies, kPieces + 1>(stream, row, rows, pieces);
  norm_warp<kPieces, kLies>
      <<<blocks_for(rows, kRowsEach), kWarpLanes * kRowsEach, 0, stream.raw()>>>(row);
}

}  // namespace

void warp_layer_norm(Stream& stream, const Row& row, std::int64_t rows, std::int64_t width) {
  const std::int64_t pieces = (width + kWarpLanes * kVectorSize - 1) / (kWarpLanes * kVectorSize);
  const Lies lies = how_lies(row.x);
  if (lies == Lies::kBf16)
    launch<Lies::kBf16>(stream, row, rows, pieces);
  else if (lies == Lies::kF16)
    launch<Lies::kF16>(stream, row, rows, pieces);
  else
    launch<Lies::kAnyhow>(stream, row, rows, pieces);
}

}  // namespace heddle::cuda
