#include "engine/graph/catalog.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/log.h"
#include "tests/support/refusal.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(catalog)

namespace {

using Names = std::vector<std::string>;

NodeTypeRef type(const char* name, const std::string& plugin) {
  return test::type_of(std::make_shared<test::TestNode>(name), plugin);
}

BOOST_AUTO_TEST_CASE(types_are_found_by_their_exact_name) {
  Catalog catalog;
  catalog.add(type("b", "p"), Catalog::Duplicate::refuse);
  catalog.add(type("a", "p"), Catalog::Duplicate::refuse);
  BOOST_TEST(catalog.find("a")->name() == "a");
  BOOST_TEST((catalog.find("A") == nullptr));
  BOOST_TEST(catalog.type_names() == (std::vector<std::string_view>{"a", "b"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_second_type_of_a_name_is_refused_with_both_plugins) {
  Catalog catalog;
  catalog.add(type("a", "first"), Catalog::Duplicate::refuse);
  const Error error =
      test::refusal_of([&] { catalog.add(type("a", "second"), Catalog::Duplicate::refuse); });
  BOOST_TEST((error.code() == Code::invalid_argument));
  BOOST_TEST(error.what() == std::string("plugin 'second' brings the node type 'a', which plugin "
                                         "'first' has brought already. Rename it, or load "
                                         "only one of the two plugins."));
  BOOST_TEST(catalog.find("a")->plugin() == "first");
}

BOOST_AUTO_TEST_CASE(a_second_type_replaces_the_first_where_that_is_wanted_and_logs_it) {
  Catalog catalog;
  catalog.add(type("a", "first"), Catalog::Duplicate::refuse);
  std::string logged;
  set_log_sink([&](Level, std::string_view message) { logged += message; });
  catalog.add(type("a", "second"), Catalog::Duplicate::replace);
  set_log_sink({});
  BOOST_TEST(catalog.find("a")->plugin() == "second");
  BOOST_TEST(logged == "the node type 'a' of plugin 'second' replaces that of plugin 'first'");
}

BOOST_AUTO_TEST_CASE(families_and_extensions_are_listed_in_the_order_they_came) {
  Catalog catalog;
  heddle_model_desc one{}, two{};
  catalog.add(ModelFamily{&one, "p", nullptr});
  catalog.add(ModelFamily{&two, "q", nullptr});
  BOOST_REQUIRE_EQUAL(catalog.families().size(), 2u);
  BOOST_TEST(catalog.families()[1].desc == &two);
  catalog.add("kind", Extension{&one, "p", nullptr});
  catalog.add("kind", Extension{&two, "q", nullptr});
  BOOST_REQUIRE_EQUAL(catalog.extensions("kind").size(), 2u);
  BOOST_TEST(catalog.extensions("kind")[0].plugin == "p");
  BOOST_TEST(catalog.extensions("none").empty());
}

BOOST_AUTO_TEST_CASE(what_has_a_name_that_is_there_replaces_it) {
  struct Named {
    std::uint32_t size;
    const char* name;
  };
  const Named first{sizeof(Named), "euler"}, other{sizeof(Named), "heun"},
      second{sizeof(Named), "euler"};
  Catalog catalog;
  catalog.add("org.example.names/0", Extension{&first, "p", nullptr});
  catalog.add("org.example.names/0", Extension{&other, "p", nullptr});
  catalog.add("org.example.names/0", Extension{&second, "q", nullptr});
  const auto& names = catalog.extensions("org.example.names/0");
  BOOST_REQUIRE_EQUAL(names.size(), 2u);
  BOOST_TEST((names[0].desc == &second && names[1].desc == &other));
  BOOST_TEST(names[0].plugin == "q");
}

BOOST_AUTO_TEST_CASE(choices_are_those_of_the_widget_and_those_of_its_registry_kind) {
  struct Named {
    std::uint32_t size;
    const char* name;
  };
  const Named first{sizeof(Named), "first"}, second{sizeof(Named), "second"},
      nameless{sizeof(Named), nullptr}, small{4, "small"};
  Catalog catalog;
  for (const Named* named : {&first, &second, &nameless, &small})
    catalog.add("org.example.names/0", Extension{named, "p", nullptr});
  const char* const own[] = {"own", nullptr};
  heddle_widget widget = test::choice_widget(own);
  BOOST_TEST(catalog.choices(widget) == (Names{"own"}), boost::test_tools::per_element());
  widget.source = "org.example.names/0";
  BOOST_TEST(catalog.choices(widget) == (Names{"own", "first", "second"}),
             boost::test_tools::per_element());
  widget.choices = nullptr;
  BOOST_TEST(catalog.choices(widget) == (Names{"first", "second"}),
             boost::test_tools::per_element());
  BOOST_TEST(catalog.choices(test::text_widget("x")).empty());
}

BOOST_AUTO_TEST_CASE(files_and_their_places_come_from_the_lister) {
  Catalog catalog;
  const heddle_widget widget = test::source_widget(HEDDLE_WIDGET_FILE, "vae");
  BOOST_TEST(!catalog.lists_files());
  BOOST_TEST(catalog.choices(widget).empty());
  BOOST_TEST(catalog.places(widget).empty());
  catalog.set_file_lister([](std::string_view folder, std::int32_t kind) {
    return Names{std::string(folder), std::to_string(kind)};
  });
  BOOST_TEST(catalog.lists_files());
  BOOST_TEST(catalog.choices(widget) == (Names{"vae", "7"}), boost::test_tools::per_element());
  BOOST_TEST(catalog.places(widget).empty());
  test::list_sample_files(catalog);
  BOOST_TEST(catalog.places(widget) == (Names{"models/vae"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(choices_that_are_made_of_files_are_there_with_all_of_them) {
  Catalog catalog;
  heddle_widget widget = test::source_widget(HEDDLE_WIDGET_FILE, "vae");
  static const char* const choices[] = {"two|small/two_in.|small/two_out.",
                                        "half|small/two_in.|small/x", "plain", nullptr};
  widget.choices = choices;
  BOOST_TEST(catalog.choices(widget) == (Names{"plain"}), boost::test_tools::per_element());
  catalog.set_file_lister([](std::string_view folder, std::int32_t) {
    return folder == "small" ? Names{"two_in.pth", "two_out.safetensors"} : Names{"a.pth"};
  });
  BOOST_TEST(catalog.choices(widget) == (Names{"a.pth", "two", "plain"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
