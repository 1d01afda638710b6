#include "token_windows.h"

#include <string>
#include <vector>

#include "text_error.h"

namespace heddle::text {
namespace {

// Fills windows, one after another. Of a segment it remembers the first tokens only, as many as
// tell whether it is a long one.
class Packer {
 public:
  Packer(const WindowRules& rules, Sink<const WindowToken&> out) : rules_(rules), out_(out) {
    if (rules.length <= frame()) {
      throw TextError("the tokenizer's windows of " + std::to_string(rules.length) +
                      " tokens have no room for text beside " + std::to_string(frame()) +
                      " for start and end. Check model_max_length of tokenizer_config.json.");
    }
    open();
  }

  void begin_segment(double weight) {
    weight_ = weight;
    is_long_ = rules_.long_segment == 0;
  }

  void add(std::int32_t id) {
    if (is_long_) return append(id);
    short_.push_back(id);
    if (short_.size() < rules_.long_segment) return;
    is_long_ = true;
    append_short();
  }

  void end_segment() {
    // Moves on as a whole, unless no window has room for it.
    if (short_.size() > free_tokens() && !is_empty()) begin_next();
    append_short();
  }

  void finish() {
    close();
    pad(rules_.least_length);
  }

 private:
  std::size_t frame() const { return (rules_.start ? 1U : 0U) + (rules_.end ? 1U : 0U); }
  bool is_empty() const { return size_ == (rules_.start ? 1U : 0U); }

  std::size_t free_tokens() const {
    const std::size_t used = size_ + (rules_.end ? 1U : 0U);
    return rules_.length > used ? rules_.length - used : 0;
  }

  void open() {
    size_ = 0;
    if (rules_.start) write(*rules_.start, 1.0);
  }

  void close() {
    if (rules_.end) write(*rules_.end, 1.0);
    if (rules_.pad_to_length) pad(rules_.length);
  }

  void begin_next() {
    close();
    ++window_;
    open();
  }

  void append(std::int32_t id) {
    if (free_tokens() == 0) begin_next();
    write(id, weight_);
  }

  void append_short() {
    for (const std::int32_t id : short_) append(id);
    short_.clear();
  }

  void pad(std::size_t length) {
    while (size_ < length) write(rules_.padding, 1.0);
  }

  void write(std::int32_t id, double weight) {
    out_({window_, id, weight});
    ++size_;
  }

  const WindowRules& rules_;
  const Sink<const WindowToken&> out_;
  std::size_t window_ = 0, size_ = 0;  // the open window, and its tokens
  double weight_ = 1;                  // of the segment
  bool is_long_ = false;
  std::vector<std::int32_t> short_;  // of a segment that is not long yet
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

void token_windows(const Tokenizer& tokenizer, std::string_view prompt, const WindowRules& rules,
                   WeightSyntax syntax, Work& work, Sink<const WindowToken&> out,
                   const FindEmbedding& find) {
  const auto write = [&](const WindowToken& token) {
    work.did(1);
    out(token);
  };
  Packer packer(rules, write);
  const auto pack = [&](const WeightedText& segment) {
    packer.begin_segment(segment.weight);
    for (std::uint32_t i = 0; i < segment.embedding.count; ++i)
      packer.add(segment.embedding.first + std::int32_t(i));
    if (segment.embedding.count == 0)
      tokenizer.encode(segment.text, work, [&](std::int32_t id) { packer.add(id); });
    packer.end_segment();
  };
  weighted_segments(prompt, syntax, work, pack, find);
  packer.finish();
}

}  // namespace heddle::text
