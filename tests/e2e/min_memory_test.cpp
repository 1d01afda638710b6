// The least budget that `heddle plan --min-memory` tells draws the picture of scene.json, byte for
// byte and without a warning. A decode in tiles, which is told beside it, is done with less, and
// warns. With a byte less than that a run is refused before anything runs, and the refusal says
// what the least is.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <mutex>
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
  int side = 64;                 // too small for tiles

  struct Least {
    std::uint64_t whole = 0, tiled = 0;
  };
  struct Drawn {
    std::vector<float> pixels;
    std::vector<std::string> warnings;  // of tiles
  };

  std::string flow() const {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/scene.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text = std::regex_replace(text, std::regex("\"(width|height)\": \\d+"),
                              engine::cat("\"$1\": ", side));
    return std::regex_replace(text, std::regex("\"steps\": \\d+"), "\"steps\": 2");
  }
  EngineOptions options(std::uint64_t budget) const {
    EngineOptions options = test::fake_engine_options({device});
    options.compute = {{device, "f32"}};
    options.reference_kernels = side <= 64;  // they are slow
    options.model_dirs = {HEDDLE_SOURCE_DIR "/graphs/models"};
    options.output_dir = folder.path() / "output";
    if (budget > 0 && limited == "host") options.host_budget = budget;
    if (budget > 0 && limited != "host") options.budgets = {{limited, budget}};
    return options;
  }
  Drawn draw(std::uint64_t budget) const {
    Engine engine(options(budget));
    Drawn drawn;
    std::mutex mutex;
    const auto observe = [&](const Event& event) {
      const std::lock_guard lock(mutex);
      if (event.kind == Event::Kind::warning &&
          event.text.find("in tiles of ") != std::string_view::npos)
        drawn.warnings.emplace_back(event.text);
    };
    drawn.pixels =
        engine.start(engine.parse(flow()), {.observer = observe, .fetch = {"decode.IMAGE"}})
            .wait()
            .image("decode.IMAGE")
            .pixels;
    return drawn;
  }
  Least least() const {
    Engine engine(options(0));
    const engine::Json reported =
        engine::parse_json(engine.plan_min_memory(engine.parse(flow()), true), "min-memory");
    for (std::size_t i = 0; i < reported.size(); ++i) {
      const engine::Json& device = reported.at(i);
      if (device.at("device").as_string() != limited) continue;
      const std::uint64_t whole = device.at("min_bytes").as_uint64();
      const engine::Json* tiled = device.find("tiled_min_bytes");
      return {whole, tiled == nullptr ? whole : tiled->as_uint64()};
    }
    throw std::logic_error("no least is told of " + limited);
  }
  void check() const {
    const Least told = least();
    const Drawn good = draw(0);
    BOOST_TEST_REQUIRE(good.pixels.size() == std::size_t(side) * side * 3);
    const Drawn whole = draw(told.whole);
    BOOST_TEST((whole.pixels == good.pixels));
    BOOST_TEST(whole.warnings.size() == 0u);
    const std::uint64_t bytes = told.tiled;
    if (side > 64) {
      BOOST_TEST_REQUIRE(bytes < told.whole);
      const Drawn tiled = draw(bytes);
      BOOST_TEST_REQUIRE(!tiled.warnings.empty());
      BOOST_TEST(tiled.pixels.size() == good.pixels.size());
      BOOST_TEST((tiled.pixels != good.pixels));
    }
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
  MinMemory{{}, "fake:0"}.check();
}

BOOST_AUTO_TEST_CASE(is_enough_and_a_byte_less_is_refused_on_the_cpu) {
  MinMemory{{}, "cpu:0"}.check();
}

BOOST_AUTO_TEST_CASE(of_host_memory_is_enough_and_a_byte_less_is_refused) {
  MinMemory{{}, "cpu:0", "host"}.check();
}

BOOST_AUTO_TEST_CASE(of_a_whole_decode_keeps_the_bytes_and_that_in_tiles_is_enough) {
  const test::FakeControl control;
  MinMemory{{}, "fake:0", "fake:0", 128}.check();
}

BOOST_AUTO_TEST_CASE(of_a_whole_decode_on_the_cpu_keeps_the_bytes_and_that_in_tiles_is_enough) {
  MinMemory{{}, "cpu:0", "cpu:0", 128}.check();
}

BOOST_AUTO_TEST_CASE(is_told_of_a_decode_in_tiles_beside_that_of_the_whole) {
  const MinMemory of{{}, "cpu:0", "cpu:0", 128};
  Engine engine(of.options(0));
  const std::string text = engine.plan_min_memory(engine.parse(of.flow()));
  BOOST_TEST(text.find("cpu:0: at least ") == 0u, text);
  BOOST_TEST(
      text.find("\n  in tiles, which changes the result a little: at least ") != std::string::npos,
      text);
}

BOOST_AUTO_TEST_SUITE_END()
