#include "token_windows.h"

#include <algorithm>
#include <span>

#include "text_error.h"

namespace heddle::text {
namespace {

// Collects windows; the last one is open.
class Packer {
 public:
  explicit Packer(const WindowRules& rules) : rules_(rules) { open(); }

  void add(std::span<const std::int32_t> ids, double weight) {
    const bool is_long = ids.size() >= rules_.long_segment;
    while (!ids.empty()) {
      const std::size_t room = free_tokens();
      if (ids.size() <= room) {
        append(ids, weight);
        return;
      }
      if (is_long || is_empty()) {  // an empty window has no more room than the next one
        append(ids.first(room), weight);
        ids = ids.subspan(room);
      }
      close();
      open();
    }
  }

  std::vector<TokenWindow> finish() {
    close();
    pad(windows_.back(), rules_.least_length);
    return std::move(windows_);
  }

 private:
  std::size_t frame() const { return (rules_.start ? 1U : 0U) + (rules_.end ? 1U : 0U); }
  bool is_empty() const { return windows_.back().size() == (rules_.start ? 1U : 0U); }

  std::size_t free_tokens() const {
    const std::size_t used = windows_.back().size() + (rules_.end ? 1U : 0U);
    return rules_.length > used ? rules_.length - used : 0;
  }

  void open() {
    windows_.emplace_back();
    if (rules_.start) windows_.back().push_back({*rules_.start, 1.0});
  }

  void close() {
    if (rules_.end) windows_.back().push_back({*rules_.end, 1.0});
    if (rules_.pad_to_length) pad(windows_.back(), rules_.length);
  }

  void append(std::span<const std::int32_t> ids, double weight) {
    for (const std::int32_t id : ids) windows_.back().push_back({id, weight});
  }

  void pad(TokenWindow& window, std::size_t length) const {
    if (window.size() < length) window.resize(length, {rules_.padding, 1.0});
  }

  const WindowRules& rules_;
  std::vector<TokenWindow> windows_;
};

}  // namespace

WindowRules clip_window_rules(const Tokenizer& tokenizer, std::int32_t padding,
                              std::size_t length) {
  if (tokenizer.prefix().size() != 1 || tokenizer.suffix().size() != 1) {
    throw TextError("CLIP's tokenizer: has " + std::to_string(tokenizer.prefix().size()) +
                    " start and " + std::to_string(tokenizer.suffix().size()) +
                    " end tokens, one of each is needed. Check the post_processor of its "
                    "tokenizer.json.");
  }
  if (length < 3) {
    throw TextError("CLIP's tokenizer: windows of " + std::to_string(length) +
                    " tokens have no room for text, at least 3 are needed. Check "
                    "model_max_length of tokenizer_config.json.");
  }
  return {.start = tokenizer.prefix()[0],
          .end = tokenizer.suffix()[0],
          .padding = padding,
          .length = length,
          .pad_to_length = true};
}

WindowRules t5_window_rules(const Tokenizer& tokenizer, std::int32_t padding,
                            std::size_t least_length) {
  WindowRules rules{.padding = padding, .least_length = least_length};
  if (!tokenizer.suffix().empty()) rules.end = tokenizer.suffix().back();
  return rules;
}

std::vector<TokenWindow> token_windows(const Tokenizer& tokenizer, std::string_view prompt,
                                       const WindowRules& rules, WeightSyntax syntax) {
  Packer packer(rules);
  for (const WeightedText& segment : weighted_segments(prompt, syntax)) {
    packer.add(tokenizer.encode(segment.text), segment.weight);
  }
  return packer.finish();
}

TokenWindow empty_window(const WindowRules& rules, std::size_t length) {
  TokenWindow window;
  if (rules.start) window.push_back({*rules.start, 1.0});
  if (rules.end) window.push_back({*rules.end, 1.0});
  if (window.size() < length) window.resize(length, {rules.padding, 1.0});
  return window;
}

}  // namespace heddle::text
