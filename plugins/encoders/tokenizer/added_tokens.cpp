#include "added_tokens.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "regex_dialect.h"
#include "text_error.h"
#include "unicode.h"
#include "utf8.h"

namespace heddle::text {
namespace {

constexpr std::size_t kLongestToken = 4096;  // bytes; time is text times this
constexpr std::int32_t kLargestId = std::numeric_limits<std::int32_t>::max() - 1;

std::size_t last_character(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && is_continuation(text[at])) --at;
  return at;
}

// Where the white space that ends at `end` starts, as far as that is after `limit`.
std::size_t space_begin(std::string_view text, std::size_t end, std::size_t limit) {
  while (end > limit) {
    const std::size_t at = last_character(text, end);
    if (!is_white_space(decode_at(text, at).value)) break;
    end = at;
  }
  return end;
}

// Where white space ends. One run of it may be asked about at each of its characters.
class SpaceEnd {
 public:
  explicit SpaceEnd(std::string_view text) : text_(text) {}

  std::size_t after(std::size_t begin) {
    if (begin >= begin_ && begin < end_) return end_;
    begin_ = end_ = begin;
    while (end_ < text_.size()) {
      const CodePoint next = decode_at(text_, end_);
      if (!is_white_space(next.value)) break;
      end_ += next.size;
    }
    return end_;
  }

 private:
  const std::string_view text_;
  std::size_t begin_ = 0, end_ = 0;  // of the run that was asked about last
};

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Vocabulary& model,
                         const Normalizer& normalizer, const std::string& where)
    : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::unordered_map<std::int32_t, std::size_t>
      last_of_id;  // the flags of an id are its last token's
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    token_ids_.push_back(add(tokens_[i], model, where));
    last_of_id[token_ids_[i]] = i;
  }

  // Special tokens come first, and of equal patterns the first counts; the trie keeps the last one
  // it is given.
  std::vector<std::size_t> order;
  for (const bool special : {false, true}) {
    for (std::size_t i = tokens_.size(); i-- > 0;) {
      if (tokens_[i].special == special) order.push_back(i);
    }
  }
  Work work;
  std::vector<std::string> patterns(tokens_.size());
  std::vector<PieceTrie::Entry> raw, normalized;
  for (const std::size_t i : order) {
    const AddedToken& token = tokens_[i];
    patterns[i] = token.normalized ? normalizer.apply(token.content, work) : token.content;
    const auto index = static_cast<std::int32_t>(last_of_id[token_ids_[i]]);
    (token.normalized ? normalized : raw).push_back({patterns[i], index});
    if (token.single_word && word_.empty()) {
      word_.push_back(Regex::compile(word_class(), "single_word"));
    }
  }
  raw_ = PieceTrie(raw);
  normalized_ = PieceTrie(normalized);
}

std::int32_t AddedTokens::add(const AddedToken& token, const Vocabulary& model,
                              const std::string& where) {
  auto id = ids_.find(token.content);
  if (!id) id = model.find(token.content);
  const auto model_size = static_cast<std::int32_t>(model.size());
  if (!id) id = std::max(model_size, max_id_ + 1);
  if (*id > kLargestId || token.content.size() > kLongestToken) {
    throw TextError(where + ": added_tokens: the token '" + token.content.substr(0, 40) + "' of " +
                    std::to_string(token.content.size()) + " bytes would get the id " +
                    std::to_string(*id) + "; at most " + std::to_string(kLongestToken) +
                    " bytes and the id " + std::to_string(kLargestId) +
                    " are accepted. Remove the token.");
  }
  ids_.add(token.content, *id);
  max_id_ = std::max(max_id_, *id);
  return *id;
}

bool AddedTokens::stands_alone(std::string_view text, Span match) const {
  const auto is_word = [&](std::size_t at) {
    return word_.front().matches(text.substr(at, decode_at(text, at).size)).next().has_value();
  };
  if (match.begin > 0 && is_word(last_character(text, match.begin))) return false;
  return match.end == text.size() || !is_word(match.end);
}

void AddedTokens::split(std::string_view text, const PieceTrie& trie, Work& work,
                        Sink<const Segment&> out) const {
  std::size_t done = 0;  // everything before is in a segment
  SpaceEnd space_end(text);
  const auto add_text = [&](std::size_t end) {
    if (end > done) out({text.substr(done, end - done), done, std::nullopt});
  };
  for (std::size_t at = 0; at < text.size();) {
    work.did(1);
    const PieceTrie::Match match = trie.longest_prefix(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    Span span{at, at + match.length};
    at = span.end;
    const auto index = static_cast<std::size_t>(match.value);
    const AddedToken& token = tokens_[index];
    if (token.single_word && !stands_alone(text, span)) continue;
    if (token.lstrip) span.begin = std::max(space_begin(text, span.begin, done), done);
    if (token.rstrip) span.end = space_end.after(span.end);
    add_text(span.begin);
    if (span.begin < span.end) {  // else the token before took it as its white space
      const std::string_view found = text.substr(span.begin, span.end - span.begin);
      out({found, span.begin, token_ids_[index]});
    }
    done = span.end;  // which may step back, as in the package: the text after it is free again
  }
  add_text(text.size());
}

}  // namespace heddle::text
