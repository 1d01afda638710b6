// conv2d/1 and conv3d/1 to at most eight channels, as the last one of a picture decoder: the
// product has fewer columns than any tile of a library, which computes many for nothing. Here a
// tensor core's narrowest tile is the whole of them, and a picture is read about once.
#include "call.h"
#include "frame_kernels.h"
#include "kernels.h"
#include "layouts.h"
#include "view.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kHigh = 8, kWide = 32;  // pixels of a block: a row of them for each warp
constexpr int kDeep = 64;             // channels in shared memory at a time
constexpr int kStep = kDeep + 8;      // elements from pixel to pixel: no two of eight in one bank
constexpr int kOuts = 8;              // columns of a tensor core's tile
constexpr int kMostTaps = 3;          // along a side

// Over 15 members: what a launch is told, most of it sizes.
struct Convolution {
  View x, out;                // strides of items, frames, rows, pixels and channels
  const void *filter, *bias;  // filter: (O, F, R, S, C), bias: nullptr or f32 of O
  std::int32_t height, width, channels, down, wide, outs, taps_down, taps_across, top, left;
  std::int32_t frames, made, taps_frames, front, step;  // made: frames of the output
  __host__ __device__ int pixels() const {
    return (kHigh + taps_down - 1) * (kWide + taps_across - 1);
  }
};

// 16 bytes from global to shared memory, or zeros.
__device__ inline void copy16(void* to, const void* from, bool inside) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
               "r"(inside ? 16 : 0));
}

// Rows (lane % 16), columns 8 (lane / 16) of 16 x 16 elements, as a product's left operand.
__device__ inline void load_left(const void* from, std::uint32_t (&a)[4]) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(at));
}

template <class Element>
__device__ inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// grid: (columns of tiles, rows of tiles, frames of all items). The terms of a pixel are summed
// channel by channel within a tap, 16 at a time, tap by tap, so for each kDeep channels, and so for
// each frame of the filter.
template <class Element>
__global__ void __launch_bounds__(kThreads) convolve(const __grid_constant__ Convolution c) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto* const pixels = reinterpret_cast<Element*>(memory);  // (rows, columns, kStep)
  auto* const filter = pixels + c.pixels() * kStep;         // (taps, kOuts, kStep)
  const std::int64_t item = blockIdx.z / c.made;
  const int made = static_cast<int>(blockIdx.z % c.made);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = static_cast<int>(blockIdx.y) * kHigh,
            column = static_cast<int>(blockIdx.x) * kWide;
  const int across = kWide + c.taps_across - 1, taps = c.taps_down * c.taps_across;
  constexpr int kPieces = kDeep / kVectorSize;
  float sums[2][4] = {};
  const int parts = (c.channels + kDeep - 1) / kDeep;
  for (int part = 0; part < c.taps_frames * parts; ++part) {
    const int tap_frame = part / parts, frame = made * c.step - c.front + tap_frame;
    if (frame < 0 || frame >= c.frames) continue;
    const auto* const x =
        static_cast<const Element*>(c.x.data) + item * c.x.stride[0] + frame * c.x.stride[1];
    const int begin = part % parts * kDeep, piece = thread % kPieces * kVectorSize;
    const bool deep = begin + piece < c.channels;
    for (int i = thread / kPieces; i < c.pixels(); i += kThreads / kPieces) {
      const int y = row - c.top + i / across, z = column - c.left + i % across;
      const bool inside = deep && y >= 0 && y < c.height && z >= 0 && z < c.width;
      copy16(pixels + i * kStep + piece,
             inside ? x + y * c.x.stride[2] + z * c.x.stride[3] + begin + piece : x, inside);
    }
    for (int i = thread / kPieces; i < taps * kOuts; i += kThreads / kPieces) {
      const int tap = i / kOuts, o = i % kOuts;
      const bool inside = deep && o < c.outs;
      const auto* const from = static_cast<const Element*>(c.filter);
      copy16(filter + i * kStep + piece,
             inside
                 ? from +
                       ((std::int64_t{o} * c.taps_frames + tap_frame) * taps + tap) * c.channels +
                       begin + piece
                 : from,
             inside);
    }
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int tap = 0; tap < taps; ++tap) {
      const int first = (warp + tap / c.taps_across) * across + tap % c.taps_across;
      const Element* const left = pixels + (first + lane % 16) * kStep + lane / 16 * kVectorSize;
      const Element* const right = filter + (tap * kOuts + lane / 4) * kStep + lane % 4 * 2;
#pragma unroll
      for (int k = 0; k < kDeep; k += 16) {
        const std::uint32_t b[2] = {*reinterpret_cast<const std::uint32_t*>(right + k),
                                    *reinterpret_cast<const std::uint32_t*>(right + k + 8)};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          std::uint32_t a[4];
          load_left(left + half * 16 * kStep + k, a);
          multiply_add<Element>(sums[half], a, b);
        }
      }
    }
    __syncthreads();
  }
  const int y = row + warp;
  if (y >= c.down) return;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int z = column + half * 16 + lane / 4 + i / 2 * 8, o = lane % 4 * 2 + i % 2;
      if (z >= c.wide || o >= c.outs) continue;
      const float bias = c.bias != nullptr ? static_cast<const float*>(c.bias)[o] : 0;
      store(c.out.data, c.out.dtype,
            item * c.out.stride[0] + made * c.out.stride[1] + y * c.out.stride[2] +
                z * c.out.stride[3] + o * c.out.stride[4],
            sums[half][i] + bias);
    }
}

template <class Attrs>
struct FewConv {
  static constexpr bool kHasFrames = std::is_same_v<Attrs, heddle_conv3d_attrs>;
  static constexpr const char* op = kHasFrames ? HEDDLE_OP_CONV3D : HEDDLE_OP_CONV2D;
  static constexpr const char* name = "few";
  static void check(const heddle_op_call& call) {
    kHasFrames ? cpu::check_conv3d(call) : cpu::check_conv2d(call);
  }
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }

  static std::int32_t fits(Device& device, const heddle_op_call& call) {
    const heddle_conv3d_attrs a = over_frames(attrs<Attrs>(call));
    const heddle_tensor_info x = with_frames(in(call, 0).info, 1),
                             weight = with_frames(in(call, 1).info, 2),
                             whole = with_frames(out(call).info, 1);
    const heddle_view* bias = device::operand(call, 2);
    if (device.settings().reference_only || device::operand(call, 3) != nullptr ||
        (kHasFrames && sums_frames()) || weight.layout != kChannelsLast ||
        x.dtype != weight.dtype || (x.dtype != HEDDLE_BF16 && x.dtype != HEDDLE_F16) ||
        a.stride[1] != 1 || a.stride[2] != 1)
      return 0;
    if (weight.shape[0] > kOuts || weight.shape[1] % 16 != 0 || weight.shape[3] > kMostTaps ||
        weight.shape[4] > kMostTaps || (bias != nullptr && bias->info.dtype != HEDDLE_F32))
      return 0;
    // Numbers of 32 bits do for places within a clip.
    constexpr std::int64_t kMost = 1 << 20;
    for (int axis = 1; axis < 4; ++axis)
      if (x.shape[axis] > kMost || whole.shape[axis] > kMost || x.stride[axis] % kVectorSize != 0)
        return 0;
    return x.stride[4] == 1 && x.stride[0] % kVectorSize == 0 && weight.shape[2] <= kMost &&
                   whole.shape[0] * whole.shape[1] <= 65535 && whole.shape[2] <= 65535 * kHigh
               ? 30
               : 0;
  }

  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_conv3d_attrs a = over_frames(attrs<Attrs>(call));
    const heddle_tensor_info x = with_frames(in(call, 0).info, 1),
                             weight = with_frames(in(call, 1).info, 2),
                             whole = with_frames(out(call).info, 1);
    if (device::element_count(whole) == 0) return;
    if (!lies_at_16(in(call, 0).data) || !lies_at_16(in(call, 1).data))
      return launch_other(kHasFrames ? kConv3d : kConv2d, stream, call);
    const heddle_view frames{x, in(call, 0).data}, made{whole, out(call).data};
    const heddle_view* bias = device::operand(call, 2);
    const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    const Convolution c{view_of(&frames, x),
                        view_of(&made, whole),
                        in(call, 1).data,
                        bias != nullptr ? bias->data : nullptr,
                        number(x.shape[2]),
                        number(x.shape[3]),
                        number(x.shape[4]),
                        number(whole.shape[2]),
                        number(whole.shape[3]),
                        number(weight.shape[0]),
                        number(weight.shape[3]),
                        number(weight.shape[4]),
                        a.padding[1],
                        a.padding[2],
                        number(x.shape[1]),
                        number(whole.shape[1]),
                        number(weight.shape[2]),
                        a.padding[0],
                        a.stride[0]};
    if (x.dtype == HEDDLE_BF16)
      launch<__nv_bfloat16>(stream, c, whole.shape[0] * whole.shape[1]);
    else
      launch<__half>(stream, c, whole.shape[0] * whole.shape[1]);
  }

 private:
  template <class Element>
  static void launch(Stream& stream, const Convolution& c, std::int64_t frames) {
    constexpr int kRowBytes = kStep * static_cast<int>(sizeof(Element));
    const int bytes = (c.pixels() + c.taps_down * c.taps_across * kOuts) * kRowBytes;
    // More than what every kernel may have has to be asked for: by all launches the same, since
    // the last one's word counts for all.
    constexpr int kMost =
        ((kHigh + kMostTaps - 1) * (kWide + kMostTaps - 1) + kMostTaps * kMostTaps * kOuts) *
        kRowBytes;
    stream.device().check(
        cudaFuncSetAttribute(convolve<Element>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost),
        "cudaFuncSetAttribute");
    const dim3 grid(blocks_for(c.wide, kWide), blocks_for(c.down, kHigh),
                    static_cast<unsigned>(frames));
    convolve<Element><<<grid, kThreads, static_cast<std::size_t>(bytes), stream.raw()>>>(c);
  }
};

}  // namespace

constexpr heddle_kernel kFewConv2d = kernel_table<FewConv<heddle_conv2d_attrs>>();
constexpr heddle_kernel kFewConv3d = kernel_table<FewConv<heddle_conv3d_attrs>>();

}  // namespace heddle::cuda
