#include "tokenizer.h"

#include <algorithm>
#include <string>

#include "utf8.h"

namespace heddle::text {

void Tokenizer::encode_text(TextPiece text, std::vector<std::int32_t>& out) const {
  const std::string normalized = parts_->normalizer.apply(text.text);
  for (const auto& segment : parts_->added.split_normalized(normalized)) {
    if (segment.id) {
      out.push_back(*segment.id);
      continue;
    }
    const bool is_first = text.is_first && segment.begin == 0;
    for (const TextPiece& piece :
         parts_->pre_tokenizer.split({std::string(segment.text), is_first})) {
      std::visit([&](const auto& model) { model.encode(piece.text, out); }, parts_->model);
    }
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8) const {
  std::vector<std::int32_t> out;
  const std::string text = valid_utf8(utf8);
  for (const auto& segment : parts_->added.split_raw(text)) {
    if (segment.id) {
      out.push_back(*segment.id);
    } else {
      encode_text({std::string(segment.text), segment.begin == 0}, out);
    }
  }
  return out;
}

const Vocabulary& Tokenizer::vocabulary() const {
  return std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); },
                    parts_->model);
}

std::optional<std::int32_t> Tokenizer::find(std::string_view piece) const {
  const auto id = parts_->added.find(piece);
  return id ? id : vocabulary().find(piece);
}

std::size_t Tokenizer::id_count() const {
  std::int32_t largest = std::max(vocabulary().max_id(), parts_->added.max_id());
  for (const std::int32_t id : parts_->prefix) largest = std::max(largest, id);
  for (const std::int32_t id : parts_->suffix) largest = std::max(largest, id);
  return static_cast<std::size_t>(largest) + 1;
}

}  // namespace heddle::text
