// Many prompts of one.
#include "engine/serve/batch.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"

using namespace heddle::engine;

namespace {

const Json kPrompt = parse_json(R"({
  "1": {"class_type": "A", "inputs": {"seed": 7, "text": "x"}},
  "1.b": {"class_type": "B", "inputs": {"seed": 8, "of": ["1", 0]}}})",
                                "prompt");

// Seed and text of node 1 and the seed of node 1.b, of every prompt.
std::string told(const std::vector<Json>& prompts) {
  std::string text;
  for (const Json& prompt : prompts) {
    BOOST_TEST((prompt.at("1.b").at("inputs").at("of") == kPrompt.at("1.b").at("inputs").at("of")));
    BOOST_TEST(prompt.at("1").at("class_type").as_string() == "A");
    const Json& inputs = prompt.at("1").at("inputs");
    text += std::to_string(inputs.at("seed").as_int64()) + inputs.at("text").as_string() +
            std::to_string(prompt.at("1.b").at("inputs").at("seed").as_int64()) + " ";
  }
  return text;
}

std::string expanded(const char* batch) {
  return told(expand_batch(kPrompt, read_batch(parse_json(batch, "batch"))));
}

std::string refusal(const char* batch, std::uint64_t most = kMostOfBatch) {
  try {
    expand_batch(kPrompt, read_batch(parse_json(batch, "batch")), most);
  } catch (const Error& error) {
    BOOST_TEST((error.code() == Code::invalid_argument));
    return error.full();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  BOOST_TEST_CONTEXT(text) BOOST_TEST(text.find(part) != std::string::npos, part);
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(batch)

BOOST_AUTO_TEST_CASE(lists_are_crossed_the_last_one_fastest) {
  BOOST_TEST(expanded(R"({"inputs": {"1.seed": [1, 2], "1.text": ["a", "b", "c"]}})") ==
             "1a8 1b8 1c8 2a8 2b8 2c8 ");
}

BOOST_AUTO_TEST_CASE(lists_are_zipped) {
  BOOST_TEST(
      expanded(R"({"mode": "zipped", "inputs": {"1.seed": [1, 2], "1.text": ["a", "b"]}})") ==
      "1a8 2b8 ");
}

BOOST_AUTO_TEST_CASE(repeats_stand_behind_each_other) {
  BOOST_TEST(expanded(R"({"repeats": 2, "inputs": {"1.seed": [1, 2]}})") == "1x8 1x8 2x8 2x8 ");
  BOOST_TEST(expanded(R"({"repeats": 3})") == "7x8 7x8 7x8 ");
  BOOST_TEST(expanded("{}") == "7x8 ");
}

BOOST_AUTO_TEST_CASE(the_longest_id_is_meant) {
  BOOST_TEST(expanded(R"({"inputs": {"1.b.seed": [5]}})") == "7x5 ");
}

BOOST_AUTO_TEST_CASE(a_value_may_be_a_link) {
  const Batch batch = read_batch(parse_json(R"({"inputs": {"1.b.seed": [["1", 0]]}})", "batch"));
  const Json seed = expand_batch(kPrompt, batch).at(0).at("1.b").at("inputs").at("seed");
  BOOST_TEST(seed.at(std::size_t{0}).as_string() == "1");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said_with_its_values) {
  BOOST_TEST(has(refusal(R"({"inputs": {"9.seed": [1]}})"), "no node '9'"));
  BOOST_TEST(has(refusal(R"({"inputs": {"1.sed": [1]}})"), "Did you mean 'seed'?"));
  BOOST_TEST(has(refusal(R"({"inputs": {"seed": [1]}})"), "NODE.INPUT"));
  BOOST_TEST(has(refusal(R"({"inputs": {"1.seed": []}})"), "'1.seed' is empty"));
  BOOST_TEST(has(refusal(R"({"inputs": {"1.seed": 5}})"), "the integer 5"));
  BOOST_TEST(has(refusal(R"({"mode": "zipped", "inputs": {"1.seed": [1], "1.text": [1, 2]}})"),
                 "'1.text' has 2 values and '1.seed' has 1"));
  BOOST_TEST(has(refusal(R"({"mode": "both"})"), "zipped"));
  BOOST_TEST(has(refusal(R"({"repeats": 0})"), "0 repeats"));
  BOOST_TEST(has(refusal(R"({"repeats": -1})"), "repeats"));
  BOOST_TEST(has(refusal(R"({"runs": 2})"), "'runs'"));
  BOOST_TEST(has(refusal("[]"), "an array"));
}

BOOST_AUTO_TEST_CASE(too_many_are_refused_before_one_is_made) {
  BOOST_TEST(has(refusal(R"({"repeats": 10001})"), "10001 jobs; 10000 are allowed"));
  BOOST_TEST(has(refusal(R"({"repeats": 18446744073709551615, "inputs": {"1.seed": [1, 2]}})"),
                 "10000 are allowed"));
  BOOST_TEST(refusal(R"({"repeats": 3})", 3).empty());
  BOOST_TEST(!refusal(R"({"repeats": 4})", 3).empty());
}

BOOST_AUTO_TEST_SUITE_END()
