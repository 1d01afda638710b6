// attention/1: a tile is some queries of one head of one batch item. It goes through the keys in
// stretches and keeps, for each query, the largest score so far, the sum of the weights and the
// weighted sum of the values, rescaled whenever the largest score grows (Milakov and Gimelshein
// 2018, "Online normalizer calculation for softmax"). Everything is turned: 32 queries stand side
// by side, so that scores = keys x queries and result = values^T x scores are both products whose
// right operand is already a panel.
#include <cstring>
#include <limits>

#include "fast.h"
#include "gemm.h"
#include "kernels.h"
#include "op_check.h"

namespace heddle::cpu {

namespace {

// The packed keys and values of a stretch serve all panels of a tile; together they stay in a
// core's second cache.
constexpr std::int64_t kTilePanels = 12;   // at most: 384 queries
constexpr std::int64_t kKeyStretch = 240;  // keys at a time; a multiple of a block
constexpr float kUnseen = -std::numeric_limits<float>::infinity();

std::int64_t blocks(std::int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Sequence position s of one head, as f32.
struct Head {
  const heddle_view& view;
  const VectorKernels& vector;
  std::int64_t offset;

  Head(const heddle_view& view, const VectorKernels& vector, std::int64_t item, std::int64_t head)
      : view(view),
        vector(vector),
        offset(item * view.info.stride[0] + head * view.info.stride[2]) {}

  const float* row(std::int64_t s, Scratch& scratch) const {
    const std::byte* from = element(view, offset + s * view.info.stride[1]);
    if (view.info.dtype == HEDDLE_F32) return reinterpret_cast<const float*>(from);
    auto* values = scratch.take<float>(static_cast<std::size_t>(view.info.shape[3]));
    vector.widen(view.info.dtype, from, view.info.shape[3], values);
    return values;
  }
};

// Of 32 queries.
struct Panel {
  float* queries;  // d x 32
  float* sums;     // e x 32, rounded up to blocks
  float *largest, *total;
  std::int64_t first, count;
};

class Tile {
 public:
  Tile(const Call& call, std::int64_t item, std::int64_t head, Scratch& scratch)
      : call_(call),
        vector_(call.device().vector()),
        attrs_(call.attrs<heddle_attention_attrs>()),
        item_(item),
        head_(head),
        q_(call.in(0), vector_, item, head),
        k_(call.in(1), vector_, item, head),
        v_(call.in(2), vector_, item, head),
        queries_(call.in(0).info.shape[1]),
        keys_(call.in(1).info.shape[1]),
        d_(call.in(0).info.shape[3]),
        e_(call.in(2).info.shape[3]),
        scratch_(scratch) {}

  void run(std::int64_t first, std::int64_t most_panels) {
    Panel panels[kTilePanels];
    std::int64_t count = 0;
    for (; count < most_panels && first + count * kPanelColumns < queries_; ++count)
      panels[count] = begin(first + count * kPanelColumns);
    const std::int64_t last = std::min(queries_, first + count * kPanelColumns) - 1;
    const std::int64_t seen = attrs_.causal != 0
                                  ? std::clamp<std::int64_t>(last + keys_ - queries_ + 1, 0, keys_)
                                  : keys_;
    const std::int64_t stretch = std::min(kKeyStretch, seen);
    auto* keys = scratch_.take<float>(static_cast<std::size_t>(blocks(stretch) * kBlockRows * d_));
    auto* values =
        scratch_.take<float>(static_cast<std::size_t>(blocks(e_) * kBlockRows * stretch));
    auto* scores = scratch_.take<float>(
        static_cast<std::size_t>(blocks(stretch) * kBlockRows * kPanelColumns));
    for (std::int64_t key = 0; key < seen; key += kKeyStretch) {
      call_.check_wanted();
      const std::int64_t length = std::min(kKeyStretch, seen - key);
      pack_keys(key, length, keys);
      pack_values(key, length, values);
      for (std::int64_t p = 0; p < count; ++p) attend(panels[p], key, length, keys, values, scores);
    }
    for (std::int64_t p = 0; p < count; ++p) finish(panels[p]);
  }

 private:
  Panel begin(std::int64_t first) {
    const std::int64_t count = std::min(kPanelColumns, queries_ - first);
    Panel panel{.queries = scratch_.take<float>(static_cast<std::size_t>(d_ * kPanelColumns)),
                .sums = scratch_.take<float>(
                    static_cast<std::size_t>(blocks(e_) * kBlockRows * kPanelColumns)),
                .largest = scratch_.take<float>(kPanelColumns),
                .total = scratch_.take<float>(kPanelColumns),
                .first = first,
                .count = count};
    std::fill(panel.largest, panel.largest + kPanelColumns, kUnseen);
    std::fill(panel.total, panel.total + kPanelColumns, 0.0f);
    std::fill(panel.sums, panel.sums + blocks(e_) * kBlockRows * kPanelColumns, 0.0f);
    const Scratch::Frame frame(scratch_);
    const float* rows[kPanelColumns];
    for (std::int64_t i = 0; i < kPanelColumns; ++i)
      rows[i] = q_.row(first + std::min(i, count - 1), scratch_);
    vector_.pack_panel(rows, d_, panel.queries);
    return panel;
  }

  void pack_keys(std::int64_t key, std::int64_t length, float* packed) {
    for (std::int64_t b = 0; b < blocks(length); ++b) {
      const Scratch::Frame frame(scratch_);
      const float* rows[kBlockRows];
      for (std::int64_t r = 0; r < kBlockRows; ++r)
        rows[r] = k_.row(key + std::min(b * kBlockRows + r, length - 1), scratch_);
      vector_.pack(rows, d_, packed + b * kBlockRows * d_);
    }
  }

  // Values stand the right way already: 12 numbers of each key side by side.
  void pack_values(std::int64_t key, std::int64_t length, float* packed) {
    for (std::int64_t j = 0; j < length; ++j) {
      const Scratch::Frame frame(scratch_);
      const float* row = v_.row(key + j, scratch_);
      for (std::int64_t b = 0; b < blocks(e_); ++b) {
        float* to = packed + (b * length + j) * kBlockRows;
        const std::int64_t count = e_ - b * kBlockRows;
        if (count >= kBlockRows) {
          std::memcpy(to, row + b * kBlockRows, kBlockRows * sizeof(float));
        } else {
          std::fill(to, to + kBlockRows, 0.0f);
          std::copy(row + b * kBlockRows, row + e_, to);
        }
      }
    }
  }

  void attend(const Panel& panel, std::int64_t key, std::int64_t length, const float* keys,
              const float* values, float* scores) {
    for (std::int64_t b = 0; b < blocks(length); ++b)
      vector_.multiply(keys + b * kBlockRows * d_, panel.queries, d_,
                       scores + b * kBlockRows * kPanelColumns, kPanelColumns, false, keys);
    float factor = static_cast<float>(attrs_.scale);
    if (attrs_.cap > 0) {
      const std::int64_t count = length * kPanelColumns;
      vector_.scale(scores, factor / attrs_.cap, scores, count);
      vector_.activate(HEDDLE_ACT_TANH, scores, scores, count);
      vector_.scale(scores, attrs_.cap, scores, count);
      factor = 1;
    }
    if (const heddle_view* bias = call_.maybe(3)) {
      vector_.scale(scores, factor, scores, length * kPanelColumns);
      factor = 1;
      add_bias(*bias, panel, key, length, scores);
    }
    if (attrs_.causal != 0) hide_later_keys(panel, key, length, scores);
    float rescale[kPanelColumns];
    vector_.soften(scores, length, factor, panel.largest, panel.total, rescale);
    vector_.scale_columns(panel.sums, e_, rescale);
    for (std::int64_t b = 0; b < blocks(e_); ++b)
      vector_.multiply(values + b * kBlockRows * length, scores, length,
                       panel.sums + b * kBlockRows * kPanelColumns, kPanelColumns, true, values);
  }

  void add_bias(const heddle_view& bias, const Panel& panel, std::int64_t key, std::int64_t length,
                float* scores) {
    const heddle_tensor_info& info = bias.info;
    const std::int64_t offset = (info.shape[0] == 1 ? 0 : item_ * info.stride[0]) +
                                (info.shape[1] == 1 ? 0 : head_ * info.stride[1]);
    const Scratch::Frame frame(scratch_);
    auto* row = scratch_.take<float>(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < panel.count; ++i) {
      vector_.widen(info.dtype, element(bias, offset + (panel.first + i) * info.stride[2] + key),
                    length, row);
      for (std::int64_t j = 0; j < length; ++j) scores[j * kPanelColumns + i] += row[j];
    }
  }

  void hide_later_keys(const Panel& panel, std::int64_t key, std::int64_t length, float* scores) {
    for (std::int64_t i = 0; i < panel.count; ++i) {
      const std::int64_t seen = panel.first + i + keys_ - queries_ + 1;
      for (std::int64_t j = std::max<std::int64_t>(0, seen - key); j < length; ++j)
        scores[j * kPanelColumns + i] = kUnseen;
    }
  }

  void finish(const Panel& panel) {
    const heddle_view& out = call_.out();
    const Scratch::Frame frame(scratch_);
    // A query that sees no key gives zeros; a NaN stays one.
    float factor[kPanelColumns];
    for (std::int64_t i = 0; i < kPanelColumns; ++i)
      factor[i] = panel.total[i] == 0 ? 0 : 1 / panel.total[i];
    vector_.scale_columns(panel.sums, e_, factor);
    // Turned back, a block at a time.
    const std::int64_t width = blocks(e_) * kBlockRows;
    auto* turned = scratch_.take<float>(static_cast<std::size_t>(kBlockRows * kPanelColumns));
    auto* rows = scratch_.take<float>(static_cast<std::size_t>(kPanelColumns * width));
    for (std::int64_t b = 0; b < blocks(e_); ++b) {
      const float* sums[kBlockRows];
      for (std::int64_t c = 0; c < kBlockRows; ++c)
        sums[c] = panel.sums + (b * kBlockRows + c) * kPanelColumns;
      vector_.pack(sums, kPanelColumns, turned);
      for (std::int64_t i = 0; i < panel.count; ++i)
        std::memcpy(rows + i * width + b * kBlockRows, turned + i * kBlockRows,
                    kBlockRows * sizeof(float));
    }
    for (std::int64_t i = 0; i < panel.count; ++i) {
      const std::int64_t to = item_ * out.info.stride[0] + (panel.first + i) * out.info.stride[1] +
                              head_ * out.info.stride[2];
      vector_.narrow(out.info.dtype, rows + i * width, e_, element(out, to));
    }
  }

  const Call& call_;
  const VectorKernels& vector_;
  const heddle_attention_attrs attrs_;
  const std::int64_t item_, head_;
  const Head q_, k_, v_;
  const std::int64_t queries_, keys_, d_, e_;
  Scratch& scratch_;
};

struct FastAttention : Fast {
  static constexpr const char* op = HEDDLE_OP_ATTENTION;
  static void check(const heddle_op_call& call) { check_attention(call); }

  static void run(const Call& call) {
    const heddle_tensor_info& q = call.in(0).info;
    const std::int64_t heads = q.shape[2], panels = panel_count(q.shape[1]);
    const std::int64_t tiles = (panels + kTilePanels - 1) / kTilePanels;
    const std::int64_t tile_panels = tiles == 0 ? 0 : (panels + tiles - 1) / tiles;
    call.parallel_for(q.shape[0] * heads * tiles, [&](std::int64_t tile, Scratch& scratch) {
      Tile(call, tile / tiles / heads, tile / tiles % heads, scratch)
          .run(tile % tiles * tile_panels * kPanelColumns, tile_panels);
    });
  }
};

}  // namespace

constexpr heddle_kernel kFastAttention = kernel_table<FastAttention>();

}  // namespace heddle::cpu
