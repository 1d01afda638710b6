#include "test_strings.h"

#include "plugins/encoders/tokenizer/utf8.h"
#include "tokenizer_folder.h"

namespace heddle::text {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

  template <typename Items>
  const auto& pick(const Items& items) {
    return items[static_cast<std::size_t>(below(items.size()))];
  }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

std::vector<std::string> list_of(JsonView root, std::string_view key) {
  const JsonView list = root.find(key).value();
  std::vector<std::string> items;
  for (std::size_t i = 0; i < list.size(); ++i) items.emplace_back(list.item(i).as_string());
  return items;
}

std::string upper(std::string word, std::size_t count) {
  for (std::size_t i = 0; i < word.size() && i < count; ++i) {
    if (word[i] >= 'a' && word[i] <= 'z') word[i] = static_cast<char>(word[i] - 32);
  }
  return word;
}

}  // namespace

TestStrings::TestStrings(const std::string& path, std::uint64_t seed) : seed_(seed) {
  with_json(read_file(path), [this](JsonView root) {
    words_ = list_of(root, "words");
    joints_ = list_of(root, "joints");
    emoji_ = list_of(root, "emoji");
    spaces_ = list_of(root, "spaces");
    marks_ = list_of(root, "marks");
    tokens_ = list_of(root, "tokens");
    const JsonView blocks = root.find("blocks").value();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks_.emplace_back(blocks.item(i).item(0).as_int().value(),
                           blocks.item(i).item(1).as_int().value());
    }
  });
}

// Makes one string; the order of draws is that of test_strings.py.
class StringMaker {
 public:
  StringMaker(const TestStrings& source, std::uint64_t seed) : source_(source), random_(seed) {}

  std::string caption(std::uint64_t count) {
    std::string text;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) text += random_.pick(source_.joints_);
      std::string word = random_.pick(source_.words_);
      const std::uint64_t style = random_.below(12);
      if (style == 0) word = upper(word, word.size());
      if (style == 1) word = upper(word, 1);
      if (style == 2) word += std::to_string(random_.below(100000));
      text += word;
    }
    return text;
  }

  std::string from_block(std::uint64_t size) {
    const auto [first, last] = random_.pick(source_.blocks_);
    std::string text;
    for (std::uint64_t i = 0; i < size; ++i) {
      append_utf8(text, static_cast<char32_t>(first + random_.below(last - first + 1)));
    }
    return text;
  }

  std::string script_words() {
    std::vector<std::string> words(1 + random_.below(12));
    for (std::string& word : words) word = from_block(1 + random_.below(8));
    const std::string& joint = random_.pick(source_.joints_);
    std::string text = words[0];
    for (std::size_t i = 1; i < words.size(); ++i) text += joint + words[i];
    return text;
  }

  std::string random_text() {
    std::string text;
    for (std::uint64_t left = random_.below(40); left > 0; --left) {
      const std::uint64_t point = random_.below(0x110000 - 0x800);
      append_utf8(text, static_cast<char32_t>(point < 0xD800 ? point : point + 0x800));
    }
    return text;
  }

  std::string mixed(const std::vector<std::string>& pieces, std::uint64_t count) {
    std::string text;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t kind = random_.below(3);
      text += kind == 0 ? random_.pick(source_.words_) : random_.pick(pieces);
      if (kind == 2) text += random_.pick(pieces);
    }
    return text;
  }

  std::string marked() {
    std::string text;
    for (std::uint64_t left = 1 + random_.below(12); left > 0; --left) {
      text += random_.below(2) != 0 ? from_block(1) : random_.pick(source_.words_);
      for (std::uint64_t marks = random_.below(5); marks > 0; --marks) {
        text += random_.pick(source_.marks_);
      }
    }
    return text;
  }

  std::string very_long() {
    const std::uint64_t kind = random_.below(3);
    if (kind == 0) return caption(1500 + random_.below(1500));
    std::string text;
    if (kind == 1) {
      for (int i = 0; i < 100; ++i) text += from_block(40);
      return text;
    }
    const std::string& word = random_.pick(source_.words_);
    for (std::uint64_t left = 500 + random_.below(500); left > 0; --left) text += word;
    return text;
  }

  std::string of_kind(std::uint64_t kind) {
    if (kind < 4) return caption(1 + random_.below(30));
    if (kind == 4) return script_words();
    if (kind == 5) return random_text();
    if (kind == 6) return mixed(source_.emoji_, 1 + random_.below(12));
    if (kind == 7) return mixed(source_.spaces_, 1 + random_.below(20));
    if (kind == 8) return marked();
    return mixed(source_.tokens_, 1 + random_.below(10));
  }

 private:
  const TestStrings& source_;
  Random random_;
};

std::string TestStrings::at(std::uint64_t index) const {
  StringMaker maker(*this, seed_ * 1000003 + index);
  if (index % 1000 == 0) return {};
  if (index % 400 == 1) return maker.very_long();
  return maker.of_kind(index % 10);
}

}  // namespace heddle::text
