// What calls of models ask of devices, on models whose figures can be counted by hand.
#include "engine/program/workload.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/place/estimate.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/random_tasks.h"
#include "tests/support/refusal.h"
#include "tests/support/shape_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

constexpr std::int64_t kWidth = 512, kTokens = 64;

struct Fixture {
  test::TemporaryFolder folder;
  Value chain(int layers, std::int64_t width = kWidth) {
    return test::chain_model(folder / "chain.safetensors", layers, width, {});
  }
  static const Model& model(const Value& value) { return *get_model(*value); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(load, Fixture)

BOOST_AUTO_TEST_CASE(flops_and_bytes_are_those_of_the_blocks) {
  const Value value = chain(3);
  const CallLoad load = call_load(
      model(value),
      test::shape_call(value, {.batch = 2, .tokens = kTokens, .steps = 7, .sets = 2}, kWidth),
      HEDDLE_F16);
  BOOST_TEST(load.set_count == 2u);
  BOOST_TEST(load.step_count == 7u);
  BOOST_TEST(load.batch == 2);
  BOOST_TEST(load.weight_bytes == std::uint64_t(3 * kWidth * kWidth * 2));
  for (std::uint32_t set = 0; set < 2; ++set) {
    const BlockWork& work = load.work(1, set);
    BOOST_TEST(work.flops == 2.0 * 2 * kTokens * kWidth * kWidth);
    BOOST_TEST(work.output_bytes.at(0) == std::uint64_t(2 * kTokens * kWidth * 2));
    BOOST_TEST(work.peak_bytes == work.output_bytes.at(0));
    BOOST_TEST(work.ops.size() == 1u);
  }
  BOOST_TEST(load.input_bytes[0][0] == std::uint64_t(2 * kTokens * kWidth * 2));
}

BOOST_AUTO_TEST_CASE(weights_are_counted_in_the_type_that_the_device_computes_in) {
  const Value value = chain(1);
  CallSpec call = test::shape_call(value, {.tokens = kTokens}, kWidth);
  call.sets[0].steps["x"] = test::info_of(HEDDLE_F32, {1, kTokens, kWidth});
  BOOST_TEST(call_load(model(value), call, HEDDLE_F32).weight_bytes ==
             std::uint64_t(kWidth * kWidth * 4));
}

BOOST_AUTO_TEST_CASE(equal_blocks_are_recorded_once) {
  const Value value = chain(1000);
  const CallLoad load = call_load(
      model(value), test::shape_call(value, {.tokens = kTokens, .sets = 2}, kWidth), HEDDLE_F16);
  BOOST_TEST(load.blocks.size() == 1000u);
  BOOST_TEST(load.works.size() == 1u);
}

BOOST_AUTO_TEST_CASE(sets_of_other_shapes_have_work_of_their_own) {
  const Value value = chain(2);
  CallSpec call = test::shape_call(value, {.tokens = kTokens, .sets = 2}, kWidth);
  call.sets[1].steps["x"] = test::info_of(HEDDLE_F16, {1, 2 * kTokens, kWidth});
  const CallLoad load = call_load(model(value), call, HEDDLE_F16);
  BOOST_TEST(load.work(0, 1).flops == 2 * load.work(0, 0).flops);
}

// The same model, whose family allows its matrices to be divided by rows.
Model divisible(const Value& value, std::int64_t width) {
  Model model = *get_model(*value);
  Graph graph = *model.graph;
  for (Node& node : graph.nodes) node.shards = {{0, {{width, 1}}}};
  model.graph = std::make_shared<const Graph>(std::move(graph));
  return model;
}

BOOST_AUTO_TEST_CASE(a_matrix_with_a_short_side_or_without_leave_stays_whole) {
  const Value wide = chain(2),
              narrow = test::chain_model(folder / "narrow.safetensors", 2, 255, {});
  const auto load_of = [&](const Model& model, const Value& value, std::int64_t width) {
    return call_load(model, test::shape_call(value, {.tokens = kTokens}, width), HEDDLE_F16);
  };
  const CallLoad divided = load_of(divisible(wide, kWidth), wide, kWidth);
  BOOST_TEST(divided.whole_weights == 0u);
  BOOST_TEST(divided.whole.empty());
  BOOST_TEST(divided.rank_bytes(ParallelMode::tensor, 0.25, true) == divided.weight_bytes / 4);
  const CallLoad short_sides = load_of(divisible(narrow, 255), narrow, 255);
  const CallLoad without_leave = load_of(model(wide), wide, kWidth);
  for (const CallLoad& load : {short_sides, without_leave}) {
    BOOST_TEST(load.whole_weights == 2u);
    BOOST_TEST(load.whole_bytes == load.weight_bytes);
    BOOST_TEST(load.whole == std::vector<std::string>{"weight (2)"},
               boost::test_tools::per_element());
    // Nothing is divided, so the first device has all of it.
    BOOST_TEST(load.rank_bytes(ParallelMode::tensor, 0.5, true) == load.weight_bytes);
    BOOST_TEST(load.rank_bytes(ParallelMode::tensor, 0.5, false) == 0u);
  }
}

// The same model with its matrices in a gguf file, which allows them to be divided along an axis.
Model in_blocks(const Value& value, const test::TemporaryFolder& folder, const WeightShard& shard) {
  test::GgufContent content;
  for (const Node& node : get_model(*value)->graph->nodes)
    content.tensors.push_back({node.id,
                               test::kGgmlQ4_K,
                               {kWidth, kWidth},
                               std::string(std::size_t(kWidth * kWidth / 256 * 144), '\0')});
  Model model = divisible(value, kWidth);
  Graph graph = *model.graph;
  for (Node& node : graph.nodes) node.shards = {shard};
  model.graph = std::make_shared<const Graph>(std::move(graph));
  model.checkpoint = std::make_shared<const engine::Checkpoint>(
      open_checkpoint(folder.write("chain.gguf", test::gguf_bytes(content))));
  return model;
}

BOOST_AUTO_TEST_CASE(matrices_in_blocks_count_as_their_blocks_and_are_cut_between_them_only) {
  constexpr std::uint64_t kBytes = kWidth * kWidth / 256 * 144;
  const Value value = chain(2);
  const auto load_of = [&](const WeightShard& shard) {
    const Model model = in_blocks(value, folder, shard);
    return call_load(model, test::shape_call(value, {.tokens = kTokens}, kWidth), HEDDLE_F16);
  };
  const CallLoad by_rows = load_of({0, {{kWidth, 1}}}), by_blocks = load_of({1, {{kWidth, 256}}}),
                 inside = load_of({1, {{kWidth, 128}}});
  for (const CallLoad& load : {by_rows, by_blocks, inside}) {
    BOOST_TEST(load.weight_bytes == 2 * kBytes);
    BOOST_TEST(load.work(0, 0).bytes == double(kBytes + 2 * kTokens * kWidth * 2));
  }
  BOOST_TEST(by_rows.whole_weights == 0u);
  BOOST_TEST(by_blocks.whole_weights == 0u);
  BOOST_TEST(inside.whole_weights == 2u);
}

// The same model with its matrices in nvfp4 whose columns have scales.
Model with_scales(const Value& value, const test::TemporaryFolder& folder, std::int32_t axis) {
  std::vector<test::FileTensor> tensors;
  const auto add = [&](std::string name, const char* dtype, std::vector<std::int64_t> shape,
                       std::size_t bytes) {
    tensors.push_back({std::move(name), dtype, std::move(shape), std::string(bytes, '\0')});
  };
  Model model = divisible(value, kWidth);
  Graph graph = *model.graph;
  for (Node& node : graph.nodes) {
    const std::string form = R"({"format": "nvfp4"})";
    constexpr std::int64_t kInRow = kWidth / 16;  // scales of a row
    tensors.push_back({node.id + ".comfy_quant", "U8", {std::int64_t(form.size())}, form});
    add(node.id + ".weight", "U8", {kWidth, kWidth / 2}, kWidth * kWidth / 2);
    add(node.id + ".weight_scale", "F8_E4M3", {kWidth, kInRow}, kWidth * kInRow);
    add(node.id + ".weight_scale_2", "F32", {}, 4);
    add(node.id + ".pre_quant_scale", "BF16", {kWidth}, 2 * kWidth);
    node.weights = {{{node.id + ".weight", 0, -1}}};
    node.shards = {{axis, {{kWidth, 256}}}};  // columns are cut between blocks
  }
  test::write_safetensors(folder / "scaled.safetensors", tensors);
  model.graph = std::make_shared<const Graph>(std::move(graph));
  model.checkpoint =
      std::make_shared<const engine::Checkpoint>(open_checkpoint(folder / "scaled.safetensors"));
  return model;
}

BOOST_AUTO_TEST_CASE(scales_of_columns_lie_whole_beside_rows_and_in_part_beside_columns) {
  constexpr std::uint64_t kScale = 2 * kWidth;
  const Value value = chain(2);
  const auto load_of = [&](std::int32_t axis) {
    const Model model = with_scales(value, folder, axis);
    return call_load(model, test::shape_call(value, {.tokens = kTokens}, kWidth), HEDDLE_F16);
  };
  const CallLoad rows = load_of(0), columns = load_of(1);
  for (const CallLoad& load : {rows, columns}) {
    BOOST_TEST(load.weights == 4u);
    BOOST_TEST(load.rank_bytes(ParallelMode::tensor, 1.0, true) == load.weight_bytes);
  }
  const std::uint64_t matrices = rows.weight_bytes - 2 * kScale;
  BOOST_TEST(rows.rank_bytes(ParallelMode::tensor, 0.25, false) == matrices / 4 + 2 * kScale);
  BOOST_TEST(rows.whole == std::vector<std::string>{"the scales of weight (2)"},
             boost::test_tools::per_element());
  BOOST_TEST(columns.rank_bytes(ParallelMode::tensor, 0.25, false) == columns.weight_bytes / 4);
  BOOST_TEST(columns.whole.empty());
}

BOOST_AUTO_TEST_CASE(groups_are_everything_under_one_path) {
  BOOST_TEST(group_of("double.3.attn") == "double.3");
  BOOST_TEST(group_of("double.3") == "double.3");
  BOOST_TEST(group_of("embed.rope") == "embed");
  BOOST_TEST(group_of("join") == "join");
  BOOST_TEST(group_of("down.0.blocks.11.norm") == "down.0.blocks.11");
}

BOOST_AUTO_TEST_CASE(a_missing_input_is_named) {
  const Value value = chain(1);
  CallSpec call = test::shape_call(value, {.tokens = kTokens}, kWidth);
  call.sets[0].steps.clear();
  BOOST_TEST(std::string(test::refusal_of([&] {
                           call_load(model(value), call, HEDDLE_F16);
                         }).what()) == "the model's input 'x' is missing");
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_name_the_block) {
  const Value value = chain(2);
  CallSpec call = test::shape_call(value, {.tokens = kTokens}, kWidth + 1);
  BOOST_TEST(test::refusal_of([&] { call_load(model(value), call, HEDDLE_F16); })
                 .full()
                 .find("block layer.0") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct Estimates : Fixture {
  Topology topology = test::equal_devices(3, 1e9, 1e-6);
  std::vector<std::shared_ptr<const CallLoad>> loads;
  Value value;

  explicit Estimates() { use(4, {.batch = 4, .tokens = kTokens, .steps = 5, .sets = 2}); }
  void use(int layers, const test::CallSize& size) {
    value = chain(layers);
    loads.assign(3, std::make_shared<const CallLoad>(call_load(
                        model(value), test::shape_call(value, size, kWidth), HEDDLE_F16)));
  }
  CallEstimate of(const CallPlacement& placement, std::uint32_t home = 0,
                  const Costs& costs = {}) const {
    const Prices prices(topology, costs);
    return estimate({*model(value).graph, loads, home, prices}, placement);
  }
  CallPlacement alone(std::uint32_t device = 0) const {
    return {ParallelMode::none, {device}, {}, {}, {}};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(estimate_of_a_call, Estimates)

BOOST_AUTO_TEST_CASE(on_one_device_is_the_sum_of_the_blocks) {
  const Prices prices(topology, {});
  double seconds = 0;
  for (int b = 0; b < 4; ++b) {
    const BlockWork& work = loads[0]->work(std::uint32_t(b), 0);
    seconds += prices.rates(0).computing_seconds({OpKind::other, work.flops, work.bytes}) +
               double(work.ops.size()) * prices.rates(0).launch_seconds;
  }
  BOOST_TEST(of(alone()).seconds == 5 * 2 * seconds, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(elsewhere_than_home_costs_the_way_there_and_back_in_every_step) {
  const double copies = 5 * 2 * 2 * (1e-6 + double(loads[0]->input_bytes[0][0]) / 1e9);
  const double more = of(alone(1)).seconds - of(alone(0)).seconds;
  BOOST_TEST(more > 0);
  BOOST_TEST(more < copies);  // the second set's copy runs beside the first one's blocks
}

BOOST_AUTO_TEST_CASE(layers_cost_what_crosses_and_need_a_part_of_the_weights_each) {
  const CallPlacement layers{ParallelMode::layers, {0, 1}, {0, 0, 1, 1}, {}, {}};
  const CallEstimate one = of(alone()), two = of(layers);
  BOOST_TEST(two.transfer_bytes ==
             2 * 2 * loads[0]->work(1, 0).output_bytes[0]);  // both sets, there and home
  BOOST_TEST(two.seconds > 0.5 * one.seconds);
  BOOST_TEST(two.needs.size() == 2u);
  const std::uint64_t half = loads[0]->weight_bytes / 2;
  for (const DeviceNeed& need : two.needs) {
    BOOST_TEST(need.wanted_bytes > half);
    BOOST_TEST(need.wanted_bytes < one.needs[0].wanted_bytes);
  }
}

BOOST_AUTO_TEST_CASE(devices_that_take_turns_are_faster_where_power_limits_them) {
  use(4, {.batch = 4, .tokens = kTokens, .steps = 5, .sets = 1});
  topology = test::equal_devices(3, 1e15, 1e-12);
  const auto costs = [&](double half_time) {
    Costs costs;
    costs.devices[topology.devices[0].model] = {.flops_per_second = 1e9,
                                                .bytes_per_second = 1e15,
                                                .launch_seconds = 1e-12,
                                                .attention_flops_per_second = 1e9,
                                                .half_time_flops_per_second = half_time};
    return costs;
  };
  const CallPlacement layers{ParallelMode::layers, {0, 1}, {0, 0, 1, 1}, {}, {}},
      uneven{ParallelMode::layers, {0, 1}, {0, 0, 0, 1}, {}, {}};
  const double always = of(alone(), 0, costs(0)).seconds;
  const auto share = [&](const CallPlacement& placement, double half_time) {
    return of(placement, 0, costs(half_time)).seconds / always;
  };
  const auto copies = boost::test_tools::tolerance(1e-3);
  BOOST_TEST(share(alone(), 1.25e9) == 1.0, copies);
  BOOST_TEST(share(layers, 0) == 1.0, copies);
  BOOST_TEST(share(layers, 0.9e9) == 1.0, copies);  // measured in error: nothing is slower rested
  BOOST_TEST(share(layers, 1.25e9) == 0.8, copies);
  // One works three quarters of the time, half as rested as one that works half of it; the other a
  // quarter.
  BOOST_TEST(share(uneven, 1.25e9) == 0.75 / 1.125 + 0.25 / 1.25, copies);
  // What copies are held against does not rest.
  const std::uint64_t half = loads[0]->weight_bytes / 2;
  for (DeviceFacts& device : topology.devices)
    device.budget = of(layers).needs[0].wanted_bytes - half / 2;
  const auto streamed = [&](double half_time) {
    const Prices prices(topology, costs(half_time));
    return estimate_streamed({*model(value).graph, loads, 0, prices}, layers);
  };
  BOOST_TEST(streamed(0).fits());
  BOOST_TEST(streamed(0).page_bytes > 0);
  BOOST_TEST(streamed(1.25e9).seconds == streamed(0).seconds);
}

BOOST_AUTO_TEST_CASE(two_sets_on_two_devices_take_half_the_time_but_for_the_copies) {
  topology = test::equal_devices(3, 1e11, 1e-7);
  const CallEstimate one = of(alone()), two = of({ParallelMode::cfg, {0, 1}, {}, {0, 1}, {}});
  BOOST_TEST(two.seconds > 0.5 * one.seconds);
  BOOST_TEST(two.seconds < 0.8 * one.seconds);
}

BOOST_AUTO_TEST_CASE(batch_items_are_whole) {
  // Three shares of four items: 2, 1 and 1, so the time is that of two items and not of four
  // thirds.
  const CallEstimate one = of(alone()),
                     three =
                         of({ParallelMode::data, {0, 1, 2}, {}, {}, {1.0 / 3, 1.0 / 3, 1.0 / 3}});
  BOOST_TEST(three.seconds > 0.45 * one.seconds);
}

BOOST_AUTO_TEST_CASE(streaming_takes_the_longer_of_computing_and_copying) {
  topology.devices[0].budget = of(alone()).needs[0].wanted_bytes - loads[0]->weight_bytes / 4;
  const Prices prices(topology, {});
  const CallCase call{*model(value).graph, loads, 0, prices};
  const CallEstimate streamed = estimate_streamed(call, alone());
  BOOST_TEST(streamed.fits());
  BOOST_TEST(streamed.seconds >= of(alone()).seconds);
  topology.devices[0].budget = 1;
  const Prices none(topology, {});
  BOOST_TEST(!estimate_streamed({*model(value).graph, loads, 0, none}, alone()).fits());
}

BOOST_AUTO_TEST_SUITE_END()
