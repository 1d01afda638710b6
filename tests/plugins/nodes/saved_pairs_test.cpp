// Workflows in the form that ComfyUI's interface saves, beside what its own front end exports of
// them (golden/saved_form/pairs/NAME.json and NAME.api.json, the latter made by
// engine/graph/saved_form/export_with_front_end.py): converted with the classes of the plugins they
// are equal.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"

using namespace heddle;
using engine::Json;

namespace {

constexpr std::string_view kExported = ".api.json";

std::vector<std::string> pairs() {
  std::vector<std::string> names;
  for (const std::filesystem::path& path : test::files_in("golden/saved_form/pairs", ".json"))
    if (const std::string name = path.string(); !name.ends_with(kExported))
      names.push_back(path.filename().string());
  return names;
}

// Where two values differ; empty: nowhere. JavaScript has no whole numbers.
std::string difference(const Json& a, const Json& b, const std::string& at) {
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double() ? "" : at;
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::string found = difference(a.at(i), b.at(i), engine::cat(at, ".", i)); !found.empty())
        return found;
    return "";
  }
  if (!a.is_object() || !b.is_object() || a.size() != b.size())
    return engine::write_json(a) == engine::write_json(b) ? "" : at;
  for (const Json::Member& member : a.members()) {
    const std::string inner = engine::cat(at, ".", member.key);
    const Json* other = b.find(member.key);
    if (other == nullptr) return inner;
    if (std::string found = difference(member.value, *other, inner); !found.empty()) return found;
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(saved_pairs)

BOOST_DATA_TEST_CASE(the_saved_form_becomes_what_the_front_end_exports, pairs(), name) {
  const std::filesystem::path folder = test::tests_folder() / "golden/saved_form/pairs";
  const Engine engine(test::engine_options());
  const Json converted =
      engine::parse_json(engine.convert(engine.load(folder / name)), "converted");
  const std::string exported = name.substr(0, name.size() - 5) + std::string(kExported);
  const Json expected = engine::parse_json(test::read_text(folder / exported), exported);
  BOOST_TEST(difference(converted, expected, name) == "");
}

BOOST_AUTO_TEST_CASE(there_are_pairs_of_all_kinds) { BOOST_TEST(pairs().size() >= 12u); }

BOOST_AUTO_TEST_SUITE_END()
