#include <algorithm>

#include "heddle/abi/node.h"
#include "layouts.h"
#include "scaled_fp8.h"
#include "scaled_int8.h"
#include "stored.cuh"
#include "weight.h"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kChunkBytes = std::size_t{32} << 20;  // of file bytes on the device at a time
// The same where steps stream such matrices, beside a budget that counts what they become alone.
constexpr std::size_t kStreamedChunkBytes = std::size_t{4} << 20;

bool is_matrix(std::int32_t use) {
  return use == HEDDLE_USE_LINEAR || use == HEDDLE_USE_LINEAR_FP8;
}
bool is_gemm_weight(std::int32_t use) { return is_matrix(use) || use == HEDDLE_USE_CONV2D; }

// Vectors are added and multiplied in f32, but biases that the library's products add, which take
// them in the type of what they make and would have them cast in every step; matrices are operands
// of products, and stay in their blocks or 8 bits, which are widened whenever they are read; tables
// keep their type where kernels read it.
heddle_dtype dtype_of(const Device& device, std::int32_t use, const heddle_tensor_info& info) {
  const heddle_dtype file = info.dtype;
  if (!device::is_float(file)) return file;
  if (use == HEDDLE_USE_VECTOR) return HEDDLE_F32;
  if (use == HEDDLE_USE_BIAS) return device.settings().compute;
  if (device::is_block_format(file) && info.rank == 2 && use != HEDDLE_USE_CONV2D) return file;
  if (use == HEDDLE_USE_LINEAR_FP8) return HEDDLE_F8_E4M3;
  if (device::is_f8(file) && use == HEDDLE_USE_LINEAR) return file;
  if (is_gemm_weight(use)) return device.settings().compute;
  if (device::is_compute_float(file)) return file;
  return device::is_f8(file) ? HEDDLE_BF16 : HEDDLE_F32;  // bf16 holds every f8 value
}

float scale_of(const heddle_view& part) {
  return part.scale == 0 ? 1.0f : static_cast<float>(part.scale);
}

// Elements [begin, begin + count) of the part, which start at `from` in row-major order, times the
// scale, into dst. Channels last: the place of (o, c, tap) is (o, tap, c).
__global__ void cast(const void* from, std::int32_t from_dtype, float scale, std::int64_t begin,
                     std::int64_t count, void* dst, std::int32_t dtype, std::int64_t channels,
                     std::int64_t taps) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i >= count) return;
  const std::int64_t index = begin + i, line = index / (channels * taps),
                     rest = index % (channels * taps);
  const std::int64_t to = line * channels * taps + rest % taps * channels + rest / taps;
  Number x = is_in_blocks(from_dtype) ? real(load_from_blocks(from, from_dtype, i))
                                      : load_number(from, from_dtype, i);
  // The product of two f32 is exact in double, and rounded as f32 here as everywhere.
  if (scale != 1.0f) x = real(__double2float_rn(to_double(x) * static_cast<double>(scale)));
  store_number(dst, dtype, to, x);
}

__global__ void fill_scales(float* scales, std::int64_t count, float scale) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i < count) scales[i] = scale;
}

bool is_row_major(const heddle_tensor_info& info) {
  const heddle_tensor_info dense = device::row_major(info.dtype, info.shape, info.rank);
  for (std::uint32_t axis = 0; axis < info.rank; ++axis)
    if (info.shape[axis] != 1 && info.stride[axis] != dense.stride[axis]) return false;
  return true;
}

void check_parts(const heddle_tensor_info& whole, std::uint32_t count,
                 const heddle_view* const* parts) {
  std::int64_t rows = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const heddle_tensor_info& info = parts[i]->info;
    const std::uint32_t first = std::min(1u, info.rank);
    if (info.rank != whole.rank || info.layout != 0 ||
        !std::equal(info.shape + first, info.shape + info.rank, whole.shape + first))
      device::fail(HEDDLE_INVALID_ARGUMENT, "part ", i, " is ", device::describe(info),
                   ", which is no part of ", device::describe(whole));
    if (device::is_float(info.dtype) != device::is_float(whole.dtype))
      device::fail(HEDDLE_INVALID_ARGUMENT, "part ", i, " is ", device::describe(info),
                   ", cannot become ", device::describe(whole));
    if (device::is_block_format(whole.dtype) && info.dtype != whole.dtype)
      device::fail(HEDDLE_UNSUPPORTED, "part ", i, " is ", device::describe(info),
                   ", cannot become ", device::describe(whole),
                   ": nothing is put into blocks here");
    if (device::is_block_format(whole.dtype) && scale_of(*parts[i]) != 1.0f)
      device::fail(HEDDLE_UNSUPPORTED, "part ", i, ", ", device::describe(info),
                   ", has a scale of its own, ", parts[i]->scale);
    rows += info.rank == 0 ? 1 : info.shape[0];
  }
  const std::int64_t expected = whole.rank == 0 ? 1 : whole.shape[0];
  if (rows != expected)
    device::fail(HEDDLE_INVALID_ARGUMENT, "the ", count, " parts have ", rows, " rows, the weight ",
                 device::describe(whole), " has ", expected);
}

// Device memory for some file bytes, given back in stream order.
class Chunk {
 public:
  Chunk(Stream& stream, std::size_t bytes) : stream_(stream) {
    stream.device().check(cudaMallocAsync(&memory_, bytes, stream.raw()), "cudaMallocAsync");
  }
  ~Chunk() { cudaFreeAsync(memory_, stream_.raw()); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  void* memory() const { return memory_; }

 private:
  Stream& stream_;
  void* memory_ = nullptr;
};

// Uploads elements [begin, begin + count) of a part, in row-major order, to `to`. REQUIRES: whole
// blocks.
void upload(Stream& stream, const heddle_view& part, std::int64_t begin, std::int64_t count,
            void* to) {
  Device& device = stream.device();
  const heddle_dtype dtype = part.info.dtype;
  const auto* from = static_cast<const char*>(part.data);
  auto* target = static_cast<char*>(to);
  if (is_row_major(part.info)) {
    device.check(cudaMemcpyAsync(target, from + device::bytes_of(dtype, begin),
                                 static_cast<std::size_t>(device::bytes_of(dtype, count)),
                                 cudaMemcpyHostToDevice, stream.raw()),
                 "cudaMemcpyAsync");
    return;
  }
  // Run by run along the last axis; files give such parts only where a tensor is cut out of
  // another.
  if (device::is_block_format(dtype))
    device::fail(HEDDLE_UNSUPPORTED, "a part of a weight in blocks, ", device::describe(part.info),
                 ", has to be row-major");
  const auto bytes = static_cast<std::int64_t>(device::dtype_bytes(dtype));
  const std::uint32_t last = part.info.rank - 1;
  if (part.info.shape[last] != 1 && part.info.stride[last] != 1)
    device::fail(HEDDLE_UNSUPPORTED, "a part of a weight has stride ", part.info.stride[last],
                 " along its last axis, has to have 1");
  const std::int64_t width = part.info.shape[last];
  while (count > 0) {
    const std::int64_t column = begin % width, run = std::min(count, width - column);
    std::int64_t offset = column, index = begin / width;
    for (std::uint32_t axis = last; axis-- > 0;) {
      offset += index % part.info.shape[axis] * part.info.stride[axis];
      index /= part.info.shape[axis];
    }
    device.check(
        cudaMemcpyAsync(target, from + offset * bytes, static_cast<std::size_t>(run * bytes),
                        cudaMemcpyHostToDevice, stream.raw()),
        "cudaMemcpyAsync");
    target += run * bytes;
    begin += run;
    count -= run;
  }
}

// Rows of a kFp8Rows matrix, some at a time, and the scales that suit them.
void make_fp8(Stream& stream, const heddle_view& part, void* to, float* scales) {
  if (device::is_block_format(part.info.dtype))
    device::fail(HEDDLE_UNSUPPORTED, "a part of a weight in blocks, ", device::describe(part.info),
                 ", is not made smaller");
  const std::int64_t rows = part.info.shape[0], columns = part.info.shape[1];
  const std::int64_t row_bytes = device::bytes_of(part.info.dtype, columns);
  const std::int64_t most =
      std::clamp(static_cast<std::int64_t>(kChunkBytes) / row_bytes, std::int64_t{1}, rows);
  const Chunk chunk(stream, static_cast<std::size_t>(most * row_bytes));
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t here = std::min(most, rows - begin);
    upload(stream, part, begin * columns, here * columns, chunk.memory());
    store_as_fp8(stream,
                 {.from = chunk.memory(),
                  .dtype = part.info.dtype,
                  .rows = here,
                  .columns = columns,
                  .step = columns,
                  .to = static_cast<char*>(to) + begin * columns,
                  .scales = scales + begin},
                 scale_of(part));
    stream.device().check(cudaGetLastError(), "make_weight");
  }
}

// Rows of a kInt8Rows matrix and their scales, some at a time.
void make_int8(Stream& stream, const heddle_view& part, void* to, float* scales) {
  const std::int64_t rows = part.info.shape[0], columns = part.info.shape[1];
  const std::int64_t row_bytes = device::bytes_of(part.info.dtype, columns);
  const std::int64_t most =
      std::clamp(static_cast<std::int64_t>(kStreamedChunkBytes) / row_bytes, std::int64_t{1}, rows);
  const Chunk chunk(stream, static_cast<std::size_t>(most * row_bytes));
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t here = std::min(most, rows - begin);
    upload(stream, part, begin * columns, here * columns, chunk.memory());
    store_as_int8(stream, chunk.memory(), here, columns,
                  static_cast<signed char*>(to) + begin * columns, scales + begin);
    stream.device().check(cudaGetLastError(), "make_weight");
  }
}

}  // namespace

heddle_weight_layout weight_layout(const Device& device, std::int32_t use,
                                   const heddle_tensor_info& info) {
  const bool matrix = is_matrix(use), filter = use == HEDDLE_USE_CONV2D;
  if (use != HEDDLE_USE_VECTOR && use != HEDDLE_USE_BIAS && use != HEDDLE_USE_TABLE && !matrix &&
      !filter)
    device::fail(HEDDLE_UNSUPPORTED, "a weight's use is ", use,
                 ", which this device does not know");
  const bool whole_blocks = info.rank == 0 || info.rank > HEDDLE_MAX_RANK ||
                            info.shape[info.rank - 1] % device::block_elements(info.dtype) == 0;
  if (info.rank > HEDDLE_MAX_RANK || device::block_bytes(info.dtype) == 0 || !whole_blocks ||
      (matrix && info.rank != 2) || (filter && info.rank != 4 && info.rank != 5) ||
      ((matrix || filter) && !device::is_float(info.dtype)))
    device::fail(HEDDLE_UNSUPPORTED, "a weight of the shape ", device::describe(info),
                 " cannot be used as ",
                 matrix   ? "the matrix of a linear op"
                 : filter ? "the filter of a convolution"
                          : "a vector or table");
  heddle_weight_layout layout{};
  layout.size = sizeof layout;
  layout.info = device::row_major(dtype_of(device, use, info), info.shape, info.rank);
  layout.bytes =
      static_cast<std::uint64_t>(device::bytes_of(layout.info.dtype, device::element_count(info)));
  if (filter) layout.info.layout = kChannelsLast;
  if (matrix && device::is_f8(layout.info.dtype)) {
    layout.info.layout = use == HEDDLE_USE_LINEAR_FP8 ? kFp8Rows : kScaledRows;
    layout.bytes = static_cast<std::uint64_t>(scales_offset(info.shape[0], info.shape[1])) +
                   static_cast<std::uint64_t>(info.shape[0]) * sizeof(float);
  } else if (multiplies_int8(device, use, info)) {
    layout.info.layout = kInt8Rows;
    layout.bytes = static_cast<std::uint64_t>(scales_offset(info.shape[0], info.shape[1])) +
                   static_cast<std::uint64_t>(info.shape[0]) * sizeof(float);
  }
  return layout;
}

void make_weight(Stream& stream, const heddle_weight_layout& layout, std::uint32_t part_count,
                 const heddle_view* const* parts, void* dst) {
  const heddle_tensor_info& whole = layout.info;
  check_parts(whole, part_count, parts);
  Device& device = stream.device();
  device.use();
  const bool turned = whole.layout == kChannelsLast, is_int8 = whole.layout == kInt8Rows,
             scaled = has_scales(whole.layout) || is_int8, is_scaled_fp8 = whole.layout == kFp8Rows;
  const std::int64_t channels = turned ? whole.shape[1] : 1;
  std::int64_t taps = 1;
  for (std::uint32_t axis = 2; turned && axis < whole.rank; ++axis) taps *= whole.shape[axis];
  auto* to = static_cast<char*>(dst);
  auto* scales = scaled
                     ? reinterpret_cast<float*>(to + scales_offset(whole.shape[0], whole.shape[1]))
                     : nullptr;
  for (std::uint32_t i = 0; i < part_count; ++i) {
    const heddle_view& part = *parts[i];
    const std::int64_t count = device::element_count(part.info);
    if (count == 0) continue;
    const float scale = scaled ? 1.0f : scale_of(part);  // those of 8 bits stand behind the rows
    if (is_int8 || (is_scaled_fp8 && part.info.dtype != whole.dtype)) {
      (is_int8 ? make_int8 : make_fp8)(stream, part, to, scales);
      scales += part.info.shape[0];
      to += count;
      continue;
    }
    if (part.info.dtype == whole.dtype && (!turned || taps == 1) && scale == 1.0f) {
      upload(stream, part, 0, count, to);
    } else {
      const std::int64_t block = device::block_elements(part.info.dtype);
      const std::int64_t most = std::min(count, static_cast<std::int64_t>(kChunkBytes) /
                                                    device::block_bytes(part.info.dtype) * block);
      const Chunk chunk(stream, static_cast<std::size_t>(device::bytes_of(part.info.dtype, most)));
      for (std::int64_t begin = 0; begin < count; begin += most) {
        const std::int64_t here = std::min(most, count - begin);
        upload(stream, part, begin, here, chunk.memory());
        cast<<<blocks_for(here, kThreads), kThreads, 0, stream.raw()>>>(
            chunk.memory(), part.info.dtype, scale, begin, here, to, whole.dtype, channels, taps);
        device.check(cudaGetLastError(), "make_weight");
      }
    }
    if (scaled) {
      const std::int64_t rows = part.info.shape[0];
      fill_scales<<<blocks_for(rows, kThreads), kThreads, 0, stream.raw()>>>(scales, rows,
                                                                             scale_of(part));
      device.check(cudaGetLastError(), "make_weight");
      scales += rows;
    }
    to += device::bytes_of(whole.dtype, count);
  }
}

}  // namespace heddle::cuda
