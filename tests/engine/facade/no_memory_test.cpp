// Runs whose threads find no memory: each ends with its result or with an error, and the engine
// goes on.
#include "tests/support/failing_new.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/engine_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::FailingNew;

BOOST_AUTO_TEST_SUITE(no_memory)

namespace {

constexpr int kWide = 24;

std::string flow(const test::TemporaryFolder& folder) {
  const std::string path =
      folder.write("model.safetensors", test::LayersFile{"model", kWide, 3}.bytes()).string();
  return test::workflow(
      {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
       {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
       {"loop",
        R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": 3}})"},
       {"later", R"({"class_type": "test.later", "inputs": {"value": 21}})"},
       {"keep_later", R"({"class_type": "test.keep", "inputs": {"value": ["later", 0]}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(whatever_allocation_of_a_runs_threads_fails_it_ends_and_the_next_is_right) {
  const test::TemporaryFolder folder;
  const std::string text = flow(folder);
  EngineOptions options = test::engine_options();
  options.threads = 2;
  options.reference_kernels = true;
  options.cache_bytes = 1;  // nothing is found in it
  Engine engine(options);
  const Workflow workflow = engine.parse(text);
  const auto run = [&] {
    return engine.start(workflow, {.fetch = {"keep.out"}}).wait().floats("keep.out");
  };
  const std::vector<float> right = run();
  int failed = 0;
  // The first ones each, then ever fewer; and many in a row, as when memory is really out.
  for (int nth = 0; nth < 6000; nth += 1 + nth / 40)
    for (const int count : {1, 25}) {
      engine.unload();
      try {
        const FailingNew failing(nth, count);
        run();
      } catch (const EngineError& error) {
        ++failed;
        BOOST_TEST(std::string(error.what()) != "");
      } catch (const std::bad_alloc&) {
        ++failed;
      }
    }
  if (HEDDLE_FAILING_NEW != 0) BOOST_TEST(failed > 0);
  engine.unload();
  BOOST_TEST(run() == right);
}

BOOST_AUTO_TEST_SUITE_END()
