#include "vocab_merges.h"

#include <utility>
#include <vector>

#include "json_at.h"
#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

Vocabulary read_vocabulary(const JsonAt& json) {
  Vocabulary vocabulary;
  vocabulary.reserve(json.object().size());
  for (std::size_t i = 0; i < json.size(); ++i) vocabulary.add(json.key(i), json.item(i).id());
  return vocabulary;
}

// A first line that starts with "#version", then two tokens and a space a line; empty lines at the
// end.
Merges read_merges(std::string_view text, const std::string& name) {
  Merges merges;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.ends_with('\r')) pair.remove_suffix(1);
    if (pair.empty() || (line == 1 && pair.starts_with("#version"))) continue;
    const std::size_t space = pair.find(' ');
    const bool is_pair = space != std::string_view::npos && space > 0 && space + 1 < pair.size() &&
                         pair.find(' ', space + 1) == std::string_view::npos;
    if (!is_pair) {
      throw TextError(name + ":" + std::to_string(line) +
                      ": expects two tokens with one space between, got '" +
                      valid_utf8(pair.substr(0, 80)) + "'. Download the file again.");
    }
    merges.emplace_back(pair.substr(0, space), pair.substr(space + 1));
  }
  return merges;
}

std::vector<PreTokenizerStep> clip_steps() {
  const Regex words = Regex::compile(
      R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
      "CLIP");
  return {SplitStep{words, SplitBehavior::kRemoved, SplitMatches::kBetween},
          ByteLevelStep{.add_prefix_space = false, .pattern = {byte_level_pattern()}}};
}

}  // namespace

Tokenizer read_clip_files(JsonView vocabulary, const std::string& vocabulary_name,
                          std::string_view merges, const std::string& merges_name,
                          const ClipTokens& tokens) {
  ByteLevelBpe model({.vocabulary = read_vocabulary(JsonAt(vocabulary, vocabulary_name)),
                      .merges = read_merges(merges, merges_name),
                      .merged_ids = {},
                      .continuing_prefix = {},
                      .end_of_word_suffix = "</w>",
                      .unknown = tokens.unknown},
                     merges_name);
  std::vector<AddedToken> added;
  for (const std::string& token : {tokens.begin, tokens.end, tokens.unknown, tokens.padding}) {
    if (!model.vocabulary().find(token)) {
      throw TextError(vocabulary_name + ": has no token '" + token +
                      "', which tokenizer_config.json (or CLIP by default) names as a special "
                      "one. Use the two files of one tokenizer.");
    }
    added.push_back({.content = token, .special = true});
  }
  const std::int32_t begin = *model.vocabulary().find(tokens.begin);
  const std::int32_t end = *model.vocabulary().find(tokens.end);
  Normalizer normalizer(
      {NormalForm::kNfc, ReplaceStep{Regex::compile("\\s+", "CLIP"), " "}, LowerCaseStep{}},
      vocabulary_name);
  AddedTokens added_tokens(std::move(added), model.vocabulary(), normalizer, vocabulary_name);
  return Tokenizer({std::move(added_tokens),
                    std::move(normalizer),
                    PreTokenizer(clip_steps()),
                    std::move(model),
                    {begin},
                    {end}});
}

}  // namespace heddle::text
