// The least budget that `heddle plan --min-memory` tells draws the picture of scene.json, byte for
// byte; with a byte less it is refused before anything runs, and the refusal says what the least
// is.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "heddle/abi/base.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

struct MinMemory {
  test::TemporaryFolder folder;
  std::string device;
  std::string limited = device;  // whose budget it is: the device's, or "host"

  static std::string flow() {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/scene.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text = std::regex_replace(text, std::regex("\"(width|height)\": \\d+"), "\"$1\": 64");
    return std::regex_replace(text, std::regex("\"steps\": \\d+"), "\"steps\": 2");
  }
  EngineOptions options(std::uint64_t budget) const {
    EngineOptions options = test::fake_engine_options({device});
    options.compute = {{device, "f32"}};
    options.model_dirs = {HEDDLE_SOURCE_DIR "/graphs/models"};
    options.output_dir = folder.path() / "output";
    if (budget > 0 && limited == "host") options.host_budget = budget;
    if (budget > 0 && limited != "host") options.budgets = {{limited, budget}};
    return options;
  }
  std::vector<float> draw(std::uint64_t budget) const {
    Engine engine(options(budget));
    return engine.start(engine.parse(flow()), {.fetch = {"decode.IMAGE"}})
        .wait()
        .image("decode.IMAGE")
        .pixels;
  }
  std::uint64_t least() const {
    Engine engine(options(0));
    const engine::Json reported =
        engine::parse_json(engine.plan_min_memory(engine.parse(flow()), true), "min-memory");
    for (std::size_t i = 0; i < reported.size(); ++i)
      if (reported.at(i).at("device").as_string() == limited)
        return reported.at(i).at("min_bytes").as_uint64();
    throw std::logic_error("no least is told of " + limited);
  }
  void check() const {
    const std::uint64_t bytes = least();
    const std::vector<float> good = draw(0);
    BOOST_TEST_REQUIRE(good.size() == 64u * 64 * 3);
    BOOST_TEST((draw(bytes) == good));
    try {
      draw(bytes - 1);
      BOOST_ERROR("a byte less was enough");
    } catch (const EngineError& error) {
      const std::string reason = error.what();
      BOOST_TEST(error.code() == HEDDLE_OUT_OF_MEMORY);
      BOOST_TEST(reason.find(engine::cat(device, ": its budget is ")) != std::string::npos, reason);
      BOOST_TEST(reason.find(engine::cat("(", bytes, " bytes)")) != std::string::npos, reason);
      BOOST_TEST(reason.find("node '") != std::string::npos, reason);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(min_memory)

BOOST_AUTO_TEST_CASE(is_enough_and_a_byte_less_is_refused_on_a_device_of_its_own_memory) {
  const test::FakeControl control;
  MinMemory({}, "fake:0").check();
}

BOOST_AUTO_TEST_CASE(is_enough_and_a_byte_less_is_refused_on_the_cpu) {
  MinMemory({}, "cpu:0").check();
}

BOOST_AUTO_TEST_CASE(of_host_memory_is_enough_and_a_byte_less_is_refused) {
  MinMemory({}, "cpu:0", "host").check();
}

BOOST_AUTO_TEST_SUITE_END()
