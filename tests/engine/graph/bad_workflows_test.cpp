// Every tests/golden/bad_workflows/NAME.json has what is said about it in NAME.txt beside it: a
// line for every problem, "error: " or "warning: " in front; what parse_workflow() throws stands
// there as it is.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/graph/bind.h"
#include "tests/support/golden_files.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

Catalog catalog_with_files() {
  Catalog catalog = test::test_catalog();
  {
    test::CatalogBuilder builder(catalog);
    builder.add("test.empty")
        .in("file", "STRING", test::source_widget(HEDDLE_WIDGET_FILE, "nothing"))
        .in("folder", "STRING", test::source_widget(HEDDLE_WIDGET_FOLDER, "nothing"))
        .out("IMAGE");
  }
  test::list_sample_files(catalog);
  catalog.set_plugin_folders({"plugins", "more/plugins"});
  return catalog;
}

std::string said_about(const std::string& text, const std::string& name, const Catalog& catalog) {
  std::string said;
  try {
    for (const Problem& problem : engine::bind(parse_workflow(text, name), catalog).problems) {
      said += problem.severity == Problem::Severity::error ? "error: " : "warning: ";
      said += problem.message + "\n";
    }
  } catch (const Error& error) {
    said += std::string(error.what()) + "\n";
  }
  return said;
}

BOOST_AUTO_TEST_SUITE(bad_workflows)

BOOST_AUTO_TEST_CASE(every_bad_workflow_gets_the_messages_beside_it) {
  const Catalog catalog = catalog_with_files();
  const std::vector<std::filesystem::path> paths = test::files_in("golden/bad_workflows", ".json");
  BOOST_TEST(paths.size() > 15u);
  for (const std::filesystem::path& path : paths) {
    const std::string said = said_about(test::read_text(path), path.filename(), catalog);
    const std::string expected =
        test::read_text(std::filesystem::path(path).replace_extension(".txt"));
    BOOST_TEST(said == expected, path.filename() << ": got\n" << said << "expected\n" << expected);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
