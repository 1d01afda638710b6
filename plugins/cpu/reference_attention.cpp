// attention/1: for each query row the scores of all keys, their softmax, and the weighted sum of
// the values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct Attention : Reference {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static void check(const heddle_op_call& call) { check_attention(call); }

  // A tile is some queries of one head of one batch item; it has this head's keys and values as
  // f32.
  static constexpr std::int64_t kTileQueries = 64;

  static const float* load_head(const heddle_view& view, std::int64_t item, std::int64_t head,
                                Scratch& scratch) {
    const heddle_tensor_info& info = view.info;
    auto* rows = scratch.take<float>(static_cast<std::size_t>(info.shape[1] * info.shape[3]));
    for (std::int64_t s = 0; s < info.shape[1]; ++s)
      load_row(info.dtype,
               element(view, item * info.stride[0] + s * info.stride[1] + head * info.stride[2]),
               info.shape[3], 1, rows + s * info.shape[3]);
    return rows;
  }

  static const float* load_bias(const heddle_view& bias, std::int64_t item, std::int64_t head,
                                std::int64_t query, Scratch& scratch) {
    const heddle_tensor_info& info = bias.info;
    auto* row = scratch.take<float>(static_cast<std::size_t>(info.shape[3]));
    const std::int64_t offset = (info.shape[0] == 1 ? 0 : item * info.stride[0]) +
                                (info.shape[1] == 1 ? 0 : head * info.stride[1]) +
                                query * info.stride[2];
    load_row(info.dtype, element(bias, offset), info.shape[3], 1, row);
    return row;
  }

  static double capped(double score, double cap) {
    return cap > 0 ? cap * std::tanh(score / cap) : score;
  }

  // A query that sees no key gives zeros.
  static void softmax(double* scores, std::int64_t count) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < count; ++j) largest = std::max(largest, scores[j]);
    const bool sees_none = largest == -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < count; ++j)
      sum += scores[j] = sees_none ? 0 : std::exp(scores[j] - largest);
    for (std::int64_t j = 0; j < count; ++j) scores[j] = sees_none ? 0 : scores[j] / sum;
  }

  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_attention_attrs>();
    const heddle_view &q = call.in(0), &k = call.in(1), &v = call.in(2), &out = call.out();
    const heddle_view* bias = call.maybe(3);
    const std::int64_t queries = q.info.shape[1], keys = k.info.shape[1], heads = q.info.shape[2];
    const std::int64_t d = q.info.shape[3], e = v.info.shape[3];
    const std::int64_t tiles = (queries + kTileQueries - 1) / kTileQueries;
    call.parallel_for(q.info.shape[0] * heads * tiles, [&](std::int64_t tile, Scratch& scratch) {
      const std::int64_t item = tile / tiles / heads, head = tile / tiles % heads,
                         first = tile % tiles * kTileQueries;
      const float* key = load_head(k, item, head, scratch);
      const float* value = load_head(v, item, head, scratch);
      auto* query = scratch.take<float>(static_cast<std::size_t>(d));
      auto* scores = scratch.take<double>(static_cast<std::size_t>(keys));
      auto* sum = scratch.take<double>(static_cast<std::size_t>(e));
      auto* result = scratch.take<float>(static_cast<std::size_t>(e));
      for (std::int64_t i = first; i < std::min(queries, first + kTileQueries); ++i) {
        call.check_wanted();
        load_row(
            q.info.dtype,
            element(q, item * q.info.stride[0] + i * q.info.stride[1] + head * q.info.stride[2]), d,
            1, query);
        const std::int64_t seen =
            attrs.causal != 0 ? std::clamp<std::int64_t>(i + keys - queries + 1, 0, keys) : keys;
        const float* added = bias != nullptr ? load_bias(*bias, item, head, i, scratch) : nullptr;
        for (std::int64_t j = 0; j < seen; ++j)
          scores[j] = capped(dot(query, key + j * d, d) * attrs.scale, attrs.cap) +
                      (added != nullptr ? added[j] : 0);
        softmax(scores, seen);
        std::fill(sum, sum + e, 0.0);
        for (std::int64_t j = 0; j < seen; ++j)
          for (std::int64_t c = 0; c < e; ++c) sum[c] += scores[j] * value[j * e + c];
        for (std::int64_t c = 0; c < e; ++c) result[c] = static_cast<float>(sum[c]);
        const std::int64_t to =
            item * out.info.stride[0] + i * out.info.stride[1] + head * out.info.stride[2];
        store_row(out.info.dtype, result, e, 1, element(out, to));
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceAttention = kernel_table<Attention>();

}  // namespace heddle::cpu
