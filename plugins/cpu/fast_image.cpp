// conv2d/1 on panels of the filter: a product whose left rows are the pixels under the filter.
#include <cstring>

#include "fast.h"
#include "kernels.h"
#include "op_check.h"
#include "product.h"

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
        taps_across_(weight.info.shape[3]) {}

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
  struct Tap {
    std::int64_t down, across;
  };
  Tap tap(std::int64_t number) const { return {number / taps_across_, number % taps_across_}; }
  const std::byte* at(const Corner& corner, const Tap& tap) const {
    const heddle_tensor_info& info = x_.info;
    const std::int64_t y = corner.y + tap.down, z = corner.z + tap.across;
    if (y < 0 || y >= info.shape[1] || z < 0 || z >= info.shape[2]) return nullptr;
    return element(x_, corner.item * info.stride[0] + y * info.stride[1] + z * info.stride[2]);
  }
  std::int64_t channels() const { return x_.info.shape[3]; }
  heddle_dtype dtype() const { return x_.info.dtype; }

 private:
  const heddle_view& x_;
  const heddle_conv2d_attrs& attrs_;
  std::int64_t height_, width_, taps_across_;
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

struct FastConv2d : Fast {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static void check(const heddle_op_call& call) { check_conv2d(call); }

  static std::int32_t fits(const Device& device, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && weight->info.layout == kFilterPanels ? Fast::fits(device, call) : 0;
  }

  // Packing a patch costs as much as multiplying it with some 20 outputs. With few outputs and
  // enough channels the pixels are read where they lie, tap by tap.
  static bool reads_in_place(const heddle_view& x, std::int64_t outputs) {
    constexpr std::int64_t kFewOutputs = 4 * kPanelColumns, kEnoughChannels = 16;
    return x.info.dtype == HEDDLE_F32 && outputs <= kFewOutputs &&
           x.info.shape[3] >= kEnoughChannels;
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
    const Finish finish{.bias = load_bias(call, call.maybe(2), outputs),
                        .activation = HEDDLE_ACT_NONE,
                        .residual = call.maybe(3),
                        .out = &out};
    if (reads_in_place(x, outputs)) {
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
      finish.write(vector, sums, padded, row, rows, column, columns, scratch);
    });
  }

 private:
  static void run_in_place(const Call& call, const Pixels& pixels, const float* zeros,
                           const Right& right, const Finish& finish) {
    constexpr std::int64_t kTileRows = 16 * kBlockRows;
    const VectorKernels& vector = call.device().vector();
    const std::int64_t rows = row_count(call.out().info), outputs = call.out().info.shape[3],
                       channels = pixels.channels();
    const std::int64_t taps = right.weight->info.shape[2] * right.weight->info.shape[3],
                       panels = panel_count(outputs);
    call.parallel_for((rows + kTileRows - 1) / kTileRows, [&](std::int64_t tile, Scratch& scratch) {
      // The whole filter as f32, once for the tile.
      auto* filter = scratch.take<const float*>(static_cast<std::size_t>(panels));
      for (std::int64_t p = 0; p < panels; ++p) {
        const bool plain = right.weight->info.dtype == HEDDLE_F32;
        auto* room =
            plain ? nullptr
                  : scratch.take<float>(static_cast<std::size_t>(kPanelColumns * taps * channels));
        filter[p] = right.panel(p, 0, taps * channels, room, scratch);
      }
      auto* from = scratch.take<const float*>(static_cast<std::size_t>(taps * kBlockRows));
      auto* sums =
          scratch.take<float>(static_cast<std::size_t>(kBlockRows * panels * kPanelColumns));
      const std::int64_t end = std::min(rows, (tile + 1) * kTileRows);
      for (std::int64_t row = tile * kTileRows; row < end; row += kBlockRows) {
        const Scratch::Frame frame(scratch);
        Pixels::Corner corners[kBlockRows];
        for (std::int64_t r = 0; r < kBlockRows; ++r)
          corners[r] = pixels.corner(std::min(row + r, end - 1));
        for (std::int64_t n = 0; n < taps; ++n) {
          const Pixels::Tap tap = pixels.tap(n);
          for (std::int64_t r = 0; r < kBlockRows; ++r) {
            const std::byte* pixel = pixels.at(corners[r], tap);
            from[n * kBlockRows + r] =
                pixel != nullptr ? reinterpret_cast<const float*>(pixel) : zeros;
          }
        }
        for (std::int64_t p = 0; p < panels; ++p)
          for (std::int64_t tap = 0; tap < taps; ++tap)
            vector.multiply_rows(from + tap * kBlockRows,
                                 filter[p] + tap * channels * kPanelColumns, channels,
                                 sums + p * kPanelColumns, panels * kPanelColumns, tap > 0);
        finish.write(vector, sums, panels * kPanelColumns, row, std::min(kBlockRows, end - row), 0,
                     outputs, scratch);
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastConv2d = kernel_table<FastConv2d>();

}  // namespace heddle::cpu
