// The windows of a prompt, as an encoder is called with them. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace heddle::encoders {

class PromptEmbeddings;

struct Window {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;  // of the ids; empty: all are 1

  void push(std::int32_t id, double weight) {
    const float narrow = float(weight);
    if (narrow != 1.0f && weights.empty()) {
      weights.reserve(ids.capacity());
      weights.assign(ids.size(), 1.0f);
    }
    if (narrow != 1.0f || !weights.empty()) weights.push_back(narrow);
    ids.push_back(id);
  }
  // For tensors.
  float* write_weights(float* to) const {
    return weights.empty() ? std::fill_n(to, ids.size(), 1.0f)
                           : std::copy(weights.begin(), weights.end(), to);
  }
};

// Where a picture stands among the tokens of a row: `begin`, and as many as it has, row after row.
struct PictureTokens {
  std::size_t number = 0;  // which of the prompt's
  std::int64_t begin = 0, rows = 0, columns = 0;

  std::int64_t end() const { return begin + rows * columns; }
};

// Rows of one length.
struct Windows {
  std::vector<Window> rows;   // the prompt's
  Window empty;               // an empty prompt's; only when the prompt is weighted
  std::int64_t dropped = 0;   // tokens of each row whose states are left out of the result
  std::uint32_t cut_at = 0;   // tokens; not 0: the prompt was longer, and its rest is left out
  std::int64_t unpadded = 0;  // tokens before the padding, for encoders that ask for it
  // Not 0: padding is masked, and so left out of `rows` and `empty`, which may differ in length;
  // zeros complete the states to so many tokens.
  std::int64_t completed = 0;
  std::vector<PictureTokens> pictures = {};  // in the only row, in order
  // A picture of given states (shown_states.h), and the stretches that are in the result then.
  std::optional<PictureTokens> shown = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> parts = {};
  bool drops_pictures = false;  // the states of pictures are left out of the result, too
  bool tells_pictures = false;  // the result says where they stand
  // Those that the prompt names, whose vectors some ids of `rows` stand for; nullptr: it names
  // none.
  std::shared_ptr<const PromptEmbeddings> embeddings = {};

  bool weighted() const { return !empty.ids.empty(); }
  // Whether the empty row is asked by itself.
  bool empty_apart() const { return weighted() && completed > 0; }
  std::int64_t count() const { return std::int64_t(rows.size()); }
  std::int64_t length() const { return std::int64_t(rows.front().ids.size()); }
  // The stretches of each row, [begin, end), whose states are in the result.
  std::vector<std::pair<std::int64_t, std::int64_t>> kept_parts() const {
    if (shown) return parts;
    std::vector<std::pair<std::int64_t, std::int64_t>> made;
    std::int64_t begin = dropped;
    for (const PictureTokens& at : pictures) {
      if (!drops_pictures) break;
      if (at.begin > begin) made.emplace_back(begin, at.begin);
      begin = std::max(begin, at.end());
    }
    if (length() > begin) made.emplace_back(begin, length());
    return made;
  }
  std::int64_t kept() const {
    std::int64_t count = 0;
    for (const auto& [begin, end] : kept_parts()) count += end - begin;
    return count;
  }
  // Tokens of each row in the result.
  std::int64_t told() const { return completed > 0 ? completed : kept(); }
  // Where in the result each picture that was left out stood: the tokens before it.
  std::vector<std::int64_t> picture_slots() const {
    std::vector<std::int64_t> slots(pictures.size(), 0);
    for (const auto& [begin, end] : kept_parts())
      for (std::size_t i = 0; i < pictures.size(); ++i)
        slots[i] += std::clamp<std::int64_t>(pictures[i].begin - begin, 0, end - begin);
    return slots;
  }
};

// Most rows that an encoder is called with at a time, so that what a call takes does not grow with
// the prompt. Twelve hundred tokens of a prompt: whoever writes by hand has one call.
inline constexpr std::int64_t kMostRows = 16;

// A call of the encoder: these of the rows, and the empty one behind them.
struct RowBatch {
  std::int64_t begin = 0, end = 0;
  bool with_empty = false;

  std::int64_t rows() const { return end - begin + (with_empty ? 1 : 0); }
};

// All rows, in order; the empty one is in the first batch, unless it is asked by itself.
// `only_first`: the others are not wanted.
inline std::vector<RowBatch> batches_of(const Windows& windows, bool only_first) {
  std::vector<RowBatch> batches;
  for (std::int64_t begin = 0; begin < windows.count(); begin = batches.back().end) {
    const bool with_empty = begin == 0 && windows.weighted() && !windows.empty_apart();
    const std::int64_t room = kMostRows - (with_empty ? 1 : 0);
    batches.push_back({begin, std::min(begin + room, windows.count()), with_empty});
    if (only_first) break;
  }
  return batches;
}

}  // namespace heddle::encoders
