#include "tokenizer_json.h"

#include <utility>

#include "json_at.h"
#include "json_parts.h"

namespace heddle::text {
namespace {

std::vector<AddedToken> read_added_tokens(const JsonAt& json) {
  std::vector<AddedToken> tokens;
  for (std::size_t i = 0; i < json.array().size(); ++i) {
    const JsonAt token = json.item(i);
    const bool special = token.boolean_or("special", false);
    tokens.push_back({.content = std::string(token.get("content").string()),
                      .single_word = token.boolean_or("single_word", false),
                      .lstrip = token.boolean_or("lstrip", false),
                      .rstrip = token.boolean_or("rstrip", false),
                      .normalized = token.boolean_or("normalized", !special),
                      .special = special});
  }
  return tokens;
}

const Vocabulary& vocabulary_of(const Tokenizer::Model& model) {
  return std::visit([](const auto& one) -> const Vocabulary& { return one.vocabulary(); }, model);
}

}  // namespace

Tokenizer read_tokenizer_json(JsonView root, const std::string& name, std::string_view packed) {
  const JsonAt json(root, name);
  json.object();
  Tokenizer::Model model = read_model(json.get("model"), name, packed);
  Normalizer normalizer;
  if (const auto part = json.find("normalizer"))
    normalizer = Normalizer(read_normalizer(*part), name);
  PreTokenizer pre_tokenizer;
  if (const auto part = json.find("pre_tokenizer")) {
    pre_tokenizer = PreTokenizer(read_pre_tokenizer(*part));
  }
  Affixes affixes;
  if (const auto part = json.find("post_processor")) affixes = read_post_processor(*part);
  std::vector<AddedToken> tokens;
  if (const auto part = json.find("added_tokens")) tokens = read_added_tokens(*part);
  AddedTokens added(std::move(tokens), vocabulary_of(model), normalizer, name);
  return Tokenizer({std::move(added), std::move(normalizer), std::move(pre_tokenizer),
                    std::move(model), std::move(affixes.prefix), std::move(affixes.suffix)});
}

}  // namespace heddle::text
