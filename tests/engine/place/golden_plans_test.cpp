// Every tests/golden/plans/NAME.json is a question, and NAME.plan beside it the plan, or what it is
// refused with. HEDDLE_UPDATE_GOLDEN=1 writes the answers anew: read the difference before it is
// committed.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>

#include "engine/explain/plan_dot.h"
#include "tests/support/golden_files.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(golden_plans, *boost::unit_test::label("long"))

BOOST_AUTO_TEST_CASE(every_case_is_planned_as_it_is_written_down) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so",
                            std::filesystem::path(HEDDLE_PLUGINS_DIR) / "encoders.so"});
  const std::vector<std::filesystem::path> paths = test::files_in("golden/plans", ".json");
  BOOST_TEST(paths.size() >= 40u);
  for (std::filesystem::path path : paths) BOOST_TEST_CONTEXT(path.stem().string()) {
      const test::TemporaryFolder folder;
      const test::PlanCase question(
          engine::parse_json(test::read_text(path), path.filename().string()), *plugins.catalog,
          folder.path());
      const std::string answer = question.text();
      path.replace_extension(".plan");
      if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr)
        std::ofstream(path, std::ios::binary) << answer;
      BOOST_TEST(answer == test::read_text(path));
      BOOST_TEST(answer == question.text());  // the same question has the same answer
    }
}

// NAME.dot beside a question is its plan as a drawing.
BOOST_AUTO_TEST_CASE(drawings_are_as_they_are_written_down) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so",
                            std::filesystem::path(HEDDLE_PLUGINS_DIR) / "encoders.so"});
  const std::vector<std::filesystem::path> paths = test::files_in("golden/plans", ".dot");
  BOOST_TEST(paths.size() >= 2u);
  for (std::filesystem::path path : paths) BOOST_TEST_CONTEXT(path.stem().string()) {
      const std::filesystem::path drawn = path;
      path.replace_extension(".json");
      const test::TemporaryFolder folder;
      const test::PlanCase question(
          engine::parse_json(test::read_text(path), path.filename().string()), *plugins.catalog,
          folder.path());
      const std::string answer =
          engine::plan_dot(question.graph(), question.plan(), question.topology());
      if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr)
        std::ofstream(drawn, std::ios::binary) << answer;
      BOOST_TEST(answer == test::read_text(drawn));
    }
}

BOOST_AUTO_TEST_SUITE_END()
