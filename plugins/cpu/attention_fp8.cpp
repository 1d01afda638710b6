// attention/1 in 8 bits (attention_fp8.h): what cards multiply in 8 bits, multiplied in f32, to see
// what the rounding does where there is no such card. It is no faster than the reference.
#include "plugins/blocks/attention_fp8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kFp8TileQueries = 64;

// Numbers in units of the scale that they get.
float round_to_fp8(float* values, std::int64_t count) {
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(values[i]));
  const float scale = std::max(most / blocks::kFp8Largest, blocks::kFp8LeastScale), by = 1 / scale;
  for (std::int64_t i = 0; i < count; ++i) values[i] = from_e4m3(to_e4m3(values[i] * by));
  return scale;
}

// Keys or values of one head, and a scale of each block of them.
struct Fp8Head {
  float *rows, *scales, *mean;

  Fp8Head(const heddle_view& view, std::int64_t item, std::int64_t head, Scratch& scratch) {
    const heddle_tensor_info& info = view.info;
    const std::int64_t count = info.shape[1], width = info.shape[3],
                       blocks = (count + blocks::kFp8Block - 1) / blocks::kFp8Block;
    rows = scratch.take<float>(static_cast<std::size_t>(count * width));
    scales = scratch.take<float>(static_cast<std::size_t>(blocks));
    for (std::int64_t s = 0; s < count; ++s)
      load_row(info.dtype,
               element(view, item * info.stride[0] + s * info.stride[1] + head * info.stride[2]),
               width, 1, rows + s * width);
    subtract_mean(count, width, scratch);
    for (std::int64_t b = 0; b < blocks; ++b)
      scales[b] = round_to_fp8(rows + b * blocks::kFp8Block * width,
                               std::min(blocks::kFp8Block, count - b * blocks::kFp8Block) * width);
  }

  void subtract_mean(std::int64_t count, std::int64_t width, Scratch& scratch) {
    const std::int64_t sample = std::min(blocks::kFp8Sample, count);
    mean = scratch.take<float>(static_cast<std::size_t>(width));
    for (std::int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < sample; ++i) sum += rows[i * count / sample * width + c];
      mean[c] = static_cast<float>(sum / static_cast<double>(sample));
    }
    for (std::int64_t s = 0; s < count; ++s)
      for (std::int64_t c = 0; c < width; ++c) rows[s * width + c] -= mean[c];
  }
};

struct Fp8Attention {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static constexpr const char* name = "f8";
  static void check(const heddle_op_call& call) { check_attention(call); }
  static std::int32_t fits(const Device& device, const heddle_op_call& call) {
    return device.settings().attention_fp8 && blocks::is_for_fp8_attention(call) ? 30 : 0;
  }

  static void attend(const float* query, float query_scale, const Fp8Head& k, const Fp8Head& v,
                     std::int64_t keys, std::int64_t width, double scale, double* scores,
                     double* sum) {
    constexpr double kLog2E = 1.4426950408889634;
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double units = double{query_scale} * k.scales[j / blocks::kFp8Block] * scale * kLog2E;
      scores[j] = dot(query, k.rows + j * width, width) * units +
                  std::log2(double{v.scales[j / blocks::kFp8Block]});
      largest = std::max(largest, scores[j]);
    }
    std::fill(sum, sum + width, 0.0);
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto weight = static_cast<float>(std::exp2(scores[j] - largest + blocks::kFp8Top));
      total += double{weight} / v.scales[j / blocks::kFp8Block];
      const double rounded = from_e4m3(to_e4m3(weight));
      for (std::int64_t c = 0; c < width; ++c) sum[c] += rounded * v.rows[j * width + c];
    }
    for (std::int64_t c = 0; c < width; ++c) sum[c] = sum[c] / total + v.mean[c];
  }

  static void run(const Call& call) {
    const double scale = call.attrs<heddle_attention_attrs>().scale;
    const heddle_view &q = call.in(0), &out = call.out();
    const std::int64_t queries = q.info.shape[1], keys = call.in(1).info.shape[1],
                       heads = q.info.shape[2], width = q.info.shape[3];
    const std::int64_t tiles = (queries + kFp8TileQueries - 1) / kFp8TileQueries;
    call.parallel_for(q.info.shape[0] * heads * tiles, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t item = tile / tiles / heads, head = tile / tiles % heads,
                         first = tile % tiles * kFp8TileQueries;
      const Fp8Head k(call.in(1), item, head, scratch), v(call.in(2), item, head, scratch);
      auto* query = scratch.take<float>(static_cast<std::size_t>(width));
      auto* scores = scratch.take<double>(static_cast<std::size_t>(keys));
      auto* sum = scratch.take<double>(static_cast<std::size_t>(width));
      for (std::int64_t i = first; i < std::min(queries, first + kFp8TileQueries); ++i) {
        call.check_wanted();
        load_row(
            q.info.dtype,
            element(q, item * q.info.stride[0] + i * q.info.stride[1] + head * q.info.stride[2]),
            width, 1, query);
        const float query_scale = round_to_fp8(query, width);
        attend(query, query_scale, k, v, keys, width, scale, scores, sum);
        for (std::int64_t c = 0; c < width; ++c) query[c] = static_cast<float>(sum[c]);
        store_row(out.info.dtype, query, width, 1,
                  element(out, item * out.info.stride[0] + i * out.info.stride[1] +
                                   head * out.info.stride[2]));
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kFp8Attention = kernel_table<Fp8Attention>();

}  // namespace heddle::cpu
