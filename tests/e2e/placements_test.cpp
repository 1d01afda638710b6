// The picture of graphs/scene.json, byte for byte, however its nodes and its model are placed on CPU devices.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>

#include "tests/support/placed_runs.h"

using namespace heddle;
using core::CallPlacement;
using core::CallSpec;
using core::Model;
using core::Node;
using core::Split;

namespace {

struct Scene {
  test::PlacedRuns runs{{.names = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}, .compute = {{"cpu", "f32"}}, .threads = 1},
                        {HEDDLE_PLUGINS_DIR},
                        {HEDDLE_SOURCE_DIR "/graphs/models"}};

  // Few steps, so that the test is short; `change`: pairs of a pattern and what replaces it.
  static std::string flow(const std::vector<std::pair<std::string, std::string>>& change = {}) {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/scene.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text = std::regex_replace(text, std::regex("\"steps\": \\d+"), "\"steps\": 3");
    for (const auto& [from, to] : change) {
      const std::string changed = std::regex_replace(text, std::regex(from), to);
      BOOST_TEST_REQUIRE(changed != text, "the pattern is not in the workflow: " << from);
      text = changed;
    }
    return text;
  }
  std::vector<std::byte> picture(const std::string& flow, core::CallPlacer placer = nullptr) { return runs.run(flow, "6", std::move(placer)); }
};

std::string device_of(const std::string& type, const std::string& device) {
  return "\"class_type\": \"" + type + "\", \"device\": \"" + device + "\"";
}

// Divides the calls of one caller; the others stay at home.
core::CallPlacer for_caller(const std::string& type, std::function<CallPlacement(const Model&, const CallSpec&)> divide) {
  return [type, divide = std::move(divide)](const Node& caller, std::uint32_t home, const Model& model, const CallSpec& call) {
    return caller.type->name() == type ? divide(model, call) : CallPlacement{Split::none, {home}, {}, {}, {}};
  };
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placements, Scene)

BOOST_AUTO_TEST_CASE(encoders_and_decoder_elsewhere) {
  const auto alone = picture(flow());
  BOOST_TEST_REQUIRE(alone.size() == 4u * 256 * 256 * 3);
  BOOST_TEST((picture(flow({{"\"class_type\": \"CLIPTextEncode\"", device_of("CLIPTextEncode", "cpu:1")},
                            {"\"class_type\": \"VAEDecode\"", device_of("VAEDecode", "cpu:2")}})) == alone));
}

BOOST_AUTO_TEST_CASE(layers_over_two_three_and_four_devices) {
  const auto alone = picture(flow());
  for (const std::vector<double>& shares : {std::vector<double>{1, 1}, {1, 4}, {1, 1, 1}, {3, 1, 2}, {1, 1, 1, 1}}) {
    std::vector<std::uint32_t> devices;
    for (std::uint32_t d = 0; d < shares.size(); ++d) devices.push_back(d);
    const auto split = picture(flow(), [&](const Node&, std::uint32_t, const Model& model, const CallSpec&) { return test::layers(model, devices, shares); });
    BOOST_TEST((split == alone), "over " << shares.size());
  }
}

BOOST_AUTO_TEST_CASE(the_two_sets_of_a_guided_step) {
  const auto alone = picture(flow());
  const auto split = picture(flow(), for_caller("KSampler", [](const Model&, const CallSpec& call) {
                               BOOST_TEST(call.sets.size() == 2u);
                               return CallPlacement{Split::sets, {0, 1}, {}, {0, 1}, {}};
                             }));
  BOOST_TEST((split == alone));
}

BOOST_AUTO_TEST_CASE(the_items_of_a_batch) {
  const std::string four = flow({{"\"batch_size\": 1", "\"batch_size\": 4"}});
  const auto alone = picture(four);
  BOOST_TEST_REQUIRE(alone.size() == 4u * 4 * 256 * 256 * 3);
  for (const std::vector<double>& shares : {std::vector<double>{1, 1}, {3, 1}, {1, 1, 1, 1}}) {
    std::vector<std::uint32_t> devices;
    for (std::uint32_t d = 0; d < shares.size(); ++d) devices.push_back(d);
    const auto divide = [&](const Model&, const CallSpec&) { return CallPlacement{Split::batch, devices, {}, {}, shares}; };
    BOOST_TEST((picture(four, for_caller("KSampler", divide)) == alone), "denoising over " << shares.size());
    BOOST_TEST((picture(four, for_caller("VAEDecode", divide)) == alone), "decoding over " << shares.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
