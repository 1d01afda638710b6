// Small tokenizer.json files whose ids follow from the definition of their parts, and files that
// are wrong.
#include "plugins/encoders/tokenizer/tokenizer_json.h"

#include <boost/test/unit_test.hpp>
#include <thread>

#include "plugins/encoders/tokenizer/text_error.h"
#include "tokenizer_folder.h"

namespace heddle::text {
BOOST_AUTO_TEST_SUITE(tokenizer_json)

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view kLetters =
    R"("model":{"type":"BPE","merges":[["a","b"],"ab c"],"vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4,"_":5,"A":6}})";

std::string file_with(std::string_view parts) {
  return "{" + std::string(parts) + (parts.empty() ? "" : ",") + std::string(kLetters) + "}";
}

void check(std::string_view file, std::string_view text, const Ids& expected) {
  BOOST_TEST_CONTEXT(file << " for " << text) {
    const Ids ids = load_tokenizer_json(file).encode(text);
    BOOST_CHECK_EQUAL_COLLECTIONS(ids.begin(), ids.end(), expected.begin(), expected.end());
  }
}

void check_error(std::string_view file, const std::string& part) {
  std::string error = "no error";
  try {
    load_tokenizer_json(file);
  } catch (const TextError& found) {
    error = found.what();
  }
  BOOST_TEST(error.find(part) != std::string::npos, error << " does not contain " << part);
}

std::string unigram(std::string_view more) {
  return R"({"model":{"type":"Unigram","vocab":[["<unk>",0],["a",-1],["b",-1],["ab",-1.5],["<0x78>",-9]])" +
         std::string(more) + "}}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(merges_apply_by_rank) {
  check(file_with(""), "abcab", {4, 3});
  check(file_with(""), "acb", {0, 2, 1});
  check(file_with(""), "axb",
        {3});  // without an unknown token, unknown characters are dropped first
}

BOOST_AUTO_TEST_CASE(unknown_characters_are_one_token_each_or_fused) {
  const std::string each =
      R"({"model":{"type":"BPE","unk_token":"?","merges":[],"vocab":{"?":9,"a":0}}})";
  check(each, "xxa", {9, 9, 0});
  const std::string fused =
      R"({"model":{"type":"BPE","unk_token":"?","fuse_unk":true,"merges":[],"vocab":{"?":9,"a":0}}})";
  check(fused, "xxax", {9, 0, 9});
}

BOOST_AUTO_TEST_CASE(suffix_and_prefix_make_characters_of_a_word) {
  check(R"({"model":{"type":"BPE","end_of_word_suffix":"</w>","continuing_subword_prefix":"##",
           "merges":[["a","##b</w>"]],"vocab":{"a":0,"##b</w>":1,"ab</w>":2,"##b":3}}})",
        "ab", {2});
}

BOOST_AUTO_TEST_CASE(ignored_merges_take_whole_words) {
  check(R"({"model":{"type":"BPE","ignore_merges":true,"merges":[],"vocab":{"a":0,"b":1,"ab":2}}})",
        "ab", {2});
}

BOOST_AUTO_TEST_CASE(unigram_takes_the_best_sum_and_fuses_unknown_runs) {
  check(unigram(R"(,"unk_id":0)"), "abb", {3, 2});
  check(unigram(R"(,"unk_id":0)"), "ayyb", {1, 0, 2});
  check(unigram(R"(,"unk_id":0,"byte_fallback":true)"), "axb", {1, 4, 2});
  check(unigram(R"(,"unk_id":0,"byte_fallback":true)"), "ayb", {1, 0, 2});
  BOOST_CHECK_THROW(load_tokenizer_json(unigram("")).encode("y"), TextError);
}

BOOST_AUTO_TEST_CASE(normalizers_run_in_order) {
  const auto with = [](std::string_view steps) {
    return file_with(R"("normalizer":{"type":"Sequence","normalizers":[)" + std::string(steps) +
                     "]}");
  };
  check(
      with(
          R"({"type":"Strip","strip_left":true,"strip_right":false},{"type":"Replace","pattern":{"String":" "},"content":"_"})"),
      "  a ", {0, 5});
  check(with(R"({"type":"Lowercase"})"), "A", {0});
  check(
      with(
          R"({"type":"Replace","pattern":{"Regex":"b+"},"content":"c"},{"type":"Prepend","prepend":"ab"})"),
      "bbb", {4});
  check(with(R"({"type":"Prepend","prepend":"ab"})"), "", {});
  check(with(R"({"type":"NFKC"})"), "\xEF\xBC\xA1", {6});
}

BOOST_AUTO_TEST_CASE(split_behaviours_decide_where_the_match_goes) {
  const auto with = [](std::string_view behavior) {
    return R"({"pre_tokenizer":{"type":"Split","pattern":{"String":"-"},"behavior":")" +
           std::string(behavior) +
           R"(","invert":false},"model":{"type":"BPE","ignore_merges":true,"merges":[],"vocab":{
               "-":0,"a":1,"-a":2,"a-":3,"--":4,"a--a":5,"-a-":6}}})";
  };
  check(with("Removed"), "a--a", {1, 1});
  check(with("Isolated"), "a--a", {1, 0, 0, 1});
  check(with("MergedWithPrevious"), "a--a", {3, 0, 1});
  check(with("MergedWithNext"), "a--a", {1, 0, 2});
  check(with("Contiguous"), "a--a", {1, 4, 1});
}

BOOST_AUTO_TEST_CASE(metaspace_prepends_always_first_or_never) {
  const auto with = [](std::string_view scheme) {
    return R"({"added_tokens":[{"content":"|","special":true}],
               "pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":")" +
           std::string(scheme) +
           R"("},"model":{"type":"BPE","merges":[["_","a"]],"vocab":{"_":0,"a":1,"_a":2,"|":3}}})";
  };
  check(with("always"), "a a|a", {2, 2, 3, 2});
  check(with("first"), "a a|a", {2, 2, 3, 1});
  check(with("never"), "a a|a", {1, 2, 3, 1});
}

BOOST_AUTO_TEST_CASE(byte_level_writes_printable_characters) {
  const std::string file =
      R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"use_regex":true},
          "model":{"type":"BPE","merges":[],"vocab":{"Ġ":0,"a":1,"Ã":2,"©":3,"Ċ":4,"Ń":5,"Â":6}}})";
  check(file, "a\xC3\xA9\n\xC2\xAD", {0, 1, 2, 3, 4, 6, 5});
}

BOOST_AUTO_TEST_CASE(added_tokens_are_found_before_the_model_runs) {
  const auto with = [](std::string_view flags) {
    return file_with(R"("normalizer":{"type":"Lowercase"},"added_tokens":[{"content":"ab")" +
                     std::string(flags) + "}]");
  };
  check(with(R"(,"normalized":false)"), "cabc", {2, 3, 2});
  check(with(R"(,"normalized":false)"), "cABc", {2, 4});
  check(with(R"(,"normalized":true)"), "cABc", {2, 3, 2});
  check(with(R"(,"normalized":false,"single_word":true)"), "abc ab", {4, 3});
  check(file_with(
            R"("added_tokens":[{"content":"<x>","lstrip":true,"rstrip":true},{"content":"<y>"}])"),
        "a  <x>  b<y>", {0, 7, 1, 8});
}

BOOST_AUTO_TEST_CASE(post_processor_gives_prefix_and_suffix) {
  const Tokenizer tokenizer = load_tokenizer_json(file_with(
      R"("post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},
         {"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
         {"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
         "special_tokens":{"<s>":{"ids":[7,8]},"</s>":{"ids":[9]}}}]})"));
  BOOST_TEST(tokenizer.prefix() == (Ids{7, 8}), boost::test_tools::per_element());
  BOOST_TEST(tokenizer.suffix() == (Ids{9}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(unsupported_parts_are_named) {
  check_error(file_with(R"("normalizer":{"type":"BertNormalizer"})"),
              "tokenizer.json.normalizer: 'BertNormalizer' is not supported");
  check_error(
      file_with(
          R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})"),
      "tokenizer.json.pre_tokenizer.pretokenizers[0]: 'UnicodeScripts'");
  check_error(file_with(R"("post_processor":{"type":"Magic"})"), "'Magic'");
  check_error(R"({"model":{"type":"WordPiece","vocab":{}}})", "'WordPiece'");
}

BOOST_AUTO_TEST_CASE(wrong_fields_are_errors_with_their_place) {
  check_error("", "byte 0");
  check_error("[1, 2", "byte");
  check_error("[]", "expects an object, got an array");
  check_error("{}", "has no field 'model'");
  check_error(R"({"model":{"type":"BPE","merges":[],"vocab":{"a":-1}}})",
              "model.vocab.a: expects a token id");
  check_error(R"({"model":{"type":"BPE","merges":[],"vocab":{"a":1.5}}})", "got 1.5");
  check_error(R"({"model":{"type":"BPE","merges":[],"vocab":{"a":99999999999}}})",
              "expects a token id");
  check_error(R"({"model":{"type":"BPE","merges":[["a"]],"vocab":{"a":1}}})",
              "merges[0]: expects two tokens");
  check_error(R"({"model":{"type":"BPE","merges":["a b c"],"vocab":{"a":1}}})", "merges[0]");
  check_error(R"({"model":{"type":"BPE","merges":[["a","b"]],"vocab":{"a":1,"b":2}}})",
              "needs the token 'ab'");
  check_error(R"({"model":{"type":"BPE","merges":[["a","z"]],"vocab":{"a":1,"az":2}}})",
              "needs the token 'z'");
  check_error(R"({"model":{"type":"BPE","dropout":0.1,"merges":[],"vocab":{}}})", "dropout");
  check_error(unigram(R"(,"unk_id":5)"), "unk_id: is 5, but there are 5 pieces");
  check_error(R"({"model":{"type":"Unigram","vocab":[]}})", "no pieces");
  check_error(R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "vocab[0]");
  check_error(file_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAA"})"),
              "base64");
  check_error(file_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})"),
              "says that its trie has");
  check_error(file_with(R"("normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""})"),
              "does not compile");
  check_error(file_with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"})"),
              "one character");
}

BOOST_AUTO_TEST_CASE(deeply_nested_sequences_are_an_error) {
  std::string open, close;
  for (int i = 0; i < 50000; ++i) {
    open += R"({"type":"Sequence","normalizers":[)";
    close += "]}";
  }
  check_error(file_with(R"("normalizer":)" + open + close), "nested more than 16");
}

BOOST_AUTO_TEST_CASE(normalizers_that_let_a_text_explode_are_an_error) {
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    doubling += R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"},)";
  }
  const Tokenizer tokenizer = load_tokenizer_json(file_with(
      R"("normalizer":{"type":"Sequence","normalizers":[)" + doubling + R"({"type":"NFC"}]})"));
  BOOST_CHECK_THROW(tokenizer.encode("a"), TextError);
  BOOST_TEST(tokenizer.encode("b") == Ids{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(added_tokens_without_a_free_id_or_of_any_length_are_an_error) {
  const std::string full = R"("model":{"type":"BPE","merges":[],"vocab":{"a":2147483646}})";
  check_error(R"({"added_tokens":[{"content":"a"},{"content":"b"}],)" + full + "}",
              "would get the id");
  check_error(file_with(R"("added_tokens":[{"content":")" + std::string(5000, 'x') + R"("}])"),
              "of 5000 bytes");
  BOOST_TEST(load_tokenizer_json("{" + full + "}").id_count() == 2147483647U);
}

BOOST_AUTO_TEST_CASE(strings_with_nul_survive) {
  check(R"({"added_tokens":[{"content":"\u0000x","normalized":false}],
           "model":{"type":"BPE","merges":[],"vocab":{"a":0,"\u0000":1}}})",
        std::string_view("a\0\0x", 4), {0, 1, 2});
}

BOOST_AUTO_TEST_CASE(one_tokenizer_serves_several_threads) {
  const Tokenizer tokenizer = load_tokenizer_json(file_with(
      R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"c"},"behavior":"Isolated"})"));
  std::vector<Ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& result : results) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) result = tokenizer.encode("abcabcba");
      });
    }
  }
  for (const Ids& result : results) {
    BOOST_TEST(result == (Ids{3, 2, 3, 2, 1, 0}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(very_long_words_are_encoded_whole) {
  const std::string text(300000, 'a');
  BOOST_TEST(load_tokenizer_json(file_with("")).encode(text).size() == 300000U);
  BOOST_TEST(load_tokenizer_json(unigram(R"(,"unk_id":0)")).encode(text).size() == 300000U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::text
