// The document of /v1, held against its routes.
#include <algorithm>
#include <set>

#include "tests/engine/serve/v1_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Every "$ref" below a value.
void collect_refs(const Json& value, std::set<std::string>& refs) {
  if (value.is_array())
    for (const Json& one : value.as_array()) collect_refs(one, refs);
  if (!value.is_object()) return;
  for (const Json::Member& member : value.members()) {
    if (member.key == "$ref") refs.insert(member.value.as_string());
    collect_refs(member.value, refs);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(v1_openapi)

BOOST_FIXTURE_TEST_CASE(it_has_every_route_and_no_other, V1Serving) {
  const Json document = expect(200, "GET", "/v1/openapi.json");
  BOOST_TEST(document.at("openapi").as_string() == "3.1.0");
  std::set<std::string> documented, routed, names;
  for (const Json::Member& path : document.at("paths").members())
    for (const Json::Member& operation : path.value.members()) {
      documented.insert(cat(upper(operation.key), " ", path.key));
      const std::string& name = operation.value.at("operationId").as_string();
      BOOST_TEST(names.insert(name).second, name);  // generated clients have functions of them
    }
  for (const std::string& pattern : service->router().patterns())
    if (pattern.find(" /v1/") != std::string::npos) routed.insert(pattern);
  BOOST_TEST(routed.size() > 20u);
  BOOST_TEST(documented == routed, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(its_references_lead_somewhere_and_nothing_is_left_over, V1Serving) {
  const Json document = expect(200, "GET", "/v1/openapi.json");
  std::set<std::string> refs, parts;
  collect_refs(document, refs);
  for (const char* kind : {"schemas", "responses"})
    for (const Json::Member& part : document.at("components").at(kind).members())
      parts.insert(cat("#/components/", kind, "/", part.key));
  BOOST_TEST(refs == parts, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
