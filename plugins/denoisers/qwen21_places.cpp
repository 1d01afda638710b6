#include "qwen21_places.h"

namespace heddle::denoisers {

std::vector<Qwen21Span> qwen21_prefix(Context& ctx, std::int64_t text) {
  std::vector<Qwen21Span> spans;
  std::int64_t at = 0, told = 0, shown = 0;
  const auto add_text = [&](std::int64_t end) {
    if (end > told) spans.push_back({{at, at + end - told}, told});
    at += end - told;
    told = end;
  };
  for (int i = 0; i < kMostReferences && ctx.has(qwen21_ports::references[i]); ++i) {
    const Tensor picture = ctx[qwen21_ports::references[i]];
    const std::int64_t slot =
        ctx.has(qwen21_ports::slots[i]) ? ctx[qwen21_ports::slots[i]].size(0) - 1 : text;
    if (slot < told || slot > text)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "picture " + std::to_string(i + 1) + " is to stand before token " +
                      std::to_string(slot) + " of a text of " + std::to_string(text) +
                      ", the one before it at " + std::to_string(told) +
                      ". Give the pictures in the order in which the text has them.");
    add_text(slot);
    const std::int64_t height = picture.size(2), width = picture.size(3), count = height * width;
    spans.push_back({{at, at + count}, shown, height, width});
    at += count;
    shown += count;
  }
  add_text(text);
  return spans;
}

}  // namespace heddle::denoisers
