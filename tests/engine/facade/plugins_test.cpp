// Nothing but plugins: what happens when one is taken away, put in another's place, or built by
// another compiler.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

namespace fs = std::filesystem;
using namespace heddle;
using test::engine_refusal;
using test::workflow;

BOOST_AUTO_TEST_SUITE(plugins)

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A plugin folder with links to some of the built plugins.
struct Folder {
  test::TemporaryFolder folder;
  explicit Folder(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const fs::path built = fs::path(HEDDLE_PLUGINS_DIR) / (std::string(name) + ".so");
      const fs::path sample = fs::path(HEDDLE_SAMPLE_PLUGINS_DIR) / (std::string(name) + ".so");
      fs::create_symlink(fs::exists(built) ? built : sample,
                         folder.path() / (std::string(name) + ".so"));
    }
  }
  EngineOptions options() const {
    EngineOptions o = test::engine_options();
    o.default_plugin_dir = folder.path();
    o.plugin_dirs.clear();
    return o;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(without_its_plugin_a_class_is_named_and_the_rest_works) {
  const Folder folder{"cpu", "sample_arithmetic"};
  Engine engine(folder.options());
  const std::string flow =
      workflow({{"1", R"({"class_type": "demo.hello", "inputs": {}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  BOOST_TEST(contains(engine_refusal([&] { engine.start(engine.parse(flow)); }), "demo.hello"));
  const std::string rest =
      workflow({{"1", R"({"class_type": "test.add", "inputs": {"a": 1, "b": 2}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  BOOST_TEST(engine.start(engine.parse(rest), {{}, {"2.out"}}).wait().text("2.out") == "3");
}

BOOST_AUTO_TEST_CASE(without_a_device_plugin_the_engine_says_so) {
  const Folder folder{"sample_hello"};
  BOOST_TEST(
      contains(engine_refusal([&] { Engine engine(folder.options()); }), "there is no device"));
}

BOOST_AUTO_TEST_CASE(a_plugin_named_later_replaces_a_class) {
  const Folder first{"cpu", "sample_hello", "sample_counter", "sample_arithmetic"};
  EngineOptions options = first.options();
  options.plugin_dirs = {fs::path(HEDDLE_SAMPLE_PLUGINS_DIR) / "replace"};
  Engine engine(options);
  const std::string flow =
      workflow({{"1", R"({"class_type": "demo.hello", "inputs": {}})"},
                {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
  BOOST_TEST(engine.start(engine.parse(flow), {{}, {"2.out"}}).wait().text("2.out") ==
             "Go away, world.");
}

#ifdef HEDDLE_CLANG_PLUGINS
BOOST_AUTO_TEST_CASE(a_plugin_built_by_clang_runs_beside_the_others) {
  for (const char* plugin : {HEDDLE_CLANG_PLUGINS}) {
    const Folder first{"cpu", "sample_hello", "sample_arithmetic"};
    EngineOptions options = first.options();
    options.plugin_dirs = {fs::path(plugin)};
    Engine engine(options);
    const std::string flow =
        workflow({{"1", R"({"class_type": "demo.hello", "inputs": {"name": "clang"}})"},
                  {"2", R"({"class_type": "demo.shout", "inputs": {"text": ["1", 0]}})"},
                  {"3", R"({"class_type": "test.keep", "inputs": {"value": ["2", 0]}})"}});
    BOOST_TEST(
        engine.start(engine.parse(flow), {{}, {"3.out"}}).wait().text("3.out") == "HELLO, CLANG! ",
        plugin);
  }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
