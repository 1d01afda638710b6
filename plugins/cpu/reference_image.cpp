// conv2d/1, depthwise_conv2d/1 and upsample_nearest/1: pictures are (N, H, W, C) with the channels
// side by side.
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Conv2d : Reference {
  static constexpr const char* op = HEDDLE_OP_CONV2D;
  static void check(const heddle_op_call& call) { check_conv2d(call); }

  static std::int32_t fits(const Device&, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && weight->info.layout == 0 ? 1 : 0;
  }

  // One output row of one picture and some of its channels to a tile. For every tap the input pixel
  // is a vector of channels, and the filter has been turned to (R, S, C, O) so that the sum runs
  // along the outputs.
  static constexpr std::int64_t kTileChannels = 64;

  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_conv2d_attrs>();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    if (weight.info.layout != 0)
      device::fail(HEDDLE_UNSUPPORTED, "the reference reads plain weights only, got ",
                   device::describe(weight.info));
    const heddle_view* residual = call.maybe(3);
    const std::int64_t height = x.info.shape[1], width = x.info.shape[2],
                       channels = x.info.shape[3];
    const std::int64_t out_height = out.info.shape[1], out_width = out.info.shape[2],
                       outputs = out.info.shape[3];
    const std::int64_t taps_down = weight.info.shape[2], taps_across = weight.info.shape[3];
    const float* bias = load_vector(call.maybe(2), call.stream().call_scratch());
    const float* filter = turned_filter(call, weight);
    const std::int64_t across = (outputs + kTileChannels - 1) / kTileChannels;
    call.parallel_for(
        out.info.shape[0] * out_height * across, [&](std::int64_t tile, Scratch& scratch) {
          const std::int64_t first = tile % across * kTileChannels,
                             count = std::min(kTileChannels, outputs - first);
          const std::int64_t row = tile / across, item = row / out_height, h = row % out_height;
          auto* pixel = scratch.take<float>(static_cast<std::size_t>(channels));
          auto* sums = scratch.take<double>(static_cast<std::size_t>(count));
          auto* result = scratch.take<float>(static_cast<std::size_t>(count));
          auto* added = scratch.take<float>(static_cast<std::size_t>(count));
          for (std::int64_t w = 0; w < out_width; ++w) {
            for (std::int64_t o = 0; o < count; ++o)
              sums[o] = bias != nullptr ? bias[first + o] : 0;
            for (std::int64_t r = 0; r < taps_down; ++r) {
              for (std::int64_t s = 0; s < taps_across; ++s) {
                const std::int64_t y = h * attrs.stride[0] - attrs.padding[0] + r,
                                   z = w * attrs.stride[1] - attrs.padding[1] + s;
                if (y < 0 || y >= height || z < 0 || z >= width) continue;
                const std::int64_t at =
                    item * x.info.stride[0] + y * x.info.stride[1] + z * x.info.stride[2];
                load_row(x.info.dtype, element(x, at), channels, 1, pixel);
                const float* tap = filter + (r * taps_across + s) * channels * outputs + first;
                for (std::int64_t c = 0; c < channels; ++c)
                  for (std::int64_t o = 0; o < count; ++o)
                    sums[o] += double{pixel[c]} * tap[c * outputs + o];
              }
            }
            if (residual != nullptr) {
              const heddle_tensor_info& info = residual->info;
              const std::int64_t at =
                  item * info.stride[0] + h * info.stride[1] + w * info.stride[2] + first;
              load_row(info.dtype, element(*residual, at), count, 1, added);
            }
            for (std::int64_t o = 0; o < count; ++o)
              result[o] = static_cast<float>(sums[o] + (residual != nullptr ? added[o] : 0));
            const std::int64_t to =
                item * out.info.stride[0] + h * out.info.stride[1] + w * out.info.stride[2] + first;
            store_row(out.info.dtype, result, count, 1, element(out, to));
          }
        });
  }

 private:
  // (O, C, R, S) to (R, S, C, O), as f32.
  static const float* turned_filter(const Call& call, const heddle_view& weight) {
    const heddle_tensor_info& info = weight.info;
    const std::int64_t outputs = info.shape[0], channels = info.shape[1], down = info.shape[2],
                       across = info.shape[3];
    auto* turned = call.stream().call_scratch().take<float>(
        static_cast<std::size_t>(device::element_count(info)));
    call.parallel_for(outputs, [&](std::int64_t o, Scratch& scratch) {
      auto* taps = scratch.take<float>(static_cast<std::size_t>(across));
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t r = 0; r < down; ++r) {
          load_row(info.dtype,
                   element(weight, o * info.stride[0] + c * info.stride[1] + r * info.stride[2]),
                   across, 1, taps);
          for (std::int64_t s = 0; s < across; ++s)
            turned[((r * across + s) * channels + c) * outputs + o] = taps[s];
        }
      }
    });
    return turned;
  }
};

struct DepthwiseConv2d : Reference {
  static constexpr const char* op = HEDDLE_OP_DEPTHWISE_CONV2D;
  static void check(const heddle_op_call& call) { check_depthwise_conv2d(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_conv2d_attrs>();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    const std::int64_t height = out.info.shape[1], width = out.info.shape[2],
                       channels = out.info.shape[3];
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const std::int64_t item = row / width / height, h = row / width % height, w = row % width;
      const auto count = static_cast<std::size_t>(channels);
      auto *pixel = scratch.take<float>(count), *tap = scratch.take<float>(count);
      auto* sums = scratch.take<double>(count);
      const float* bias = load_vector(call.maybe(2), scratch);
      for (std::int64_t c = 0; c < channels; ++c) sums[c] = bias != nullptr ? bias[c] : 0;
      for (std::int64_t r = 0; r < weight.info.shape[0]; ++r)
        for (std::int64_t s = 0; s < weight.info.shape[1]; ++s) {
          const std::int64_t y = h * attrs.stride[0] - attrs.padding[0] + r,
                             z = w * attrs.stride[1] - attrs.padding[1] + s;
          if (y < 0 || y >= x.info.shape[1] || z < 0 || z >= x.info.shape[2]) continue;
          const std::int64_t from =
              item * x.info.stride[0] + y * x.info.stride[1] + z * x.info.stride[2];
          load_row(x.info.dtype, element(x, from), channels, 1, pixel);
          load_row(weight.info.dtype,
                   element(weight, r * weight.info.stride[0] + s * weight.info.stride[1]), channels,
                   1, tap);
          for (std::int64_t c = 0; c < channels; ++c) sums[c] += double{pixel[c]} * tap[c];
        }
      for (std::int64_t c = 0; c < channels; ++c) pixel[c] = static_cast<float>(sums[c]);
      const std::int64_t to =
          item * out.info.stride[0] + h * out.info.stride[1] + w * out.info.stride[2];
      store_row(out.info.dtype, pixel, channels, 1, element(out, to));
    });
  }
};

struct UpsampleNearest : Reference {
  static constexpr const char* op = HEDDLE_OP_UPSAMPLE_NEAREST;
  static void check(const heddle_op_call& call) { check_upsample_nearest(call); }
  static void run(const Call& call) {
    const heddle_view &x = call.in(0), &out = call.out();
    const std::int64_t height = out.info.shape[1], width = out.info.shape[2],
                       channels = out.info.shape[3];
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const std::int64_t item = row / width / height;
      const std::int64_t y = row / width % height * x.info.shape[1] / height,
                         z = row % width * x.info.shape[2] / width;
      const std::int64_t from =
          item * x.info.stride[0] + y * x.info.stride[1] + z * x.info.stride[2];
      auto* pixel = scratch.take<float>(static_cast<std::size_t>(channels));
      load_row(x.info.dtype, element(x, from), channels, 1, pixel);
      store_piece(out, {row, 0, channels}, pixel);
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceConv2d = kernel_table<Conv2d>();
constexpr heddle_kernel kReferenceDepthwiseConv2d = kernel_table<DepthwiseConv2d>();
constexpr heddle_kernel kReferenceUpsampleNearest = kernel_table<UpsampleNearest>();

}  // namespace heddle::cpu
