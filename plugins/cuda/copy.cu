// copy/1 and fill/1: the two ops that take every element type.
#include "kernels.h"
#include "map.cuh"
#include "number.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;

// ---- kernels ----

// Parameters stay where they are: indexed by axis, a copy of them would be made in each thread's
// own memory.
__global__ void convert(const __grid_constant__ View in, const __grid_constant__ View out,
                        const __grid_constant__ Space space) {
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < space.count;
       i += std::int64_t{gridDim.x} * kThreads)
    store_number(out.data, out.dtype, offset_of(out, space, i, space.rank),
                 load_number(in.data, in.dtype, offset_of(in, space, i, space.rank)));
}

__global__ void fill(const __grid_constant__ View out, const __grid_constant__ Space space,
                     double value) {
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < space.count;
       i += std::int64_t{gridDim.x} * kThreads)
    store_number(out.data, out.dtype, offset_of(out, space, i, space.rank), real(value));
}

template <class Unit>
__global__ void move(const __grid_constant__ View in, const __grid_constant__ View out,
                     const __grid_constant__ Space space) {
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < space.count;
       i += std::int64_t{gridDim.x} * kThreads)
    static_cast<Unit*>(out.data)[offset_of(out, space, i, space.rank)] =
        static_cast<const Unit*>(in.data)[offset_of(in, space, i, space.rank)];
}

unsigned blocks(const Stream& stream, std::int64_t count) {
  return static_cast<unsigned>(std::min<std::int64_t>(
      (count + kThreads - 1) / kThreads, std::int64_t{stream.device().multiprocessors()} * 64));
}

// The longest unit, in bytes, in which everything can be moved. Changes strides and sizes to count
// units.
int to_units(View& in, View& out, Space& space, int bytes) {
  const int last = space.rank - 1;
  if (in.stride[last] != 1 || out.stride[last] != 1) return bytes;
  int unit = 16;
  const auto fits = [&](int size) {
    bool whole = space.shape[last] * bytes % size == 0;
    for (const View* view : {&in, &out}) {
      whole = whole && reinterpret_cast<std::uintptr_t>(view->data) % size == 0;
      for (int axis = 0; axis < last; ++axis)
        whole = whole && view->stride[axis] * bytes % size == 0;
    }
    return whole;
  };
  while (unit > bytes && !fits(unit)) unit /= 2;
  const int group = unit / bytes;
  for (View* view : {&in, &out})
    for (int axis = 0; axis < last; ++axis) view->stride[axis] /= group;
  space.shape[last] /= group;
  space.count /= group;
  return unit;
}

// ---- from another device ----

// Less is sooner there by a kernel; shorter rows are more than the copy engine takes at full speed.
constexpr std::int64_t kLeastFromPeer = 64 << 10, kLeastRow = 512;  // bytes
constexpr int kMostCopies = 8;                                      // for one call

bool is_elsewhere(const void* memory, const Stream& stream) {
  cudaPointerAttributes found{};
  stream.device().check(cudaPointerGetAttributes(&found, memory), "cudaPointerGetAttributes");
  return found.type == cudaMemoryTypeDevice && found.device != stream.device().ordinal();
}

// The copy engine takes rows at the link's speed, too, and leaves the multiprocessors to the
// products that run beside it. False: these are not such rows.
bool copy_from_peer(const Stream& stream, const View& from, const View& to, const Space& space,
                    std::int64_t bytes) {
  const int row = space.rank - 1, rows = row - 1;
  const std::int64_t width = space.shape[row] * bytes;
  if (space.count * bytes < kLeastFromPeer || width < kLeastRow || space.rank > 3) return false;
  if (from.stride[row] != 1 || to.stride[row] != 1) return false;
  const std::int64_t height = rows < 0 ? 1 : space.shape[rows];
  const std::int64_t copies = space.rank == 3 ? space.shape[0] : 1;
  const auto pitch = [&](const View& view) { return rows < 0 ? width : view.stride[rows] * bytes; };
  const bool is_pitched = height == 1 || (pitch(from) >= width && pitch(to) >= width);
  if (copies > kMostCopies || !is_pitched || !is_elsewhere(from.data, stream)) return false;
  for (std::int64_t i = 0; i < copies; ++i) {
    const auto at = [&](const View& view) {
      return static_cast<char*>(view.data) + (space.rank == 3 ? i * view.stride[0] * bytes : 0);
    };
    const auto pitch_of = [&](const View& view) {
      return static_cast<std::size_t>(height == 1 ? width : pitch(view));
    };
    stream.device().check(
        cudaMemcpy2DAsync(at(to), pitch_of(to), at(from), pitch_of(from),
                          static_cast<std::size_t>(width), static_cast<std::size_t>(height),
                          cudaMemcpyDefault, stream.raw()),
        "cudaMemcpy2DAsync");
  }
  return true;
}

struct Same {
  __device__ float operator()(const float* x) const { return x[0]; }
};

bool has_rows(const heddle_tensor_info& info) {
  return device::is_compute_float(info.dtype) &&
         (info.rank == 0 || info.shape[info.rank - 1] == 1 || info.stride[info.rank - 1] == 1);
}

struct Copy : Plain {
  static constexpr const char* op = HEDDLE_OP_COPY;
  static void check(const heddle_op_call& call) { cpu::check_copy(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info& whole = out(call).info;
    View from = view_of(call.in[0], whole), to = view_of(call.out[0], whole);
    Space space = space_of(whole);
    if (space.count == 0) return;
    if (from.dtype != to.dtype && has_rows(in(call, 0).info) && has_rows(whole))
      return map::launch<1>(stream, call, Same{});
    collapse(space, 0, {&from, &to});
    const cudaStream_t on = stream.raw();
    if (from.dtype != to.dtype) {
      convert<<<blocks(stream, space.count), kThreads, 0, on>>>(from, to, space);
      return;
    }
    const auto bytes = static_cast<int>(device::dtype_bytes(from.dtype));
    if (copy_from_peer(stream, from, to, space, bytes)) return;
    const int unit = to_units(from, to, space, bytes);
    const unsigned grid = blocks(stream, space.count);
    if (unit == 16) move<uint4><<<grid, kThreads, 0, on>>>(from, to, space);
    if (unit == 8) move<uint2><<<grid, kThreads, 0, on>>>(from, to, space);
    if (unit == 4) move<unsigned><<<grid, kThreads, 0, on>>>(from, to, space);
    if (unit == 2) move<unsigned short><<<grid, kThreads, 0, on>>>(from, to, space);
    if (unit == 1) move<unsigned char><<<grid, kThreads, 0, on>>>(from, to, space);
  }
};

struct Fill : Plain {
  static constexpr const char* op = HEDDLE_OP_FILL;
  static void check(const heddle_op_call& call) { cpu::check_fill(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    View to = view_of(call.out[0], out(call).info);
    Space space = space_of(out(call).info);
    if (space.count == 0) return;
    collapse(space, 0, {&to});
    fill<<<blocks(stream, space.count), kThreads, 0, stream.raw()>>>(
        to, space, attrs<heddle_fill_attrs>(call).value);
  }
};

}  // namespace

constexpr heddle_kernel kCopy = kernel_table<Copy>();
constexpr heddle_kernel kFill = kernel_table<Fill>();

}  // namespace heddle::cuda
