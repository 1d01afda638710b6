// conv3d/1: clips are (N, T, H, W, C) with the channels side by side.
#include "kernels.h"
#include "op_check_frames.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Conv3d : Reference {
  static constexpr const char* op = HEDDLE_OP_CONV3D;
  static void check(const heddle_op_call& call) { check_conv3d(call); }

  static std::int32_t fits(const Device&, const heddle_op_call& call) {
    const heddle_view* weight = device::operand(call, 1);
    return weight != nullptr && weight->info.layout == 0 ? 1 : 0;
  }

  // One pixel of the output to a row.
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_conv3d_attrs>();
    const heddle_view &x = call.in(0), &weight = call.in(1), &out = call.out();
    if (weight.info.layout != 0)
      device::fail(HEDDLE_UNSUPPORTED, "the reference reads plain weights only, got ",
                   device::describe(weight.info));
    const std::int64_t outputs = weight.info.shape[0], channels = weight.info.shape[1];
    const float* filter = turned_filter(call, weight);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const std::int64_t* made = out.info.shape;
      const std::int64_t place[3] = {row / made[3] / made[2] % made[1], row / made[3] % made[2],
                                     row % made[3]};
      const std::int64_t item = row / made[3] / made[2] / made[1];
      const float* bias = load_vector(call.maybe(2), scratch);
      auto* sums = scratch.take<double>(static_cast<std::size_t>(outputs));
      auto* pixel = scratch.take<float>(static_cast<std::size_t>(channels));
      for (std::int64_t o = 0; o < outputs; ++o) sums[o] = bias != nullptr ? bias[o] : 0;
      const float* tap = filter;
      const auto step = [&] { tap += channels * outputs; };
      for (std::int64_t f = 0; f < weight.info.shape[2]; ++f)
        for (std::int64_t r = 0; r < weight.info.shape[3]; ++r)
          for (std::int64_t s = 0; s < weight.info.shape[4]; ++s, step()) {
            const std::int64_t taps[3] = {f, r, s};
            std::int64_t at = item * x.info.stride[0];
            bool is_inside = true;
            for (int axis = 0; axis < 3; ++axis) {
              const std::int64_t i =
                  place[axis] * attrs.stride[axis] - attrs.padding[axis] + taps[axis];
              is_inside = is_inside && i >= 0 && i < x.info.shape[1 + axis];
              at += i * x.info.stride[1 + axis];
            }
            if (!is_inside) continue;
            load_row(x.info.dtype, element(x, at), channels, 1, pixel);
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t o = 0; o < outputs; ++o)
                sums[o] += double{pixel[c]} * tap[c * outputs + o];
          }
      auto* result = scratch.take<float>(static_cast<std::size_t>(outputs));
      const heddle_view* residual = call.maybe(3);
      const float* added = residual != nullptr
                               ? load_piece(*residual, out.info, {row, 0, outputs}, scratch)
                               : nullptr;
      for (std::int64_t o = 0; o < outputs; ++o)
        result[o] = static_cast<float>(sums[o] + (added != nullptr ? added[o] : 0));
      store_piece(out, {row, 0, outputs}, result);
    });
  }

 private:
  // (O, C, F, R, S) to (F, R, S, C, O), as f32.
  static const float* turned_filter(const Call& call, const heddle_view& weight) {
    const heddle_tensor_info& info = weight.info;
    const std::int64_t outputs = info.shape[0], channels = info.shape[1], down = info.shape[3],
                       across = info.shape[4], lines = info.shape[2] * down;
    auto* turned = call.stream().call_scratch().take<float>(
        static_cast<std::size_t>(device::element_count(info)));
    call.parallel_for(outputs, [&](std::int64_t o, Scratch& scratch) {
      auto* taps = scratch.take<float>(static_cast<std::size_t>(across));
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t line = 0; line < lines; ++line) {
          const std::int64_t from = o * info.stride[0] + c * info.stride[1] +
                                    line / down * info.stride[2] + line % down * info.stride[3];
          load_row(info.dtype, element(weight, from), across, 1, taps);
          for (std::int64_t s = 0; s < across; ++s)
            turned[((line * across + s) * channels + c) * outputs + o] = taps[s];
        }
    });
    return turned;
  }
};

}  // namespace

constexpr heddle_kernel kReferenceConv3d = kernel_table<Conv3d>();

}  // namespace heddle::cpu
