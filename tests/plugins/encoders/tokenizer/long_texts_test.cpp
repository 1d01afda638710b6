// What a prompt takes to be encoded, in memory and in steps, whatever it holds.
#include <boost/test/unit_test.hpp>
#include <map>

#include "heap_peak.h"
#include "long_texts.h"
#include "plugins/encoders/tokenizer/text_error.h"
#include "plugins/encoders/tokenizer/token_windows.h"
#include "plugins/encoders/windows.h"
#include "tokenizer_folder.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(long_texts_suite)

namespace {

using encoders::Window;

constexpr std::int64_t kBytesPerByte = 100;
constexpr std::int64_t kBytesFree = 1 << 18;  // scores ahead, stacks, blocks of the heap

struct Reader {
  std::string name;
  Tokenizer tokenizer;
  WindowRules rules;
};

// With windows as CLIP's or one as T5's, whichever suits the tokenizer.
Reader reader(const std::string& name, Tokenizer tokenizer) {
  const bool framed = tokenizer.prefix().size() == 1 && tokenizer.suffix().size() == 1;
  const WindowRules rules =
      framed ? clip_window_rules(tokenizer, 0) : t5_window_rules(tokenizer, 0);
  return {name, std::move(tokenizer), rules};
}

// Bytes of GPT-2's pattern, every one of which is a token.
Tokenizer bytes_only() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string piece;
    const char32_t c = byte_level_character(static_cast<unsigned char>(byte));
    if (c < 0x80) {
      piece.push_back(static_cast<char>(c));
    } else {
      piece.push_back(static_cast<char>(0xC0 | (c >> 6)));
      piece.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
    const std::string escape = piece == "\"" || piece == "\\" ? "\\" : "";
    vocabulary += (byte == 0 ? "\"" : ",\"") + escape + piece + "\":" + std::to_string(byte);
  }
  return load_tokenizer_json(
      R"({"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true},
          "model":{"type":"BPE","merges":[],"vocab":{)" +
      vocabulary + "}}}");
}

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = [] {
    const std::string data = HEDDLE_TESTS_DIR "/plugins/encoders/tokenizer/data/";
    const std::string scenes = HEDDLE_SOURCE_DIR "/graphs/models/diffusers/tiny-scenes/";
    std::vector<Reader> made;
    made.push_back(reader("clip", load_folder(scenes + "tokenizer", Route::kTokenizerJson)));
    made.push_back(reader("t5", load_folder(scenes + "tokenizer_2", Route::kTokenizerJson)));
    made.push_back(reader("t5 spiece", load_folder(scenes + "tokenizer_2", Route::kSpiece)));
    made.push_back(reader("bpe", load_folder(data + "bpe_8000", Route::kTokenizerJson)));
    made.push_back(reader("unigram", load_folder(data + "unigram_8000", Route::kTokenizerJson)));
    made.push_back(reader("bytes", bytes_only()));
    return made;
  }();
  return all;
}

void encode(const Reader& reader, std::string_view text, Work& work, Sink<const WindowToken&> out) {
  token_windows(reader.tokenizer, text, reader.rules, WeightSyntax::kParsed, work, out);
}

// Calls body(reader, text) for all of both, with what it is about.
template <class F>
void for_each_long_text(std::size_t bytes, F&& body) {
  for (const auto& [name, text] : long_texts(bytes))
    for (const Reader& each : readers())
      BOOST_TEST_CONTEXT(each.name << ", " << name << ", " << text.size() << " bytes")
  body(each, text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(encoding_takes_at_most_100_bytes_a_byte) {
  for (const std::size_t bytes : {std::size_t{1} << 14, std::size_t{100'000}})
    for_each_long_text(bytes, [](const Reader& each, const std::string& text) {
      const HeapPeak heap;
      std::vector<Window> windows;
      Work work;
      encode(each, text, work, [&](const WindowToken& token) {
        if (token.window >= windows.size() && each.rules.pad_to_length)
          windows.emplace_back().ids.reserve(each.rules.length);
        else if (token.window >= windows.size())
          windows.emplace_back();
        windows[token.window].push(token.id, token.weight);
      });
      BOOST_TEST(heap.bytes() <= kBytesPerByte * std::int64_t(text.size()) + kBytesFree);
    });
}

BOOST_AUTO_TEST_CASE(twice_the_text_takes_twice_the_steps) {
  constexpr std::size_t kBytes = 30000;
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> steps;
  const auto texts = long_texts(kBytes), doubled = long_texts(2 * kBytes);
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (const Reader& each : readers()) {
      Work once, twice;
      const auto drop = [](const WindowToken&) {};
      encode(each, texts[i].second, once, drop);
      encode(each, doubled[i].second, twice, drop);
      // A word that cannot be cut has its merges sorted.
      BOOST_TEST(double(twice.total()) <= 2.3 * double(once.total()),
                 each.name << ", " << texts[i].first << ": " << once.total() << " and "
                           << twice.total() << " steps");
    }
}

BOOST_AUTO_TEST_CASE(a_cancelled_prompt_is_given_up_soon) {
  for_each_long_text(300'000, [](const Reader& each, const std::string& text) {
    int questions = 0;
    Work work([&] { return ++questions == 2; });
    bool is_cancelled = false;
    try {
      encode(each, text, work, [](const WindowToken&) {});
    } catch (const Cancelled&) {
      is_cancelled = true;
    }
    BOOST_TEST((is_cancelled || questions < 2));  // some of it is done before anybody would ask
    BOOST_TEST(work.total() <= 7 * text.size());  // what stages say of whole texts beforehand
  });
}

BOOST_AUTO_TEST_CASE(a_step_that_nobody_reaches_is_refused) {
  std::string steps;
  for (int i = 0; i < 1000; ++i) steps += R"({"type":"WhitespaceSplit"},)";
  const std::string file = R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" + steps +
                           R"({"type":"WhitespaceSplit"}]},
                              "model":{"type":"BPE","merges":[],"vocab":{"a":0}}})";
  BOOST_CHECK_EXCEPTION(load_tokenizer_json(file), TextError, [](const TextError& error) {
    return std::string(error.what()).find("more than 64 steps") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace heddle::text
