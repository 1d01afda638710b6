// The picture of graphs/scene.json, byte for byte, however its nodes and its model are placed: on
// CPU devices, and on fakes, which compute by the same kernels but have memories of their own and
// run in any order that their streams and events allow.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <regex>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/placed_runs.h"

using namespace heddle;
using engine::CallPlacement;
using engine::CallSpec;
using engine::Model;
using engine::Node;
using engine::ParallelMode;

namespace {

// Devices that a picture is spread over: four, numbered as in the selection.
struct Machine {
  const char* name;
  std::vector<std::string> devices;
  const char* fakes;  // options of the fake devices
};
std::ostream& operator<<(std::ostream& out, const Machine& machine) { return out << machine.name; }

const std::vector<std::string> kFakes{"fake:0", "fake:1", "fake:2", "fake:3"};
const std::vector<Machine> kMachines{
    {"processors", {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}, "{}"},
    {"peers", kFakes, R"({"shuffle": 7, "peer_reads": true})"},
    {"strangers", kFakes, R"({"shuffle": 8, "peer": false})"},
    {"mixed", {"cpu:0", "fake:0", "cpu:1", "fake:1"}, R"({"shuffle": 9})"},
};

struct Scene {
  explicit Scene(const Machine& machine)
      : runs({.names = machine.devices,
              .compute = test::all_in_f32(machine.devices),
              .threads = 1,
              .options = {{"fake", machine.fakes}}},
             {HEDDLE_PLUGINS_DIR, HEDDLE_FAKE_DEVICE_DIR}, {HEDDLE_SOURCE_DIR "/graphs/models"}) {}

  // Few steps and a small picture, so that the test is short; `change`: pairs of a pattern and what
  // replaces it.
  static std::string flow(const std::vector<std::pair<std::string, std::string>>& change = {}) {
    std::vector<std::pair<std::string, std::string>> all{
        {"\"width\": 256, \"height\": 256", "\"width\": 128, \"height\": 128"}};
    all.insert(all.end(), change.begin(), change.end());
    return whole_flow(all);
  }
  // Of 256 x 256.
  static std::string whole_flow(
      const std::vector<std::pair<std::string, std::string>>& change = {}) {
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
  static std::string flow_of_two() { return flow({{"\"batch_size\": 1", "\"batch_size\": 2"}}); }
  static std::string flow_of_four() { return flow({{"\"batch_size\": 1", "\"batch_size\": 4"}}); }
  std::vector<std::byte> picture(const std::string& flow, engine::CallPlacer placer = nullptr) {
    return runs.run(flow, "6", std::move(placer));
  }

  // On one CPU device, for all machines; made once.
  static const std::vector<std::byte>& alone(const std::string& flow) {
    static std::map<std::string, std::vector<std::byte>> pictures;
    auto& picture = pictures[flow];
    if (picture.empty()) picture = Scene({"one", {"cpu:0"}, "{}"}).picture(flow);
    return picture;
  }

  test::PlacedRuns runs;
};

std::string device_of(const std::string& type, const std::string& device) {
  return "\"class_type\": \"" + type + "\", \"device\": \"" + device + "\"";
}

// Divides the calls of one caller; the others stay at home.
engine::CallPlacer for_caller(
    const std::string& type,
    std::function<CallPlacement(const Model&, const CallSpec&)> parallelize) {
  return [type, parallelize = std::move(parallelize)](const Node& caller, std::uint32_t home,
                                                      const Model& model, const CallSpec& call) {
    return caller.type->name() == type ? parallelize(model, call)
                                       : CallPlacement{ParallelMode::none, {home}, {}, {}, {}};
  };
}

// |a - b| / |b|, of f32 elements.
double byte_picture_error(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  BOOST_TEST_REQUIRE(a.size() == b.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    difference += (double(x) - y) * (double(x) - y);
    whole += double(y) * y;
  }
  return std::sqrt(difference / whole);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(placements)

BOOST_DATA_TEST_CASE(one_device_or_encoders_and_decoder_elsewhere, kMachines, machine) {
  Scene scene(machine);
  BOOST_TEST_REQUIRE(Scene::alone(Scene::whole_flow()).size() == 4u * 256 * 256 * 3);
  BOOST_TEST((scene.picture(Scene::whole_flow()) == Scene::alone(Scene::whole_flow())));
  const auto elsewhere = Scene::whole_flow(
      {{"\"class_type\": \"CLIPTextEncode\"", device_of("CLIPTextEncode", machine.devices[1])},
       {"\"class_type\": \"VAEDecode\"", device_of("VAEDecode", machine.devices[2])}});
  BOOST_TEST((scene.picture(elsewhere) == Scene::alone(Scene::whole_flow())));
}

BOOST_DATA_TEST_CASE(layers_over_two_three_and_four_devices, kMachines, machine) {
  Scene scene(machine);
  for (const std::vector<double>& fractions :
       {std::vector<double>{1, 1}, {1, 4}, {1, 1, 1}, {3, 1, 2}, {1, 1, 1, 1}, {1, 3, 1, 2}}) {
    std::vector<std::uint32_t> devices;
    for (std::uint32_t d = 0; d < fractions.size(); ++d) devices.push_back(d);
    const auto split = scene.picture(
        Scene::flow(), [&](const Node&, std::uint32_t, const Model& model, const CallSpec&) {
          return test::layers(model, devices, fractions);
        });
    BOOST_TEST((split == Scene::alone(Scene::flow())), "over " << fractions.size());
  }
}

BOOST_DATA_TEST_CASE(the_two_sets_of_a_guided_step, kMachines, machine) {
  const auto split = Scene(machine).picture(
      Scene::flow(), for_caller("KSampler", [](const Model&, const CallSpec& call) {
        BOOST_TEST(call.sets.size() == 2u);
        return CallPlacement{ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}};
      }));
  BOOST_TEST((split == Scene::alone(Scene::flow())));
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("long"))
BOOST_DATA_TEST_CASE(the_items_of_a_batch, kMachines, machine) {
  const std::string four = Scene::flow_of_four();
  BOOST_TEST_REQUIRE(Scene::alone(four).size() == 4u * 4 * 128 * 128 * 3);
  Scene scene(machine);
  for (const std::vector<double>& fractions : {std::vector<double>{1, 1}, {3, 1}, {1, 1, 1, 1}}) {
    std::vector<std::uint32_t> devices;
    for (std::uint32_t d = 0; d < fractions.size(); ++d) devices.push_back(d);
    const auto parallelize = [&](const Node& caller, std::uint32_t home, const Model&,
                                 const CallSpec&) {
      const std::string_view type = caller.type->name();
      if (type == "KSampler" || type == "VAEDecode")
        return CallPlacement{ParallelMode::data, devices, {}, {}, fractions};
      return CallPlacement{ParallelMode::none, {home}, {}, {}, {}};
    };
    BOOST_TEST((scene.picture(four, parallelize) == Scene::alone(four)),
               "over " << fractions.size());
  }
}

// Tokens or matrices divided: sums are added up in another order, so the last bits differ, but
// neither between repeats nor between machines.
BOOST_TEST_DECORATOR(*boost::unit_test::label("long"))
BOOST_DATA_TEST_CASE(tokens_and_matrices_over_two_and_four_devices, kMachines, machine) {
  static std::map<std::string, std::vector<std::byte>> pictures;
  const std::vector<std::byte>& alone = Scene::alone(Scene::flow());
  Scene scene(machine);
  for (const ParallelMode mode : {ParallelMode::sequence, ParallelMode::tensor})
    for (const std::vector<double>& fractions : {std::vector<double>{1, 1}, {1, 2, 1, 1}}) {
      std::vector<std::uint32_t> devices;
      for (std::uint32_t d = 0; d < fractions.size(); ++d) devices.push_back(d);
      const auto divided =
          scene.picture(Scene::flow(), for_caller("KSampler", [&](const Model&, const CallSpec&) {
                          return CallPlacement{mode, devices, {}, {}, {}, fractions};
                        }));
      const std::string name =
          std::string(engine::parallel_name(mode)) + " over " + std::to_string(fractions.size());
      const double error = byte_picture_error(divided, alone);
      BOOST_TEST(error < 1e-5, name << ": " << error);
      BOOST_TEST(error > 0, name << " was not divided at all");
      const auto [first, is_new] = pictures.try_emplace(name, divided);
      BOOST_TEST((first->second == divided), name << " again");
    }
}

// However a call is divided: weights that find no room on its devices are streamed.
BOOST_AUTO_TEST_CASE(budgets_that_are_too_small_for_the_weights_change_no_byte) {
  const test::FakeControl control;
  const Machine& machine = kMachines[2];
  const std::string flow = Scene::flow(
      {{"\"class_type\": \"(CLIPTextEncode|VAEDecode)\"", device_of("$1", machine.devices[3])},
       {"\"class_type\": \"KSampler\"", device_of("KSampler", machine.devices[0])},
       {"\"batch_size\": 1", "\"batch_size\": 2"}});
  const std::vector<double> fractions{1, 1};
  for (const ParallelMode mode : {ParallelMode::none, ParallelMode::layers, ParallelMode::cfg,
                                  ParallelMode::data, ParallelMode::sequence, ParallelMode::tensor})
    BOOST_TEST_CONTEXT(engine::parallel_name(mode)) {
      const auto parallelize = for_caller("KSampler", [&](const Model& model, const CallSpec&) {
        if (mode == ParallelMode::none) return CallPlacement{mode, {0}, {}, {}, {}};
        if (mode == ParallelMode::layers) return test::layers(model, {0, 1}, fractions);
        if (mode == ParallelMode::cfg) return CallPlacement{mode, {0, 1}, {}, {0, 1}, {}};
        if (mode == ParallelMode::data) return CallPlacement{mode, {0, 1}, {}, {}, fractions};
        return CallPlacement{mode, {0, 1}, {}, {}, {}, fractions};
      });
      const auto draw = [&](std::uint64_t budget) {
        Scene scene(machine);
        for (const std::uint32_t d : {0u, 1u})
          scene.runs.environment().topology.devices[d].budget = budget;
        control->reset();
        std::vector<std::byte> picture = scene.picture(flow, parallelize);
        return std::pair(std::move(picture), control->weights(0));
      };
      const auto [resident, made] = draw(0);
      const auto [streamed, made_again] = draw(15 << 20);
      BOOST_TEST((resident == streamed));
      BOOST_TEST(made_again > made);
    }
}

namespace {

// Eight, too, which two machines of this file do not have.
const Machine kEight{
    "eight",
    {"fake:0", "fake:1", "fake:2", "fake:3", "fake:4", "fake:5", "fake:6", "fake:7"},
    R"({"shuffle": 11, "peer_reads": true})"};

// Both sets, and two shares of the items, as the mode has them; groups of `fractions.size()`.
CallPlacement grouped(const Model& model, ParallelMode mode, const std::vector<double>& fractions) {
  CallPlacement placement;
  if (has(mode, ParallelMode::layers))
    placement.of_block = test::layers(model, {0}, fractions).of_block;
  placement.parallel = mode;
  std::uint32_t groups = 1;
  if (has(mode, ParallelMode::cfg)) placement.of_set = {0, 1}, groups *= 2;
  if (has(mode, ParallelMode::data)) placement.item_fractions = {0.75, 0.25}, groups *= 2;
  if (has(mode, engine::kRanksExchange)) placement.rank_fractions = fractions;
  for (std::uint32_t d = 0; d < groups * fractions.size(); ++d) placement.devices.push_back(d);
  return placement;
}

engine::CallPlacer sampler_in(ParallelMode mode, const std::vector<double>& fractions) {
  return for_caller("KSampler", [=](const Model& model, const CallSpec&) {
    return grouped(model, mode, fractions);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(modes_that_keep_the_bytes_keep_them_together) {
  using enum ParallelMode;
  const std::string two = Scene::flow_of_two();
  for (const Machine* machine : {&kMachines[1], &kMachines[2]}) {
    Scene scene(*machine);
    for (const ParallelMode mode : {cfg | layers, data | layers, cfg | data}) {
      const std::vector<double> ranks(has(mode, layers) ? 2 : 1, 1);
      BOOST_TEST((scene.picture(two, sampler_in(mode, ranks)) == Scene::alone(two)),
                 machine->name << ": " << engine::parallel_name(mode));
    }
  }
  Scene scene(kEight);
  BOOST_TEST((scene.picture(two, sampler_in(cfg | data | layers, {3, 1})) == Scene::alone(two)));
  BOOST_TEST((scene.picture(two, sampler_in(cfg | layers, {1, 2, 1, 1})) == Scene::alone(two)));
}

// Groups that divide tokens or rows give what one such group gives, with the same ranks.
BOOST_AUTO_TEST_CASE(groups_of_ranks_give_the_bytes_of_one_group,
                     *boost::unit_test::label("long")) {
  using enum ParallelMode;
  for (const Machine* machine : {&kMachines[1], &kMachines[2], &kEight}) {
    Scene scene(*machine);
    const std::vector<double> ranks(machine == &kEight ? 4 : 2, 1);
    for (const ParallelMode mode : {sequence, tensor}) {
      const auto one = scene.picture(Scene::flow(), sampler_in(mode, ranks));
      const auto two = scene.picture(Scene::flow(), sampler_in(cfg | mode, ranks));
      BOOST_TEST((one == two), machine->name << ": " << engine::parallel_name(cfg | mode));
      BOOST_TEST((one != Scene::alone(Scene::flow())));
    }
  }
}

// By the simulated clock. In the time of a byte on a link a device computes a hundred operations,
// ten times fewer than an H100 beside NVLink: groups of two send less than one of four.
BOOST_AUTO_TEST_CASE(combined_modes_take_less_time_than_each_of_them) {
  using enum ParallelMode;
  const test::FakeControl control;
  const Machine machine{"slow", kFakes, R"({"flops": 1e9, "launch_seconds": 1e-7,
      "links": {"peer": {"bandwidth": 1e7, "latency": 1e-7}}})"};
  const auto seconds = [&](const std::string& flow, ParallelMode mode, std::size_t ranks) {
    Scene scene(machine);
    control->reset();
    // Up to the sampler: the decode is the same and takes longer.
    scene.runs.run_only(flow, "5", sampler_in(mode, std::vector<double>(ranks, 1)));
    double last = 0;
    for (std::uint32_t d = 0; d < 4; ++d) last = std::max(last, control->now(d));
    return last;
  };
  const std::string one = Scene::whole_flow(),
                    four = Scene::whole_flow({{"\"batch_size\": 1", "\"batch_size\": 4"}});
  const double sets = seconds(one, cfg, 1), both = seconds(one, cfg | sequence, 2);
  BOOST_TEST(both < 0.95 * sets);
  BOOST_TEST(both < 0.95 * seconds(one, sequence, 4));
  const double items = seconds(four, data, 1), all = seconds(four, cfg | data, 1);
  BOOST_TEST(all < 0.95 * items);
  BOOST_TEST(all < 0.95 * seconds(four, cfg, 1));
}

BOOST_AUTO_TEST_SUITE_END()
