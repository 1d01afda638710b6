#include "scaled_int8.h"

#include <algorithm>

#include "card.h"
#include "matmul.h"
#include "plugins/blocks/linear_int8.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kGroup = blocks::kInt8Rotated, kHalf = 16;  // a group is turned by half a warp
constexpr std::int64_t kTiedRows = 16;  // the library's units take numbers by that many at a time

// One that is no number stays: it is larger than none and none is larger.
__device__ float larger(float most, float value) {
  const float size = fabsf(value);
  return size > most || isnan(size) ? size : most;
}

struct Scale {
  float scale, by;
};

// Of the block's row. `most` is what each thread has found.
__device__ Scale scale_of(float most) {
  __shared__ float largest[kWarps];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    most = larger(most, __shfl_xor_sync(0xffffffffu, most, distance));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kWarps; ++i) most = larger(most, largest[i]);
  const float scale = __fdiv_rn(most, blocks::kInt8Largest),
              kept = scale < blocks::kInt8LeastScale ? blocks::kInt8LeastScale : scale;
  return {kept, __frcp_rn(kept)};
}

__device__ signed char rounded(float value, float by) {
  const float whole = rintf(__fmul_rn(value, by));
  return static_cast<signed char>(
      fminf(fmaxf(whole, -blocks::kInt8Largest), blocks::kInt8Largest));  // of NaN -127
}

__device__ std::int64_t place_of(const Rows& rows, std::int64_t row) {
  const std::int64_t item = rows.batch == 1 ? 0 : row / rows.rows;
  return item * rows.jump + (row - item * rows.rows) * rows.step;
}

// Rows that there are not.
__device__ void clear_row(signed char* to, std::int64_t columns) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * 16; c < columns; c += kThreads * 16)
    *reinterpret_cast<uint4*>(to + c) = make_uint4(0, 0, 0, 0);
}

// A block for each row, which it reads twice: the second time it lies in a cache.
__global__ void __launch_bounds__(kThreads)
    int8_rows(const __grid_constant__ Int8Rows rows, std::int64_t count) {
  const std::int64_t row = blockIdx.x;
  auto* const to = static_cast<signed char*>(rows.to) + row * rows.columns;
  if (row >= count) return clear_row(to, rows.columns);
  const std::int64_t begin = place_of(rows.x, row);
  float most = 0;
  for (std::int64_t c = threadIdx.x * kVectorSize; c < rows.columns; c += kThreads * kVectorSize) {
    float values[kVectorSize];
    load_vector(rows.from, rows.dtype, begin + c, kVectorSize, values);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) most = larger(most, values[i]);
  }
  const Scale scale = scale_of(most);
  if (threadIdx.x == 0) rows.scales[row] = scale.scale;
  for (std::int64_t c = threadIdx.x * kVectorSize; c < rows.columns; c += kThreads * kVectorSize) {
    float values[kVectorSize];
    load_vector(rows.from, rows.dtype, begin + c, kVectorSize, values);
    union {
      signed char each[kVectorSize];
      uint2 all;
    } whole;
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) whole.each[i] = rounded(values[i], scale.by);
    *reinterpret_cast<uint2*>(to + c) = whole.all;
  }
}

// The base-4 digits of 16 numbers, the lower and then the higher: two of the four of a rotation.
__device__ void rotate_sixteen(float (&x)[kHalf]) {
#pragma unroll
  for (int i = 0; i < kHalf; i += 4) blocks::rotate_four(x[i], x[i + 1], x[i + 2], x[i + 3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) blocks::rotate_four(x[i], x[i + 4], x[i + 8], x[i + 12]);
}

// Of number `column` in row `row` of a group as a square of 16. Fours of a row are exchanged by the
// row, so that what half a warp reads or writes at a time lies in banks of its own.
__device__ int place_in_group(int row, int column) {
  return row * kHalf + ((column / 4 ^ row / 2) & 3) * 4 + column % 4;
}

// The fours of a row, which lie together.
__device__ float4& four_at(float* group, int row, int four) {
  return *reinterpret_cast<float4*>(group + place_in_group(row, four * 4));
}

// A block for each row, which it keeps turned in shared memory until its largest number is known. A
// group is a square of 16: a thread turns a row of it, then a column.
__global__ void __launch_bounds__(kThreads)
    int8_turned_rows(const __grid_constant__ Int8Rows rows, std::int64_t count) {
  extern __shared__ float4 kept[];
  auto* const numbers = reinterpret_cast<float*>(kept);
  const std::int64_t row = blockIdx.x;
  auto* const to = static_cast<signed char*>(rows.to) + row * rows.columns;
  if (row >= count) return clear_row(to, rows.columns);
  const std::int64_t begin = place_of(rows.x, row);
  const int groups = static_cast<int>(rows.columns / kGroup), thread = threadIdx.x % kHalf,
            half = threadIdx.x / kHalf, other = half % 2;
  float most = 0;
  for (int first = 0; first < groups; first += kThreads / kHalf) {
    const int g = first + half;
    const bool here = g < groups;
    float* const group = numbers + (here ? g : 0) * kGroup;
    float x[kHalf];
    if (here) {
      const std::int64_t at = begin + std::int64_t{g} * kGroup + thread * kHalf;
      float low[kVectorSize], high[kVectorSize];
      load_vector(rows.from, rows.dtype, at, kVectorSize, low);
      load_vector(rows.from, rows.dtype, at + kVectorSize, kVectorSize, high);
#pragma unroll
      for (int i = 0; i < kVectorSize; ++i) x[i] = low[i], x[i + kVectorSize] = high[i];
      rotate_sixteen(x);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        four_at(group, thread, i) = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    }
    __syncwarp();
    if (here) {
      // The two halves of a warp begin with rows of other banks. Exchanging neighbours changes
      // neither sums nor signs, as both are of pairs.
#pragma unroll
      for (int i = 0; i < kHalf; ++i) x[i] = group[place_in_group(i ^ other, thread)];
      rotate_sixteen(x);
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        x[i] *= 1 / blocks::kInt8Root;  // a power of 2
        most = larger(most, x[i]);
        group[place_in_group(i ^ other, thread)] = x[i];
      }
    }
  }
  const Scale scale = scale_of(most);  // behind all that is written above
  if (threadIdx.x == 0) rows.scales[row] = scale.scale;
  for (int piece = threadIdx.x; piece < groups * kHalf; piece += kThreads) {
    float* const group = numbers + piece / kHalf * kGroup;
    union {
      signed char each[kHalf];
      uint4 all;
    } whole;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 four = four_at(group, piece % kHalf, i);
      whole.each[4 * i] = rounded(four.x, scale.by);
      whole.each[4 * i + 1] = rounded(four.y, scale.by);
      whole.each[4 * i + 2] = rounded(four.z, scale.by);
      whole.each[4 * i + 3] = rounded(four.w, scale.by);
    }
    *reinterpret_cast<uint4*>(to + std::int64_t{piece} * kHalf) = whole.all;
  }
}

// A block for each row of a file's blocks of 4 + 256 bytes.
__global__ void __launch_bounds__(kThreads)
    store_rows(const unsigned char* from, std::int64_t columns, signed char* to, float* scales) {
  constexpr int kBytes = kGroup + static_cast<int>(sizeof(float));
  const std::int64_t row = blockIdx.x, count = columns / kGroup;
  const unsigned char* const blocks_of_row = from + row * count * kBytes;
  // Blocks are whole fours of bytes, and begin at such.
  const auto scale_of_block = [&](std::int64_t b) {
    return *reinterpret_cast<const float*>(blocks_of_row + b * kBytes);
  };
  float most = scale_of_block(0);
  for (std::int64_t b = 1; b < count; ++b)
    if (fabsf(scale_of_block(b)) > fabsf(most)) most = scale_of_block(b);
  if (threadIdx.x == 0) scales[row] = most;
  for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
    const std::int64_t b = c / kGroup;
    const float scale = scale_of_block(b);
    const auto number = static_cast<signed char>(blocks_of_row[b * kBytes + 4 + c % kGroup]);
    to[row * columns + c] =
        scale == most ? number
                      : static_cast<signed char>(
                            rintf(__fmul_rn(static_cast<float>(number), __fdiv_rn(scale, most))));
  }
}

// What finish_int8() reads and writes.
struct Finishing {
  const std::int32_t* sums;
  std::int64_t first, columns, pieces;  // pieces: eights of all rows
  const float *x_scales, *weight_scales;
  View bias, residual, out;  // no data: none
  Rows residual_rows, out_rows;
  std::int32_t activation;
};

__global__ void __launch_bounds__(kThreads) finish_rows(const __grid_constant__ Finishing f) {
  const std::int64_t piece = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (piece >= f.pieces) return;
  const std::int64_t in_row = f.columns / kVectorSize, row = piece / in_row,
                     column = (piece - row * in_row) * kVectorSize;
  const auto* const from = reinterpret_cast<const int4*>(f.sums + piece * kVectorSize);
  const int4 low = from[0], high = from[1];
  const int sums[kVectorSize] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  const float x_scale = f.x_scales[f.first + row];
  float scales[kVectorSize], y[kVectorSize], bias[kVectorSize], added[kVectorSize];
  load_vector(f.weight_scales, HEDDLE_F32, column, kVectorSize, scales);
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i)
    y[i] = __fmul_rn(__int2float_rn(sums[i]), __fmul_rn(x_scale, scales[i]));
  if (f.bias.data != nullptr) {
    load_vector(f.bias.data, f.bias.dtype, column, kVectorSize, bias);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) y[i] = __fadd_rn(y[i], bias[i]);
  }
#pragma unroll
  for (int i = 0; i < kVectorSize; ++i) y[i] = activate(f.activation, y[i]);
  if (f.residual.data != nullptr) {
    load_vector(f.residual.data, f.residual.dtype,
                place_of(f.residual_rows, f.first + row) + column, kVectorSize, added);
#pragma unroll
    for (int i = 0; i < kVectorSize; ++i) y[i] = __fadd_rn(y[i], added[i]);
  }
  store_vector(f.out.data, f.out.dtype, place_of(f.out_rows, f.first + row) + column, kVectorSize,
               y);
}

View data_of(const heddle_view* view) {
  View made;
  if (view == nullptr) return made;
  made.data = view->data;
  made.dtype = view->info.dtype;
  return made;
}

std::size_t turned_bytes(std::int64_t columns) {
  return static_cast<std::size_t>(columns) * sizeof(float);
}

}  // namespace

bool multiplies_int8(const Device& device, std::int32_t use, const heddle_tensor_info& weight) {
  constexpr std::size_t kOthers = 1 << 10;  // shared memory for all else
  const Settings& settings = device.settings();
  return settings.linear_int8 && !settings.reference_only && device.card().major >= 8 &&
         blocks::is_int8_matrix(use, weight) && weight.shape[0] % kTiedRows == 0 &&
         (weight.dtype != HEDDLE_I8_ROTATED ||
          turned_bytes(weight.shape[1]) + kOthers <= most_shared_bytes(device.card())) &&
         Matmul::is_there();
}

void to_int8(Stream& stream, const Int8Rows& rows) {
  const std::int64_t count = rows.x.batch * rows.x.rows;
  const auto grid = static_cast<unsigned>(rows.padded);
  if (!rows.is_rotated) {
    int8_rows<<<grid, kThreads, 0, stream.raw()>>>(rows, count);
    return;
  }
  const std::size_t bytes = turned_bytes(rows.columns);
  stream.device().check(
      cudaFuncSetAttribute(int8_turned_rows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(most_shared_bytes(stream.device().card()) - 1024)),
      "cudaFuncSetAttribute");
  int8_turned_rows<<<grid, kThreads, bytes, stream.raw()>>>(rows, count);
}

void store_as_int8(Stream& stream, const void* blocks, std::int64_t rows, std::int64_t columns,
                   void* to, float* scales) {
  store_rows<<<static_cast<unsigned>(rows), kThreads, 0, stream.raw()>>>(
      static_cast<const unsigned char*>(blocks), columns, static_cast<signed char*>(to), scales);
}

void finish_int8(Stream& stream, const Int8Sums& s) {
  const std::int64_t pieces = s.rows * s.columns / kVectorSize;
  const Finishing finishing{s.sums,         s.first,         s.columns,       pieces,
                            s.x_scales,     s.weight_scales, data_of(s.bias), data_of(s.residual),
                            data_of(s.out), s.residual_rows, s.out_rows,      s.activation};
  finish_rows<<<blocks_for(pieces, kThreads), kThreads, 0, stream.raw()>>>(finishing);
}

}  // namespace heddle::cuda
