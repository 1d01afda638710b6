// Qwen-Image Edit's text encoder with pictures, on several devices and with little memory: the same
// bytes.
#include <cstring>

#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/edit_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::EditFixture;

namespace {

struct PlacedEdits : EditFixture {
  const heddle::test::FakeControl control;

  PlacedEdits() { add_models("any"); }
  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    EngineOptions placed = options();
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    if (kind == "fake") placed.plugin_dirs.push_back(heddle::test::kFakePlugin);
    if (budget > 0) placed.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    placed.devices = std::move(devices);
    placed.compute = {{kind, "f32"}};
    placed.reference_kernels = true;
    return placed;
  }
  // Two pictures in a text, without an autoencoder.
  static std::vector<float> states(EngineOptions options, const std::string& hints = "") {
    Engine engine(std::move(options));
    const std::string encoded = node(
        "edit", "TextEncodeQwenImageEditPlus",
        cat(R"("clip": ["clip", 0], "prompt": "a fox", "image1": ["one", 0], "image2": ["two", 0])",
            hints));
    return engine
        .start(engine.parse(flow(encoded + look("edit", "edit"))), {{}, {"edit_first.value"}})
        .wait()
        .floats("edit_first.value", "cross_attn");
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_edits, PlacedEdits, *boost::unit_test::label("long"))

BOOST_AUTO_TEST_CASE(pictures_are_read_to_the_same_bytes_wherever_that_is_done) {
  const std::vector<float> alone = states(options_for({"cpu:0"}));
  BOOST_TEST(alone.size() > 2u * 160 * 24);
  BOOST_TEST(are_equal(alone, states(options_for({"fake:0"}))), "fake:0");
  BOOST_TEST(are_equal(alone, states(options_for({"fake:0", "fake:1"}))), "as planned");
  BOOST_TEST(are_equal(alone, states(options_for({"fake:0", "fake:1"}),
                                     R"(, "parallel": "layers", "device": "fake:0,fake:1")")),
             "layers");
}

BOOST_AUTO_TEST_CASE(pictures_are_read_to_the_same_bytes_in_little_memory) {
  const std::vector<float> alone = states(options_for({"fake:0"}));
  int read = 0;
  for (const std::uint64_t kilobytes : {24000, 18000, 16000, 8000, 4000}) {
    try {
      const std::vector<float> little = states(options_for({"fake:0"}, kilobytes << 10));
      ++read;
      BOOST_TEST(are_equal(alone, little), kilobytes << " KiB");
    } catch (const heddle::EngineError& error) {
      BOOST_TEST_MESSAGE(kilobytes << " KiB: " << error.what());
      break;
    }
  }
  BOOST_TEST(read > 1);
}

BOOST_AUTO_TEST_SUITE_END()
