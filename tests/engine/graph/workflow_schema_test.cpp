// The schema for editors says the same keys as the parser knows.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "engine/base/json.h"
#include "engine/graph/workflow.h"
#include "engine/graph/workflow_keys.h"
#include "tests/support/golden_files.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(workflow_schema)

namespace {

using Names = std::vector<std::string>;

Json definitions() {
  const std::filesystem::path path =
      std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs/workflow.schema.json";
  return parse_json(test::read_text(path), "workflow.schema.json").at("$defs");
}

Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

template <std::size_t kCount>
Names sorted(const std::array<std::string_view, kCount>& names) {
  return sorted(Names(names.begin(), names.end()));
}

Names keys_of(const Json& object) {
  Names names;
  for (const Json::Member& member : object.members()) names.push_back(member.key);
  return sorted(names);
}

Names texts_of(const Json& array) {
  Names names;
  for (const Json& text : array.as_array()) names.push_back(text.as_string());
  return sorted(names);
}

BOOST_AUTO_TEST_CASE(the_schema_has_the_keys_that_the_parser_knows) {
  const Json schema = definitions();
  BOOST_TEST(keys_of(schema.at("wrapped").at("properties")) == sorted(kWorkflowKeys),
             boost::test_tools::per_element());
  Names node = sorted(kNodeKeys);
  node.push_back("_meta");
  BOOST_TEST(keys_of(schema.at("node").at("properties")) == sorted(node),
             boost::test_tools::per_element());
  BOOST_TEST(keys_of(schema.at("device").at("properties")) == sorted(kDeviceKeys),
             boost::test_tools::per_element());
  BOOST_TEST(keys_of(schema.at("block").at("properties")) == sorted(kBlockKeys),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_schema_needs_what_the_parser_needs) {
  const Json schema = definitions();
  BOOST_TEST(texts_of(schema.at("wrapped").at("required")) == Names{"prompt"},
             boost::test_tools::per_element());
  BOOST_TEST(texts_of(schema.at("node").at("required")) == Names{"class_type"},
             boost::test_tools::per_element());
  BOOST_TEST(texts_of(schema.at("block").at("required")) == sorted(kBlockKeys),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_schema_is_closed_where_the_parser_knows_every_key) {
  const Json schema = definitions();
  for (const char* closed : {"device", "block"})
    BOOST_TEST((schema.at(closed).at("additionalProperties") == Json(false)), closed);
  for (const char* open : {"wrapped", "node"})
    BOOST_TEST((schema.at(open).find("additionalProperties") == nullptr), open);
}

BOOST_AUTO_TEST_CASE(the_schema_offers_the_splits_that_the_parser_takes) {
  const Json splits = definitions().at("node").at("properties").at("parallel").at("enum");
  BOOST_TEST(texts_of(splits) == sorted(kParallelModes), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
