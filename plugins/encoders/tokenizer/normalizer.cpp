#include "normalizer.h"

#include <optional>

#include "text_error.h"
#include "utf8.h"

namespace heddle::text {
namespace {

// Clusters of at least this many bytes are not looked up as a whole.
constexpr std::size_t kLongCluster = 6;

// A step may make a text so much longer and no more, or a lying file could ask for any amount of
// memory. The largest legitimate factor is 11 (U+FDFA under NFKC).
constexpr std::size_t kGrowth = 64, kGrowthFree = 4096;  // times, and bytes on top

struct Limit {
  std::size_t from;          // bytes of the text at first
  const std::string& where;  // the file
  Work& work;

  void check(std::size_t to) const {
    if (to <= kGrowth * from + kGrowthFree) return;
    throw TextError(where + ": normalizer: a text of " + std::to_string(from) +
                    " bytes grows to more than " + std::to_string(kGrowth * from + kGrowthFree) +
                    " bytes. Check the steps Replace, Prepend and Precompiled of the file.");
  }
};

std::string run(NormalForm form, std::string_view text, const Limit&) {
  return normal_form(text, form);
}

std::string run(const LowerCaseStep&, std::string_view text, const Limit&) {
  return lower_case(text);
}

std::string run(const StripStep& strip, std::string_view text, const Limit&) {
  std::size_t begin = 0, end = text.size();
  while (strip.left && begin < end) {
    const CodePoint next = decode_at(text, begin);
    if (!is_white_space(next.value)) break;
    begin += next.size;
  }
  while (strip.right && end > begin) {
    std::size_t last = end - 1;
    while (last > begin && is_continuation(text[last])) --last;
    if (!is_white_space(decode_at(text, last).value)) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string run(const ReplaceStep& replace, std::string_view text, const Limit& limit) {
  if (text.empty()) return {};
  std::string out;
  std::size_t done = 0;
  Regex::Matches matches = replace.pattern.matches(text);
  while (const std::optional<Span> match = matches.next()) {
    out += text.substr(done, match->begin - done);
    out += replace.content;
    limit.check(out.size());
    limit.work.did(match->end - done);
    done = match->end;
  }
  out += text.substr(done);
  return out;
}

std::string run(const PrependStep& prepend, std::string_view text, const Limit&) {
  return text.empty() ? std::string() : prepend.content + std::string(text);
}

std::string run(const CharsmapStep& step, std::string_view text, const Limit& limit) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    limit.check(out.size());
    const std::size_t end = grapheme_end(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    at = end;
    if (cluster.size() < kLongCluster) {
      if (const auto rule = step.map->shortest_prefix(cluster)) {
        out += rule->replacement;  // the rest of the cluster goes, too: that is how the package
                                   // does it
        continue;
      }
    }
    for (std::size_t i = 0; i < cluster.size();) {
      const std::string_view character = cluster.substr(i, decode_at(cluster, i).size);
      const auto rule = step.map->shortest_prefix(character);
      out += rule ? rule->replacement : character;
      i += character.size();
    }
  }
  return out;
}

std::string run(const SpieceStep& step, std::string_view text, const Limit&) {
  return spiece_normalized(*step.rules, text);
}

}  // namespace

std::string Normalizer::apply(std::string_view text, Work& work) const {
  const Limit limit{text.size(), where_, work};
  std::string current(text);
  for (const NormalizerStep& step : steps_) {
    work.did(current.size());
    current = std::visit([&](const auto& one) { return run(one, current, limit); }, step);
    limit.check(current.size());
  }
  return current;
}

}  // namespace heddle::text
