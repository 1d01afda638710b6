// conv2d/1 and conv3d/1 on panels of the filter: a product whose left rows are the pixels under the
// filter.
#include <cstring>
#include <type_traits>

#include "fast.h"
#include "gemm.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// A convolution of pictures as one over frames, of which each has one.
heddle_conv3d_attrs over_frames(const heddle_conv2d_attrs& a) {
  return {{1, a.stride[0], a.stride[1]},
          {0, a.padding[0], a.padding[1], 0, a.padding[2], a.padding[3]}};
}
const heddle_conv3d_attrs& over_frames(const heddle_conv3d_attrs& a) { return a; }

// Where the pixel under each tap of the filter lies, for the output pixels in rows of `out`. Axes
// are frames, height and width.
class Pixels {
 public:
  Pixels(const heddle_view& x, const heddle_view& weight, const heddle_view& out,
         const heddle_conv3d_attrs& attrs)
      : x_(x), base_(element(x, 0)), attrs_(attrs) {
    const auto bytes = static_cast<std::int64_t>(device::dtype_bytes(x.info.dtype));
    const int absent = x.info.rank == 5 ? 0 : 1;  // frames
    item_step_ = x.info.stride[0] * bytes;
    for (int axis = absent; axis < 3; ++axis) {
      size_[axis] = x.info.shape[1 + axis - absent];
      step_[axis] = x.info.stride[1 + axis - absent] * bytes;
      made_[axis] = out.info.shape[1 + axis - absent];
      taps_[axis] = weight.info.shape[2 + axis - absent];
    }
  }

  // The pixel under the first tap: it may lie in the padding. `offset` is in bytes.
  struct Corner {
    std::int64_t t, y, z, offset;
  };
  Corner corner(std::int64_t row) const {
    // A division takes longer than what is done for a pixel of few channels: pictures are spared
    // one.
    const std::int64_t line = row / made_[2], frame = line / made_[1], item = frame / made_[0];
    const std::int64_t t = (frame - item * made_[0]) * attrs_.stride[0] - attrs_.padding[0],
                       y = (line - frame * made_[1]) * attrs_.stride[1] - attrs_.padding[1],
                       z = (row - line * made_[2]) * attrs_.stride[2] - attrs_.padding[2];
    return {t, y, z, item * item_step_ + t * step_[0] + y * step_[1] + z * step_[2]};
  }
  // That of `row`, from that of the row before it: three divisions take longer than what is done
  // for a pixel of few channels.
  Corner next(const Corner& last, std::int64_t row) const {
    const std::int64_t z = last.z + attrs_.stride[2];
    if (z >= made_[2] * attrs_.stride[2] - attrs_.padding[2]) return corner(row);
    return {last.t, last.y, z, last.offset + attrs_.stride[2] * step_[2]};
  }

  // A tap of the filter: its place in it, and by how many bytes its pixel lies behind the first
  // one's.
  struct Tap {
    std::int64_t t, y, z, offset;
  };
  Tap tap(std::int64_t number) const {
    const std::int64_t line = number / taps_[2], t = line / taps_[1], y = line - t * taps_[1],
                       z = number - line * taps_[2];
    return {t, y, z, t * step_[0] + y * step_[1] + z * step_[2]};
  }

  // The first channel of the pixel under a tap, or nullptr where it lies in the padding.
  const std::byte* at(const Corner& corner, const Tap& tap) const {
    const bool is_inside = lies_in(corner.t + tap.t, size_[0]) &&
                           lies_in(corner.y + tap.y, size_[1]) &&
                           lies_in(corner.z + tap.z, size_[2]);
    return is_inside ? base_ + corner.offset + tap.offset : nullptr;
  }

  // The pixels under all taps: places[tap * step] for each tap in turn.
  void under_filter(const Corner& corner, const std::byte* outside, const std::byte** places,
                    std::int64_t step) const {
    const bool is_inside = corner.t >= 0 && corner.t + taps_[0] <= size_[0] && corner.y >= 0 &&
                           corner.y + taps_[1] <= size_[1] && corner.z >= 0 &&
                           corner.z + taps_[2] <= size_[2];
    Tap tap = {};
    for (; tap.t < taps_[0]; ++tap.t)
      for (tap.y = 0; tap.y < taps_[1]; ++tap.y) {
        tap.offset = tap.t * step_[0] + tap.y * step_[1];
        if (is_inside) {
          const std::byte* pixel = base_ + corner.offset + tap.offset;
          for (tap.z = 0; tap.z < taps_[2]; ++tap.z, places += step, pixel += step_[2])
            *places = pixel;
          continue;
        }
        for (tap.z = 0; tap.z < taps_[2]; ++tap.z, places += step, tap.offset += step_[2]) {
          const std::byte* pixel = at(corner, tap);
          *places = pixel != nullptr ? pixel : outside;
        }
      }
  }

  std::int64_t channels() const { return last_size(x_.info); }
  std::int64_t taps() const { return taps_[0] * taps_[1] * taps_[2]; }
  heddle_dtype dtype() const { return x_.info.dtype; }

 private:
  static bool lies_in(std::int64_t index, std::int64_t size) { return index >= 0 && index < size; }

  const heddle_view& x_;
  const std::byte* base_;
  const heddle_conv3d_attrs attrs_;
  // Steps are in bytes.
  std::int64_t item_step_ = 0, step_[3] = {};
  std::int64_t size_[3] = {1, 1, 1}, made_[3] = {1, 1, 1}, taps_[3] = {1, 1, 1};
};

// Pixels as the left operand of a product: all channels of tap 0, then those of tap 1, ...
struct Patches {
  const Pixels& pixels;
  const VectorKernels& vector;
  const float* zeros;  // as many as there are channels

  void pack(std::int64_t row, std::int64_t rows, std::int64_t k0, std::int64_t k,
            std::int64_t block_rows, float* packed, Scratch& scratch) const {
    const std::int64_t channels = pixels.channels();
    Pixels::Corner corners[kBlockRows];
    corners[0] = pixels.corner(row);
    for (std::int64_t r = 1; r < block_rows; ++r)
      corners[r] = r < rows ? pixels.next(corners[r - 1], row + r) : corners[r - 1];
    while (k > 0) {
      const Scratch::Frame frame(scratch);
      const std::int64_t channel = k0 % channels, run = std::min(k, channels - channel);
      const Pixels::Tap tap = pixels.tap(k0 / channels);
      const float* from[kBlockRows];
      for (std::int64_t r = 0; r < block_rows; ++r)
        from[r] = read(pixels.at(corners[r], tap), channel, run, scratch);
      (block_rows == kFewRows ? vector.pack_few : vector.pack)(from, run, packed);
      packed += run * block_rows;
      k0 += run;
      k -= run;
    }
  }

 private:
  const float* read(const std::byte* pixel, std::int64_t channel, std::int64_t count,
                    Scratch& scratch) const {
    if (pixel == nullptr) return zeros;
    const std::byte* from =
        pixel + channel * static_cast<std::int64_t>(device::dtype_bytes(pixels.dtype()));
    if (pixels.dtype() == HEDDLE_F32) return reinterpret_cast<const float*>(from);
    auto* values = scratch.take<float>(static_cast<std::size_t>(count));
    vector.widen(pixels.dtype(), from, count, values);
    return values;
  }
};

// Bound by memory: the compiler's own vectors do.
struct FastDepthwiseConv2d : Fast {
  static constexpr const char* op = HEDDLE_OP_DEPTHWISE_CONV2D;
  static void check(const heddle_op_call& call) { check_depthwise_conv2d(call); }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const auto attrs = call.attrs<heddle_conv2d_attrs>();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const std::int64_t height = out.info.shape[1], width = out.info.shape[2],
                       channels = out.info.shape[3], down = weight.info.shape[0],
                       across = weight.info.shape[1];
    const auto count = static_cast<std::size_t>(channels);
    auto* taps =
        call.stream().call_scratch().take<float>(static_cast<std::size_t>(down * across) * count);
    for (std::int64_t tap = 0; tap < down * across; ++tap)
      vector.widen(weight.info.dtype,
                   element(weight, tap / across * weight.info.stride[0] +
                                       tap % across * weight.info.stride[1]),
                   channels, taps + tap * channels);
    const float* bias = vector_of(vector, call.maybe(2), call.stream().call_scratch());
    call.parallel_for(out.info.shape[0] * height, [&](std::int64_t line, Scratch& scratch) {
      const std::int64_t item = line / height, h = line % height;
      auto *sums = scratch.take<float>(count), *pixel = scratch.take<float>(count);
      for (std::int64_t w = 0; w < width; ++w) {
        if (bias != nullptr)
          std::copy(bias, bias + channels, sums);
        else
          std::fill(sums, sums + channels, 0.0f);
        for (std::int64_t tap = 0; tap < down * across; ++tap) {
          const std::int64_t y = h * attrs.stride[0] - attrs.padding[0] + tap / across,
                             z = w * attrs.stride[1] - attrs.padding[1] + tap % across;
          if (y < 0 || y >= x.info.shape[1] || z < 0 || z >= x.info.shape[2]) continue;
          const std::byte* from =
              element(x, item * x.info.stride[0] + y * x.info.stride[1] + z * x.info.stride[2]);
          if (x.info.dtype != HEDDLE_F32) vector.widen(x.info.dtype, from, channels, pixel);
          const float *values =
                          x.info.dtype == HEDDLE_F32 ? reinterpret_cast<const float*>(from) : pixel,
                      *factors = taps + tap * channels;
          for (std::int64_t c = 0; c < channels; ++c) sums[c] += values[c] * factors[c];
        }
        std::byte* to = element(
            out, item * out.info.stride[0] + h * out.info.stride[1] + w * out.info.stride[2]);
        vector.narrow(out.info.dtype, sums, channels, to);
      }
    });
  }
};

template <class Attrs>
struct FastConvolution : Fast {
  static constexpr bool kHasFrames = std::is_same_v<Attrs, heddle_conv3d_attrs>;
  static constexpr const char* op = kHasFrames ? HEDDLE_OP_CONV3D : HEDDLE_OP_CONV2D;
  static void check(const heddle_op_call& call) {
    kHasFrames ? check_conv3d(call) : check_conv2d(call);
  }

  static std::int32_t fits(const Device& device, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && is_filter_layout(weight->info.layout) ? Fast::fits(device, call)
                                                                      : 0;
  }

  // With enough channels the pixels are read where they lie, tap by tap: packing them would copy
  // each as often as there are taps. The first layers, with a handful of channels, would spend
  // their time between taps.
  static bool reads_in_place(const heddle_view& x) {
    constexpr std::int64_t kEnoughChannels = 16;
    return x.info.dtype == HEDDLE_F32 && last_size(x.info) >= kEnoughChannels;
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const std::int64_t outputs = weight.info.shape[0], length = sum_length(weight.info);
    const Pixels pixels(x, weight, out, over_frames(call.attrs<Attrs>()));
    auto* zeros =
        call.stream().call_scratch().take<float>(static_cast<std::size_t>(pixels.channels()));
    std::fill(zeros, zeros + pixels.channels(), 0.0f);
    const Right right{&weight, &vector};
    const Finish finish(call, load_bias(call, call.maybe(2), outputs), HEDDLE_ACT_NONE,
                        call.maybe(3));
    if (reads_in_place(x)) {
      run_in_place(call, pixels, zeros, right, finish);
      return;
    }
    const Patches left{pixels, vector, zeros};
    const Cut cut(row_count(out.info), outputs);
    call.parallel_for(cut.tiles(), [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t row = tile % cut.down * cut.tile_rows,
                         column = tile / cut.down * cut.tile_columns;
      const std::int64_t rows = std::min(cut.tile_rows, cut.rows - row),
                         columns = std::min(cut.tile_columns, cut.columns - column);
      const std::int64_t padded = panel_count(columns) * kPanelColumns;
      auto* sums = scratch.take<float>(static_cast<std::size_t>(cut.tile_rows * padded));
      multiply_tile(vector, left, right, row, rows, column / kPanelColumns, padded, length, sums,
                    scratch);
      finish.write(sums, padded, row, rows, column, columns, scratch);
    });
  }

 private:
  static void run_in_place(const Call& call, const Pixels& pixels, const float* zeros,
                           const Right& right, const Finish& finish) {
    // The tile's sums and a part of a panel stay in a core's second cache.
    constexpr std::int64_t kTileBlocks = 16, kTilePanels = 8, kPartLength = 4096;
    const VectorKernels& vector = call.device().vector();
    const std::int64_t rows = row_count(call.out().info),
                       panels = panel_count(last_size(call.out().info));
    const std::int64_t channels = pixels.channels(), taps = pixels.taps();
    const std::int64_t part_taps = std::clamp<std::int64_t>(kPartLength / channels, 1, taps);
    const std::int64_t tile_rows = kTileBlocks * kBlockRows,
                       down = (rows + tile_rows - 1) / tile_rows;
    const std::int64_t across = (panels + kTilePanels - 1) / kTilePanels;
    call.parallel_for(down * across, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t row = tile % down * tile_rows, panel = tile / down * kTilePanels;
      const std::int64_t count = std::min(tile_rows, rows - row),
                         blocks = (count + kBlockRows - 1) / kBlockRows;
      const std::int64_t wide = std::min(kTilePanels, panels - panel), step = wide * kPanelColumns;
      auto* places =
          scratch.take<const std::byte*>(static_cast<std::size_t>(blocks * taps * kBlockRows));
      Pixels::Corner corner = pixels.corner(row);
      for (std::int64_t i = 0; i < blocks * kBlockRows; ++i) {
        if (i > 0 && i < count) corner = pixels.next(corner, row + i);
        pixels.under_filter(corner, reinterpret_cast<const std::byte*>(zeros),
                            places + i / kBlockRows * taps * kBlockRows + i % kBlockRows,
                            kBlockRows);
      }
      auto* sums = scratch.take<float>(static_cast<std::size_t>(blocks * kBlockRows * step));
      auto* room =
          scratch.take<float>(static_cast<std::size_t>(part_taps * channels * kPanelColumns));
      for (std::int64_t tap = 0; tap < taps; tap += part_taps) {
        const std::int64_t part = std::min(part_taps, taps - tap);
        for (std::int64_t p = 0; p < wide; ++p) {
          const float* filter =
              right.panel(panel + p, tap * channels, part * channels, room, scratch);
          for (std::int64_t b = 0; b < blocks; ++b)
            vector.multiply_taps(
                reinterpret_cast<const float* const*>(places) + (b * taps + tap) * kBlockRows,
                filter, part, channels, sums + b * kBlockRows * step + p * kPanelColumns, step,
                tap > 0);
        }
      }
      const std::int64_t column = panel * kPanelColumns;
      finish.write(sums, step, row, count, column,
                   std::min(step, last_size(call.out().info) - column), scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastDepthwiseConv2d = kernel_table<FastDepthwiseConv2d>();
constexpr heddle_kernel kFastConv2d = kernel_table<FastConvolution<heddle_conv2d_attrs>>();
constexpr heddle_kernel kFastConv3d = kernel_table<FastConvolution<heddle_conv3d_attrs>>();

}  // namespace heddle::cpu
