// Addresses of models in workflows, and the report of those that are missing.
#include "engine/graph/missing_models.h"

#include <boost/test/unit_test.hpp>

#include "engine/graph/model_addresses.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(missing_models)

namespace {

std::vector<ModelAddress> addresses(const char* text) {
  return model_addresses(parse_json(text, "a.json"));
}

std::vector<std::string> names(const char* text) {
  std::vector<std::string> all;
  for (const ModelAddress& model : addresses(text))
    all.push_back(model.directory + "/" + model.name);
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(addresses_stand_in_nodes_subgraphs_and_at_the_top) {
  BOOST_TEST(names(R"({"models": [{"name": "a", "directory": "vae"}],
      "nodes": [{"properties": {"models": [{"name": "b", "directory": "loras"}]}}, {}, 3],
      "definitions": {"subgraphs": [{"nodes": [{"properties": {"models": [
          {"name": "c", "directory": "loras"}, {"name": "b", "directory": "loras"}]}}]}]}})") ==
             (Names{"vae/a", "loras/b", "loras/c"}));
  const ModelAddress whole = addresses(R"({"models": [{"name": "a", "directory": "vae",
      "url": "https://x/a", "hash": "12", "hash_type": "SHA256"}]})")
                                 .at(0);
  BOOST_TEST(whole.text() == "vae/a: https://x/a (SHA256 12)");
}

BOOST_AUTO_TEST_CASE(what_names_no_file_below_its_folder_is_left_out) {
  BOOST_TEST(
      names(R"({"models": [{"name": "../a", "directory": "vae"}, {"name": "/a", "directory": "vae"},
      {"name": "a", "directory": ".."}, {"name": "", "directory": "vae"}, {"name": "a"},
      {"name": "a/", "directory": "vae"}, 7, {"name": "x\\y", "directory": "vae"}]})") ==
      Names{"vae/x/y"});
  for (const char* text : {"[]", R"({"models": 3, "nodes": {}, "definitions": []})",
                           R"({"definitions": {"subgraphs": [[]]}})"})
    BOOST_TEST(names(text).empty());
}

BOOST_AUTO_TEST_CASE(a_workflow_that_cannot_run_says_what_is_missing) {
  Workflow flow;
  flow.name = "a.json";
  flow.models = addresses(R"({"models": [{"name": "here", "directory": "vae", "url": "https://x/1"},
      {"name": "gone", "directory": "vae", "url": "https://x/2", "hash": "12", "hash_type": "SHA256"}]})");
  Catalog catalog;
  std::vector<Problem> problems{{Problem::Severity::error, "an unknown class", "", ""}};
  add_missing_models(flow, catalog, problems);
  BOOST_TEST(problems.size() == 1u);  // nobody knows what is there
  catalog.set_file_lister([](std::string_view folder, std::int32_t) {
    return folder == "vae" ? std::vector<std::string>{"here"} : std::vector<std::string>();
  });
  add_missing_models(flow, catalog, problems);
  BOOST_REQUIRE(problems.size() == 2u);
  BOOST_TEST(
      problems[1].message ==
      "a.json: a model file is missing, which `heddle fetch` downloads: vae/gone: https://x/2 "
      "(SHA256 12)");
  std::vector<Problem> none{{Problem::Severity::warning, "something", "", ""}};
  add_missing_models(flow, catalog, none);
  BOOST_TEST(none.size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_no_node_loads_any_more_is_not_missing) {
  Workflow flow =
      parse_workflow(R"({"1": {"class_type": "Nobody", "inputs": {"file": "b"}}})", "a");
  flow.models = addresses(R"({"models": [{"name": "a", "directory": "loras"}],
      "nodes": [{"properties": {"models": [{"name": "b", "directory": "loras"},
                                           {"name": "c", "directory": "loras"}]}}]})");
  Catalog catalog;
  catalog.set_file_lister(
      [](std::string_view, std::int32_t) { return std::vector<std::string>(); });
  std::vector<Problem> problems{{Problem::Severity::error, "an unknown class", "", ""}};
  add_missing_models(flow, catalog, problems);
  BOOST_REQUIRE(problems.size() == 3u);
  BOOST_TEST(problems[1].lacks == "file loras/a");
  BOOST_TEST(problems[2].lacks == "file loras/b");
}

BOOST_AUTO_TEST_SUITE_END()
