#include "tokenizer.h"

#include <algorithm>
#include <string>

#include "utf8.h"

namespace heddle::text {

void Tokenizer::encode_text(TextPiece text, Work& work, Sink<std::int32_t> out) const {
  const std::string normalized = parts_->normalizer.apply(text.text, work);
  const auto encode_piece = [&](TextPiece piece) {
    std::visit([&](const auto& model) { model.encode(piece.text, work, out); }, parts_->model);
  };
  const auto encode_segment = [&](const AddedTokens::Segment& segment) {
    if (segment.id) return out(*segment.id);
    const bool is_first = text.is_first && segment.begin == 0;
    parts_->pre_tokenizer.split({segment.text, is_first}, work, encode_piece);
  };
  parts_->added.split_normalized(normalized, work, encode_segment);
}

void Tokenizer::encode(std::string_view utf8, Work& work, Sink<std::int32_t> out) const {
  std::string repaired;
  work.did(utf8.size());
  if (!is_valid_utf8(utf8)) utf8 = repaired = valid_utf8(utf8);
  parts_->added.split_raw(utf8, work, [&](const AddedTokens::Segment& segment) {
    if (segment.id) return out(*segment.id);
    encode_text({segment.text, segment.begin == 0}, work, out);
  });
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8) const {
  std::vector<std::int32_t> ids;
  Work work;
  encode(utf8, work, [&](std::int32_t id) { ids.push_back(id); });
  return ids;
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
