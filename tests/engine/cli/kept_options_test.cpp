// The options of a run that its checkpoints keep.
#include "engine/cli/kept_options.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"

namespace {

using namespace heddle::cli;

Layer layer_of(const std::vector<std::pair<const char*, std::vector<std::string>>>& options) {
  Layer layer;
  for (const auto& [name, texts] : options)
    for (const std::string& text : texts)
      layer.add(*find_option(name), {text, Origin::command_line, name});
  return layer;
}

std::vector<std::string> texts(const Layer& layer, std::string_view option) {
  std::vector<std::string> all;
  for (const Given& given : layer.of(option)) all.push_back(given.text);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_options_of_runs)

BOOST_AUTO_TEST_CASE(what_bytes_depend_on_comes_back_and_what_is_of_one_call_does_not) {
  const std::string text = kept_options(layer_of({{"devices", {"cpu", "cuda:0"}},
                                                  {"compute", {"cpu=bf16", "cuda=fp16"}},
                                                  {"options", {R"(cpu={"threads": 2})"}},
                                                  {"models", {"models", "/elsewhere"}},
                                                  {"threads", {"3"}},
                                                  {"checkpoint-every", {"5"}},
                                                  {"host-budget", {"60%"}},
                                                  {"cache", {"none"}},
                                                  {"output", {"out"}},
                                                  {"set", {"a.seed=3"}},
                                                  {"trace", {"t.json"}},
                                                  {"quiet", {"true"}},
                                                  {"json", {"true"}}}));
  const Layer kept = read_kept_options(text, "/a/run.checkpoint");
  using Texts = std::vector<std::string>;
  const std::string here = std::filesystem::current_path().string();
  BOOST_TEST(texts(kept, "devices") == (Texts{"cpu", "cuda:0"}));
  BOOST_TEST(texts(kept, "compute") == (Texts{"cpu=bf16", "cuda=fp16"}));
  BOOST_TEST(texts(kept, "options") == Texts{R"(cpu={"threads": 2})"});
  BOOST_TEST(texts(kept, "models") == (Texts{here + "/models", "/elsewhere"}));
  BOOST_TEST(texts(kept, "threads") == Texts{"3"});
  BOOST_TEST(texts(kept, "checkpoint-every") == Texts{"5"});
  BOOST_TEST(texts(kept, "host-budget") == Texts{"60%"});
  BOOST_TEST(texts(kept, "cache") == Texts{"none"});
  BOOST_TEST(texts(kept, "output") == Texts{here + "/out"});
  BOOST_TEST(texts(kept, "input") == Texts{here + "/input"});
  for (const char* left_out : {"set", "trace", "quiet", "json"})
    BOOST_TEST(texts(kept, left_out).empty(), left_out);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_program_has_none) {
  BOOST_TEST(read_kept_options("", "x").of("devices").empty());
}

BOOST_AUTO_TEST_SUITE_END()
