// conv2d/1 and conv3d/1 on Hopper, where there are pixels enough for the whole card and steps of
// one pixel: conv_hopper.cuh says how. Operands of 16 bits, channels last, with bias and residual
// added before the only rounding. Needs no library, so that a picture is decoded at once in a
// process, and on a machine, that never did it.
#include "conv_hopper.cuh"

#include <algorithm>
#include <array>

#include "call.h"
#include "driver.h"
#include "frame_kernels.h"
#include "kernels.h"
#include "layouts.h"

namespace heddle::cuda {

namespace {

// A call of either op as one over frames.
struct Call {
  heddle_tensor_info x, filter, out, residual;
  heddle_conv3d_attrs attrs;
};

Call call_of(const heddle_op_call& call, const heddle_conv3d_attrs& a) {
  const heddle_view* residual = device::operand(call, 3);
  return {with_frames(in(call, 0).info, 1), with_frames(in(call, 1).info, 2),
          with_frames(out(call).info, 1),
          residual != nullptr ? with_frames(residual->info, 1) : heddle_tensor_info{}, a};
}

// The channels of a pixel side by side, everything else at multiples of 16 bytes (of 16 bits each)
// from there on.
bool lies_well(const heddle_tensor_info& info) {
  if (info.stride[4] != 1) return false;
  for (int axis = 0; axis < 4; ++axis)
    if (info.shape[axis] > 1 && (info.stride[axis] <= 0 || info.stride[axis] % kVectorSize != 0))
      return false;
  return true;
}

std::int64_t tiles_of(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

// What tiles compute, of what they are asked for, and of the multiprocessors that are busy: of one
// item, so that the choice is that of any batch.
template <class Tile>
double use_of(const Call& call, int multiprocessors) {
  const auto& s = call.out.shape;
  const std::int64_t tiles = s[1] * tiles_of(s[2], Tile::kDown) * tiles_of(s[3], Tile::kAcross) *
                             tiles_of(s[4], Tile::kColumns);
  const std::int64_t rounds = tiles_of(tiles, multiprocessors);
  return static_cast<double>(s[1] * s[2] * s[3] * s[4]) /
         static_cast<double>(rounds * multiprocessors * Tile::kRows * Tile::kColumns);
}

using Launch = void (*)(Stream& stream, const Call& call, const heddle_op_call& given);

struct Way {
  double use;  // of the card
  Launch bf16, f16;
};

CUtensorMap map_of(void* data, heddle_dtype dtype, int rank, const std::int64_t* shape,
                   const std::int64_t* stride, const std::uint32_t* box, int row_bytes) {
  constexpr int kMost = 5;
  std::array<cuuint64_t, kMost> sizes{}, steps{};
  std::array<cuuint32_t, kMost> boxes{}, ones{};
  for (int axis = 0; axis < rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    sizes[i] = static_cast<cuuint64_t>(shape[axis]);
    boxes[i] = box[axis];
    ones[i] = 1;
    // Of the innermost axis none is told.
    if (axis > 0) steps[i - 1] = static_cast<cuuint64_t>(stride[axis]) * 2;
  }
  CUtensorMap map{};
  driver::encode(
      map,
      dtype == HEDDLE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      static_cast<unsigned>(rank), data, sizes.data(), steps.data(), boxes.data(), ones.data(),
      row_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B);
  return map;
}

CUtensorMap clip_map(const heddle_tensor_info& info, void* data, std::uint32_t channels,
                     std::uint32_t across, std::uint32_t down) {
  std::int64_t shape[5], stride[5];
  std::int64_t dense = 1;
  for (int i = 0; i < 5; ++i) {
    shape[i] = info.shape[4 - i];
    // Of an axis of one element no step is taken; what stands there must only be possible.
    stride[i] = shape[i] == 1 ? tiles_of(dense, kVectorSize) * kVectorSize : info.stride[4 - i];
    dense = stride[i] * shape[i];
  }
  const std::uint32_t box[] = {channels, across, down, 1, 1};
  return map_of(data, info.dtype, 5, shape, stride, box, static_cast<int>(2 * channels));
}

template <class Tile>
CUtensorMap filter_map(const Call& call, void* data) {
  const auto& s = call.filter.shape;
  const std::int64_t terms = s[1] * s[2] * s[3] * s[4];
  const std::int64_t shape[] = {terms, s[0]}, stride[] = {1, terms};
  const std::uint32_t box[] = {Tile::kChannels, Tile::kColumns};
  return map_of(data, call.filter.dtype, 2, shape, stride, box, Tile::kRowBytes);
}

ConvSteps steps_of(const heddle_tensor_info& info) {
  return {info.stride[0], info.stride[1], info.stride[2], info.stride[3]};
}

template <class Tile, class Element>
void launch(Stream& stream, const Call& call, const heddle_op_call& given) {
  const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const heddle_view *bias = device::operand(given, 2), *residual = device::operand(given, 3);
  const auto &made = call.out.shape, &taps = call.filter.shape;
  HopperConv c{};
  c.x = clip_map(call.x, in(given, 0).data, Tile::kChannels, Tile::kAcross, Tile::kDown);
  c.filter = filter_map<Tile>(call, in(given, 1).data);
  c.out = out(given).data;
  if (call.out.dtype != HEDDLE_F32)
    c.made = clip_map(call.out, c.out, Tile::kBoxColumns, Tile::kAcross, Tile::kGroupDown);
  c.residual = residual != nullptr ? residual->data : nullptr;
  c.bias = bias != nullptr ? bias->data : nullptr;
  c.bias_dtype = bias != nullptr ? bias->info.dtype : HEDDLE_F32;
  c.out_steps = steps_of(call.out);
  c.residual_steps = steps_of(call.residual);
  c.items = number(made[0]), c.frames = number(made[1]), c.down = number(made[2]);
  c.wide = number(made[3]), c.outs = number(made[4]);
  c.channels = number(taps[1]), c.parts = number(tiles_of(taps[1], Tile::kChannels));
  c.taps_frames = number(taps[2]), c.taps_down = number(taps[3]), c.taps_across = number(taps[4]);
  c.step = call.attrs.stride[0];
  c.front = call.attrs.padding[0], c.top = call.attrs.padding[1], c.left = call.attrs.padding[2];
  c.tiles_out = number(tiles_of(made[4], Tile::kColumns));
  c.tiles_across = number(tiles_of(made[3], Tile::kAcross));
  c.tiles_down = number(tiles_of(made[2], Tile::kDown));
  c.out_dtype = call.out.dtype;
  const std::int64_t tiles = made[0] * made[1] * c.tiles_out * c.tiles_across * c.tiles_down;
  const auto grid = static_cast<unsigned>(
      std::min(tiles, static_cast<std::int64_t>(stream.device().multiprocessors())));
  stream.device().check(
      cudaFuncSetAttribute(conv::convolve<Tile, Element>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes),
      "cudaFuncSetAttribute");
  conv::convolve<Tile, Element><<<grid, conv::kThreads, Tile::kSharedBytes, stream.raw()>>>(c);
}

template <class Tile>
Way way_of(const Call& call, int multiprocessors) {
  return {use_of<Tile>(call, multiprocessors), launch<Tile, __nv_bfloat16>, launch<Tile, __half>};
}

// The tile that leaves the least of the card unused; of equal ones the widest.
Way best_way(const Call& call, int multiprocessors) {
  const bool is_whole = call.filter.shape[1] % 64 == 0;
  if (!is_whole) return way_of<ConvTile<96, 32, 1>>(call, multiprocessors);
  Way best = way_of<ConvTile<256, 64, 2>>(call, multiprocessors);
  for (const Way& other : {way_of<ConvTile<192, 64, 2>>(call, multiprocessors),
                           way_of<ConvTile<160, 64, 1>>(call, multiprocessors),
                           way_of<ConvTile<128, 64, 2>>(call, multiprocessors),
                           way_of<ConvTile<96, 64, 1>>(call, multiprocessors)})
    if (other.use > best.use) best = other;
  return best;
}

// Whether the kernel can do it at all.
bool can(const Device& device, const Call& call, const heddle_op_call& given) {
  const heddle_view *bias = device::operand(given, 2), *residual = device::operand(given, 3);
  const heddle_dtype dtype = call.x.dtype;
  if (device.settings().reference_only || !has_hopper_kernels(device.card()) ||
      !driver::can_encode() || call.filter.layout != kChannelsLast)
    return false;
  if ((dtype != HEDDLE_BF16 && dtype != HEDDLE_F16) || call.filter.dtype != dtype ||
      (call.out.dtype != dtype && call.out.dtype != HEDDLE_F32) ||
      (bias != nullptr && bias->info.stride[0] != 1 && bias->info.shape[0] != 1) ||
      (residual != nullptr && residual->info.dtype != call.out.dtype))
    return false;
  if (call.attrs.stride[1] != 1 || call.attrs.stride[2] != 1 ||
      call.filter.shape[1] % kVectorSize != 0 || call.filter.shape[0] % kVectorSize != 0)
    return false;
  if (!lies_well(call.x) || !lies_well(call.out) ||
      (residual != nullptr && !lies_well(call.residual)))
    return false;
  // Numbers of 32 bits do for places and tiles.
  constexpr std::int64_t kMost = 1 << 20, kMostPixels = std::int64_t{1} << 30;
  for (int axis = 0; axis < 5; ++axis)
    if (call.x.shape[axis] > kMost || call.out.shape[axis] > kMost || call.out.shape[axis] == 0 ||
        call.filter.shape[axis] > kMost)
      return false;
  return device::element_count(call.out) / call.out.shape[4] < kMostPixels;
}

double operations_of(const Call& call) {
  double count = 2.0 * static_cast<double>(device::element_count(call.out) / call.out.shape[0]);
  for (int axis = 1; axis < 5; ++axis) count *= static_cast<double>(call.filter.shape[axis]);
  return count;
}

template <class Attrs>
struct HopperConvolution {
  static constexpr bool kHasFrames = std::is_same_v<Attrs, heddle_conv3d_attrs>;
  static constexpr const char* op = kHasFrames ? HEDDLE_OP_CONV3D : HEDDLE_OP_CONV2D;
  static constexpr const char* name = "hopper";
  static void check(const heddle_op_call& call) {
    kHasFrames ? cpu::check_conv3d(call) : cpu::check_conv2d(call);
  }
  static std::size_t workspace(Device&, const heddle_op_call&) { return 0; }

  static std::int32_t fits(Device& device, const heddle_op_call& given) {
    constexpr std::int32_t kFits = 25;  // over cuDNN's
    const Call call = call_of(given, over_frames(attrs<Attrs>(given)));
    if ((kHasFrames && sums_frames()) || !can(device, call, given) ||
        operations_of(call) < device.settings().cudnn_flops)
      return 0;
    const Way way = best_way(call, device.multiprocessors());
    return 100 * way.use >= device.settings().hopper_percent ? kFits : 0;
  }

  static void run(Stream& stream, const heddle_op_call& given, void*) {
    const Call call = call_of(given, over_frames(attrs<Attrs>(given)));
    const heddle_view* residual = device::operand(given, 3);
    const bool is_aligned = lies_at_16(in(given, 0).data) && lies_at_16(in(given, 1).data) &&
                            lies_at_16(out(given).data) &&
                            (residual == nullptr || lies_at_16(residual->data));
    if (!is_aligned || !can(stream.device(), call, given))
      return launch_other(kHasFrames ? kConv3d : kConv2d, stream, given);
    const Way way = best_way(call, stream.device().multiprocessors());
    (call.x.dtype == HEDDLE_BF16 ? way.bf16 : way.f16)(stream, call, given);
  }
};

}  // namespace

constexpr heddle_kernel kHopperConv2d = kernel_table<HopperConvolution<heddle_conv2d_attrs>>();
constexpr heddle_kernel kHopperConv3d = kernel_table<HopperConvolution<heddle_conv3d_attrs>>();

}  // namespace heddle::cuda
