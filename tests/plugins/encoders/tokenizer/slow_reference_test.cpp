// Long and strange inputs beside the same rules written down in the simplest way, which takes
// quadratic time and any amount of memory.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <map>
#include <set>

#include "collected.h"
#include "long_texts.h"
#include "tokenizer_folder.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(slow_reference)

namespace {

using Ids = std::vector<std::int32_t>;

class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : state_(seed) {}
  std::size_t below(std::size_t end) {
    state_ = state_ * 1664525U + 1013904223U;
    return (state_ >> 8) % end;
  }

 private:
  std::uint32_t state_;
};

std::string word_of(Numbers& numbers, std::size_t length, std::size_t letters) {
  std::string word;
  while (word.size() < length) word.push_back(static_cast<char>('a' + numbers.below(letters)));
  return word;
}

std::string listed(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += (text.empty() ? "" : ",") + entry;
  return text;
}

// Random merges over a few letters, several of which make the same piece.
struct Bpe {
  explicit Bpe(std::uint32_t seed) {
    Numbers numbers(seed);
    for (const char* letter : {"a", "b", "c"}) add(letter);
    while (merges.size() < 60) {
      const std::string left = pieces[numbers.below(pieces.size())],
                        right = pieces[numbers.below(pieces.size())];
      if (left.size() + right.size() > 12 || ranks.contains({left, right})) continue;
      ranks[{left, right}] = merges.size();
      merges.push_back("[\"" + left + "\",\"" + right + "\"]");
      add(left + right);
    }
  }

  void add(const std::string& piece) {
    if (ids.emplace(piece, std::int32_t(pieces.size())).second) pieces.push_back(piece);
  }

  Tokenizer tokenizer() const {
    std::vector<std::string> vocabulary;
    for (const auto& [piece, id] : ids)
      vocabulary.push_back("\"" + piece + "\":" + std::to_string(id));
    return load_tokenizer_json(R"({"model":{"type":"BPE","merges":[)" + listed(merges) +
                               R"(],"vocab":{)" + listed(vocabulary) + "}}}");
  }

  // The pair of the lowest rank, of equal ones the leftmost, until there is none.
  Ids encode(const std::string& word) const {
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    while (true) {
      std::size_t best = parts.size(), rank = std::numeric_limits<std::size_t>::max();
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find({parts[i], parts[i + 1]});
        if (found == ranks.end() || found->second >= rank) continue;
        best = i;
        rank = found->second;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + std::ptrdiff_t(best) + 1);
    }
    Ids out;
    for (const std::string& part : parts) out.push_back(ids.at(part));
    return out;
  }

  std::vector<std::string> pieces, merges;
  std::map<std::string, std::int32_t> ids;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
};

// The best sum by all pieces that end somewhere, kept for the whole text.
Ids unigram_ids(const std::vector<std::pair<std::string, double>>& pieces, const std::string& text,
                double unknown_score) {
  struct Best {
    double score = 0;
    std::size_t from = std::string::npos;
    std::int32_t id = 0;
  };
  std::vector<Best> best(text.size() + 1);
  const auto offer = [&](std::size_t from, std::size_t to, std::int32_t id, double score) {
    Best& there = best[to];
    if (there.from == std::string::npos || score > there.score) there = {score, from, id};
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    bool has_letter = false;
    for (std::size_t size = 1; at + size <= text.size() && size <= 12; ++size)
      for (std::size_t id = 1; id < pieces.size(); ++id)
        if (text.compare(at, size, pieces[id].first) == 0) {
          offer(at, at + size, std::int32_t(id), pieces[id].second + best[at].score);
          has_letter = has_letter || size == 1;
        }
    if (!has_letter) offer(at, at + 1, 0, unknown_score + best[at].score);
  }
  Ids ids;
  for (std::size_t end = text.size(); end > 0; end = best[end].from) ids.push_back(best[end].id);
  std::reverse(ids.begin(), ids.end());
  // A run of unknown letters is one token.
  ids.erase(std::unique(ids.begin(), ids.end(), [](int a, int b) { return a == 0 && b == 0; }),
            ids.end());
  return ids;
}

// ComfyUI's groups, one list of pieces inside another.
std::vector<std::string> outer_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  std::string open;
  int level = 0;
  const auto cut = [&] {
    if (!open.empty()) pieces.push_back(open);
    open.clear();
  };
  for (const char c : text) {
    if (c == '(' && level++ == 0) cut();
    open.push_back(c);
    if (c == ')' && --level == 0) cut();
  }
  cut();
  return pieces;
}

void add_segments(const std::string& text, double weight, std::vector<Segment>& out) {
  for (const std::string& piece : outer_pieces(text)) {
    const bool is_group = piece.size() > 1 && piece.front() == '(' && piece.back() == ')';
    if (is_group)
      add_segments(piece.substr(1, piece.size() - 2), weight * 1.1, out);
    else
      out.push_back({piece, weight});
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(long_words_merge_as_pair_after_pair) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    const Bpe bpe(seed);
    const Tokenizer tokenizer = bpe.tokenizer();
    Numbers numbers(100 + seed);
    for (const std::size_t length : {1U, 2U, 3U, 7U, 50U, 400U}) {
      for (const std::size_t letters : {1U, 2U, 3U}) {
        const std::string word = word_of(numbers, length, letters);
        BOOST_TEST(tokenizer.encode(word) == bpe.encode(word), boost::test_tools::per_element());
      }
    }
  }
  // Long enough for candidates to be counted before, and stale ones to be dropped.
  const Bpe bpe(3);
  Numbers numbers(1);
  const std::string word = word_of(numbers, 5000, 3);
  BOOST_TEST((bpe.tokenizer().encode(word) == bpe.encode(word)));
}

BOOST_AUTO_TEST_CASE(long_texts_are_cut_as_with_all_scores_kept) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    Numbers numbers(seed);
    std::vector<std::pair<std::string, double>> pieces{{"<unk>", 0.0}};
    std::set<std::string> seen;
    while (pieces.size() < 40) {
      const std::string piece = word_of(numbers, 1 + numbers.below(8), 3);
      if (seed % 2 == 0 && piece.find('c') != std::string::npos && piece.size() == 1) continue;
      if (seen.insert(piece).second) pieces.emplace_back(piece, -0.125 * double(numbers.below(80)));
    }
    std::vector<std::string> entries;
    double least = 0;
    for (const auto& [piece, score] : pieces) {
      entries.push_back("[\"" + piece + "\"," + std::to_string(score) + "]");
      least = std::min(least, score);
    }
    const Tokenizer tokenizer = load_tokenizer_json(
        R"({"model":{"type":"Unigram","unk_id":0,"vocab":[)" + listed(entries) + "]}}");
    for (const std::size_t length : {1U, 2U, 5U, 30U, 3000U}) {
      const std::string text = word_of(numbers, length, 4);  // "d" is in no piece
      BOOST_TEST(tokenizer.encode(text) == unigram_ids(pieces, text, least - 10.0),
                 boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(parentheses_are_grouped_as_by_lists_in_lists) {
  Numbers numbers(5);
  for (int i = 0; i < 2000; ++i) {
    std::string prompt;
    for (std::size_t left = numbers.below(40); left > 0; --left)
      prompt += "(()ab)"[numbers.below(6)];
    std::vector<Segment> expected;
    add_segments(prompt, 1.0, expected);
    BOOST_TEST((segments_of(prompt) == expected), prompt);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::text
