// Which jobs are alike.
#include "engine/serve/job_kind.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"

using namespace heddle::engine;

namespace {

std::string type_of_input(std::string_view, std::string_view input) {
  return input == "text" ? "STRING" : input == "sampler_name" ? "COMBO" : "INT";
}

JobKind kind_of(const std::string& sampler, const std::string& text,
                const std::string& model = "a.safetensors") {
  return kind_of_prompt(
      parse_json(cat(R"({"1": {"class_type": "Load", "inputs": {"name": ")", model,
                     R"("}}, "2": {"class_type": "Encode", "inputs": {"text": ")", text,
                     R"(", "clip": ["1", 0]}}, "3": {"class_type": "Sample", "inputs": {)", sampler,
                     R"(, "of": ["2", 0]}}})"),
                 "prompt"),
      type_of_input);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_kind)

BOOST_AUTO_TEST_CASE(texts_and_seeds_make_no_difference) {
  const JobKind one = kind_of(R"("seed": 1, "steps": 20, "sampler_name": "euler")", "a house");
  BOOST_TEST(one.kind == kind_of(R"("seed": 2, "steps": 20, "sampler_name": "euler")", "sea").kind);
  BOOST_TEST(one.kind != kind_of(R"("seed": 1, "steps": 30, "sampler_name": "euler")", "sea").kind);
  BOOST_TEST(one.kind != kind_of(R"("seed": 1, "steps": 20, "sampler_name": "heun")", "sea").kind);
  // What a link leads to is not a seed of the user's.
  BOOST_TEST(one.kind !=
             kind_of(R"("seed": ["1", 0], "steps": 20, "sampler_name": "euler")", "sea").kind);
}

BOOST_AUTO_TEST_CASE(models_are_known_by_their_files) {
  const std::string sampler = R"("steps": 20, "lora": "b.SAFETENSORS")";
  const JobKind one = kind_of(sampler, "c.safetensors is no text");
  BOOST_TEST(one.model == "a.safetensors\nb.SAFETENSORS");
  const JobKind other = kind_of(sampler, "a house", "flux/dev.gguf");
  BOOST_TEST(other.model == "b.SAFETENSORS\nflux/dev.gguf");
  BOOST_TEST(one.kind != other.kind);
  BOOST_TEST(kind_of(sampler, "x", std::string(600, 'x') + ".gguf").model.size() == 32u);
}

BOOST_AUTO_TEST_CASE(what_is_no_workflow_is_some_kind_all_the_same) {
  for (const char* text : {"{}", R"({"1": 3})", R"({"1": {"inputs": 4}})"})
    BOOST_TEST(kind_of_prompt(parse_json(text, "prompt"), type_of_input).model == "", text);
}

BOOST_AUTO_TEST_SUITE_END()
