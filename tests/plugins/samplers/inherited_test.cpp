// What negative conditionings get of positive ones, against a reference that finds it in another
// way (make_inherited_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/plugin/host.h"
#include "golden.h"
#include "plugins/samplers/control_value.h"
#include "plugins/samplers/joined_entries.h"
#include "plugins/samplers/told_controls.h"

namespace {

using namespace heddle;
using namespace heddle::samplers;
using blocks::EntryShapes;

constexpr std::int64_t kOwn = -1, kNone = -2;

// Values are the engine's: what a plugin is given when it is loaded.
struct OfEngine {
  OfEngine() { BOOST_REQUIRE(Plugin<>::init(engine::plugin_host()) == nullptr); }
  ~OfEngine() { Plugin<>::deinit(); }
};

// The entries of a list. What a positive one has is its place, what a negative one has is kOwn;
// masks are apart from the rest where `mask_apart`, as before a run.
std::vector<EntryShapes> entries_of(const rapidjson::Value& list, const char* key, bool is_positive,
                                    bool mask_apart) {
  std::vector<EntryShapes> entries;
  for (const auto& given : list.GetArray()) {
    EntryShapes& entry = entries.emplace_back();
    const std::string where = given["where"].GetString();
    Record scope;
    scope.set("strength", value_of(1.0));
    if (where == "area" || where == "area_fractions") scope.set(where.c_str(), value_of(true));
    if (where == "bounded" || where == "mask") {
      scope.set("set_area_to_bounds", value_of(where == "bounded"));
      if (mask_apart)
        entry.mask.emplace();
      else
        scope.set("mask", value_of(true));
    }
    const auto place = is_positive ? std::int64_t(entries.size()) - 1 : kOwn;
    if (given["has"].GetBool()) scope.set(key, value_of(place));
    if (given["asks"].GetBool()) scope.set(kControlsNegative, value_of(true));
    entry.scope = scope.value();
  }
  return entries;
}

Value listed_scopes(const std::vector<EntryShapes>& entries) {
  std::vector<Value> scopes;
  for (const EntryShapes& entry : entries) scopes.push_back(entry.scope);
  return list_of(scopes);
}

std::vector<std::int64_t> kept(const Value& entries, const char* key) {
  std::vector<std::int64_t> places;
  for (std::uint32_t i = 0; i < entries.count(); ++i) {
    const Value entry = entries.item(i);
    places.push_back(entry.has(key) ? entry.field(key).as<std::int64_t>() : kNone);
  }
  return places;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(inherited_controls, OfEngine)

BOOST_AUTO_TEST_CASE(the_last_of_several_stays_and_no_entry_is_added) {
  const rapidjson::Document golden = testing::load("inherited_golden.json");
  for (const auto& given : golden.GetArray()) {
    const std::pair<const char*, const char*> keys[] = {{kControl, "controls"},
                                                        {"gligen", "boxes"}};
    for (const auto& one : keys) {
      const char* const key = one.first;
      const auto expected = testing::numbers<std::int64_t>(given[one.second]);
      const auto list = [&](const char* which, bool mask_apart) {
        return entries_of(given[which], key, std::string(which) == "positive", mask_apart);
      };
      const Value run = with_inherited(listed_scopes(list("positive", false)),
                                       listed_scopes(list("negative", false)));
      BOOST_TEST(kept(run, key) == expected, boost::test_tools::per_element());
      const std::vector<EntryShapes> told =
          with_inherited_of(list("positive", true), list("negative", true));
      BOOST_TEST(kept(listed_scopes(told), key) == expected, boost::test_tools::per_element());
    }
  }
}

// The text of the one around an area, and the ControlNets of the one that has it.
BOOST_AUTO_TEST_CASE(entries_that_areas_add_have_the_control_nets_of_the_area) {
  const auto entry = [](std::int64_t text, std::int64_t control) {
    Record record;
    record.set("text", value_of(text));
    return control < 0 ? record.value() : record.set(kControl, value_of(control)).value();
  };
  // By whether the entry with the area, and that around, have a ControlNet.
  for (const bool area : {false, true})
    for (const bool around : {false, true}) {
      std::vector<std::vector<Value>> entries{{entry(0, area ? 10 : -1)},
                                              {entry(1, around ? 11 : -1)}};
      ScopedLists lists(2);
      lists[0].push_back({.list = 0, .item = 0, .control_list = 0, .control_item = 0});
      lists[0][0].scope.area = Box{{2, 2}, {0, 0}};
      lists[1].push_back({.list = 1, .item = 0, .control_list = 1, .control_item = 0});
      add_opposites(lists);
      join_entries(lists, entries);
      BOOST_TEST_REQUIRE(lists[1].size() == 2u);
      const auto read = [&](const ScopedEntry& scoped) {
        return entries[scoped.list][scoped.item];
      };
      BOOST_TEST(read(lists[1][1]).get<std::int64_t>("text", -1) == 1);
      BOOST_TEST(read(lists[1][1]).get<std::int64_t>(kControl, -1) == (area ? 10 : -1));
      BOOST_TEST(read(lists[1][0]).get<std::int64_t>(kControl, -1) == (around ? 11 : -1));
    }
}

BOOST_AUTO_TEST_SUITE_END()
