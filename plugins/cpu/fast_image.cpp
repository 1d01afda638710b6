// conv2d/1 on panels of the filter: a product whose left rows are the pixels under the filter.
#include <cstring>

#include "fast.h"
#include "gemm.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// Where the pixel under each tap of the filter lies, for the output pixels in rows of `out`.
class Pixels {
 public:
  Pixels(const heddle_view& x, const heddle_view& weight, const heddle_view& out,
         const heddle_conv2d_attrs& attrs)
      : x_(x),
        attrs_(attrs),
        height_(out.info.shape[1]),
        width_(out.info.shape[2]),
        down_(weight.info.shape[2]),
        across_(weight.info.shape[3]),
        bytes_(static_cast<std::int64_t>(device::dtype_bytes(x.info.dtype))) {}

  // The pixel under the first tap: it may lie in the padding.
  struct Corner {
    std::int64_t item, y, z;
  };
  Corner corner(std::int64_t row) const {
    const std::int64_t line = row / width_, item = line / height_;
    return {item, (line - item * height_) * attrs_.stride[0] - attrs_.padding[0],
            (row - line * width_) * attrs_.stride[1] - attrs_.padding[1]};
  }

  // The first channel of the pixel under a tap, or nullptr where it lies in the padding.
  const std::byte* at(const Corner& corner, std::int64_t tap_down, std::int64_t tap_across) const {
    const heddle_tensor_info& info = x_.info;
    const std::int64_t y = corner.y + tap_down, z = corner.z + tap_across;
    if (y < 0 || y >= info.shape[1] || z < 0 || z >= info.shape[2]) return nullptr;
    return element(x_, corner.item * info.stride[0] + y * info.stride[1] + z * info.stride[2]);
  }
  const std::byte* at(const Corner& corner, std::int64_t tap) const {
    return at(corner, tap / across_, tap % across_);
  }

  // The pixels under all taps: places[tap * step] for each tap in turn.
  void under_filter(const Corner& corner, const std::byte* outside, const std::byte** places,
                    std::int64_t step) const {
    const heddle_tensor_info& info = x_.info;
    const bool inside = corner.y >= 0 && corner.y + down_ <= info.shape[1] && corner.z >= 0 &&
                        corner.z + across_ <= info.shape[2];
    if (!inside) {
      for (std::int64_t r = 0; r < down_; ++r)
        for (std::int64_t s = 0; s < across_; ++s, places += step) {
          const std::byte* pixel = at(corner, r, s);
          *places = pixel != nullptr ? pixel : outside;
        }
      return;
    }
    const std::byte* line = at(corner, 0, 0);
    for (std::int64_t r = 0; r < down_; ++r, line += info.stride[1] * bytes_) {
      const std::byte* pixel = line;
      for (std::int64_t s = 0; s < across_; ++s, places += step, pixel += info.stride[2] * bytes_)
        *places = pixel;
    }
  }

  std::int64_t channels() const { return x_.info.shape[3]; }
  std::int64_t taps() const { return down_ * across_; }
  heddle_dtype dtype() const { return x_.info.dtype; }

 private:
  const heddle_view& x_;
  const heddle_conv2d_attrs& attrs_;
  std::int64_t height_, width_, down_, across_, bytes_;
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
    for (std::int64_t r = 0; r < block_rows; ++r)
      corners[r] = pixels.corner(row + std::min(r, rows - 1));
    while (k > 0) {
      const Scratch::Frame frame(scratch);
      const std::int64_t channel = k0 % channels, run = std::min(k, channels - channel);
      const std::int64_t tap = k0 / channels;
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

struct FastConv2d : Fast {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static void check(const heddle_op_call& call) { check_conv2d(call); }

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
    return x.info.dtype == HEDDLE_F32 && x.info.shape[3] >= kEnoughChannels;
  }

  static void run(const Call& call) {
    const VectorKernels& vector = call.device().vector();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const std::int64_t outputs = weight.info.shape[0], length = sum_length(weight.info);
    const Pixels pixels(x, weight, out, call.attrs<heddle_conv2d_attrs>());
    auto* zeros =
        call.stream().call_scratch().take<float>(static_cast<std::size_t>(x.info.shape[3]));
    std::fill(zeros, zeros + x.info.shape[3], 0.0f);
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
                       panels = panel_count(call.out().info.shape[3]);
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
      for (std::int64_t b = 0; b < blocks; ++b)
        for (std::int64_t r = 0; r < kBlockRows; ++r)
          pixels.under_filter(pixels.corner(row + std::min(b * kBlockRows + r, count - 1)),
                              reinterpret_cast<const std::byte*>(zeros),
                              places + b * taps * kBlockRows + r, kBlockRows);
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
                   std::min(step, call.out().info.shape[3] - column), scratch);
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastDepthwiseConv2d = kernel_table<FastDepthwiseConv2d>();
constexpr heddle_kernel kFastConv2d = kernel_table<FastConv2d>();

}  // namespace heddle::cpu
