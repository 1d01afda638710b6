// What fake devices compute, alone and in whole workflows: the cpu device's bytes.
#include <functional>
#include <map>
#include <random>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "heddle/abi/node.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/lent_tensor.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::Fakes;
using test::workflow;

namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) x = normal(random);
  return values;
}

// Runs ops by name on one device; operands are random.
class Computer {
 public:
  explicit Computer(engine::DeviceState& state) : state_(state) {}

  engine::Tensor random(std::vector<std::int64_t> shape) {
    const heddle_tensor_info info = engine::make_info(HEDDLE_F32, shape);
    const std::vector<float> values =
        random_values(std::size_t(engine::element_count(info)), ++seed_);
    return state_.upload(info, values.data());
  }

  engine::Tensor weight(std::int32_t use, std::vector<std::int64_t> shape) {
    const heddle_tensor_info info = engine::make_info(HEDDLE_F32, shape);
    std::vector<float> values = random_values(std::size_t(engine::element_count(info)), ++seed_);
    const heddle_weight_layout layout = state_.device().weight_layout(use, info);
    auto memory = state_.allocate(layout.bytes);
    state_.with_stream([&](engine::Stream& stream) {
      state_.device().make_weight(stream, use, layout, {{info, values.data()}}, memory->data());
    });
    state_.synchronize();
    return engine::make_tensor(layout.info, memory);
  }

  template <class Attrs>
  std::vector<float> op(const char* name, const std::vector<engine::Tensor>& in,
                        std::vector<std::int64_t> shape, const Attrs& attrs) {
    const engine::Tensor out = state_.make(engine::make_info(HEDDLE_F32, shape));
    std::vector<heddle_tensor*> operands;
    for (const engine::Tensor& tensor : in) operands.push_back(tensor.get());
    heddle_tensor* const to[] = {out.get()};
    state_.op(engine::op_id(name), operands, to, std::as_bytes(std::span(&attrs, 1)));
    std::vector<float> values(std::size_t(engine::element_count(out->info)));
    state_.read(out, values.data(), values.size() * sizeof(float));
    return values;
  }

  std::vector<std::vector<float>> everything() {
    const auto filter = weight(HEDDLE_USE_CONV2D, {6, 5, 3, 3});
    const auto matrix = weight(HEDDLE_USE_LINEAR, {20, 33});
    return {
        op(HEDDLE_OP_LINEAR, {random({2, 7, 33}), matrix, random({20})}, {2, 7, 20},
           heddle_activation_attrs{HEDDLE_ACT_GELU_TANH}),
        op(HEDDLE_OP_CONV2D, {random({1, 8, 9, 5}), filter, random({6})}, {1, 8, 9, 6},
           heddle_conv2d_attrs{{1, 1}, {1, 1, 1, 1}}),
        op(HEDDLE_OP_ATTENTION,
           {random({2, 5, 3, 16}), random({2, 9, 3, 16}), random({2, 9, 3, 16})}, {2, 5, 3, 16},
           heddle_attention_attrs{0.25, 0, 0}),
        op(HEDDLE_OP_LAYER_NORM, {random({3, 31}), random({31}), random({31})}, {3, 31},
           heddle_norm_attrs{1e-6}),
        op(HEDDLE_OP_GROUP_NORM, {random({1, 4, 4, 8}), random({8}), random({8})}, {1, 4, 4, 8},
           heddle_group_norm_attrs{1e-6, 4, HEDDLE_ACT_SILU}),
        op(HEDDLE_OP_GATED_ACTIVATION, {random({5, 6}), random({5, 6})}, {5, 6},
           heddle_activation_attrs{HEDDLE_ACT_SILU}),
    };
  }

 private:
  engine::DeviceState& state_;
  unsigned seed_ = 0;
};

// Three random linear layers, stepped by a node of a sample plugin.
struct Layers {
  test::TemporaryFolder folder;
  std::string flow;

  Layers() {
    std::vector<test::FileTensor> tensors;
    for (unsigned l = 0; l < 3; ++l) {
      std::vector<float> values = random_values(24 * 24, 100 + l);
      for (float& x : values) x *= 0.2f;
      tensors.push_back({"layers." + std::to_string(l) + ".weight",
                         "F32",
                         {24, 24},
                         test::bytes_of_floats(values)});
    }
    const std::string path =
        folder.write("layers.safetensors", test::safetensors_bytes(tensors)).string();
    flow = workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
         {"loop",
          R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": 4, "sets": 2}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }

  std::vector<float> run(Engine& engine) const {
    return engine.start(engine.parse(flow), {{}, {"keep.out"}}).wait().floats("keep.out");
  }
  std::vector<float> run(EngineOptions options) const {
    options.compute = {{options.devices.at(0), "f32"}};
    Engine engine(std::move(options));
    return run(engine);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(fake_compute)

BOOST_AUTO_TEST_CASE(ops_give_the_bytes_of_the_cpu_device) {
  const Fakes fakes;
  for (const bool all_kernels : {false, true}) {
    engine::DeviceSelection selection;
    selection.names = {"cpu:0", "fake:5"};
    selection.compute = {{"cpu", "f32"}, {"fake", "f32"}};
    selection.reference_kernels = !all_kernels;
    const auto devices = engine::open_devices(fakes.plugins(), selection);
    const auto expected = Computer(*devices[0].state).everything(),
               found = Computer(*devices[1].state).everything();
    for (std::size_t i = 0; i < expected.size(); ++i)
      BOOST_TEST(
          std::memcmp(expected[i].data(), found[i].data(), expected[i].size() * sizeof(float)) == 0,
          "op " << i << ", all kernels: " << all_kernels);
  }
}

BOOST_AUTO_TEST_CASE(there_is_a_kernel_for_each_op_of_the_cpu_device_and_no_other) {
  const Fakes fakes;
  std::map<std::string, std::set<std::string>> ops;
  for (const auto& entry : fakes.plugins().kernels->all())
    ops[entry.kernel->device_kind].insert(entry.kernel->op);
  BOOST_TEST(ops["cpu"].size() >= 20u);
  BOOST_TEST(ops["fake"] == ops["cpu"], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_model_on_a_fake_device_gives_the_bytes_of_the_cpu_device) {
  const test::FakeControl control;
  const Layers layers;
  EngineOptions cpu = test::engine_options();
  cpu.reference_kernels = true;
  const std::vector<float> expected = layers.run(std::move(cpu));
  BOOST_TEST_REQUIRE(expected.size() == 24u);
  BOOST_TEST(layers.run(test::fake_engine_options({"fake:0"})) == expected);
  BOOST_TEST(control->launches(0, HEDDLE_OP_LINEAR) == 3u * 4u * 2u);
  BOOST_TEST(control->weights(0) == 3u);
  BOOST_TEST(control->freed_in_use(0) == 0u);
  for (int seed = 0; seed < 5; ++seed)
    BOOST_TEST(layers.run(test::fake_engine_options(
                   {"fake:0"}, R"({"shuffle": )" + std::to_string(seed) + "}")) == expected,
               "seed " << seed);
}

BOOST_AUTO_TEST_CASE(
    a_run_on_a_device_that_dies_names_it_and_the_next_run_after_its_return_succeeds) {
  const test::FakeControl control;
  const Layers layers;
  Engine engine(test::fake_engine_options({"fake:0"}));
  const std::vector<float> expected = layers.run(engine);
  control->kill(0);
  const std::string flow =
      workflow({{"x", R"({"class_type": "test.ramp", "inputs": {"count": 25}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["x", 0]}})"}});
  const std::string reason = test::engine_refusal([&] {
    engine.start(engine.parse(flow), {{}, {"keep.out"}}).wait().floats("keep.out");
  });
  BOOST_TEST(reason.find("fake:0: the device has died") != std::string::npos, reason);
  control->revive(0);
  BOOST_TEST(
      engine.start(engine.parse(flow), {{}, {"keep.out"}}).wait().floats("keep.out").size() == 25u);
}

BOOST_AUTO_TEST_CASE(a_tensor_of_the_program_reaches_a_device_with_memory_of_its_own) {
  const test::FakeControl control;
  const Layers layers;
  std::vector<float> ramp(24);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = float(i);
  test::LentTensor lent({1, 1, 24}, ramp);
  {
    Engine engine(test::fake_engine_options({"fake:0"}));
    const std::vector<float> expected = layers.run(engine);
    BOOST_TEST(
        engine.start(engine.parse(layers.flow), {{}, {"keep.out"}, {{"loop.x", lent.lend()}}})
            .wait()
            .floats("keep.out") == expected);
  }
  BOOST_TEST(lent.given_back() == 1);
  BOOST_TEST(control->freed_in_use(0) == 0u);
}

BOOST_AUTO_TEST_CASE(sixty_four_devices_work) {
  const Fakes fakes(R"({"memory": "1MiB", "count": 64})", 64);
  std::vector<float> values{1, 2, 3, 4};
  const std::int64_t shape[] = {4};
  engine::Tensor tensor =
      fakes.state(0).upload(engine::make_info(HEDDLE_F32, shape), values.data());
  for (std::size_t i = 0; i < 64; ++i) {  // from device to device, one added on each
    engine::DeviceState& state = fakes.state(i);
    tensor = state.bring(tensor);
    const engine::Tensor out = state.make(tensor->info);
    heddle_tensor* const in[] = {tensor.get()};
    heddle_tensor* const to[] = {out.get()};
    const heddle_scale_clamp_attrs attrs{1, 1, -1000, 1000};
    state.op(engine::op_id(HEDDLE_OP_SCALE_CLAMP), in, to, std::as_bytes(std::span(&attrs, 1)));
    tensor = out;
    BOOST_TEST(fakes.control()->launches(std::uint32_t(i), nullptr) == 1u);
  }
  std::vector<float> result(4);
  fakes.state(63).read(tensor, result.data(), 16);
  BOOST_TEST(result == (std::vector<float>{65, 66, 67, 68}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_workflow_over_sixty_four_devices_gives_the_bytes_of_one) {
  const test::FakeControl control;
  const Layers layers;
  // A chain: each node steps the model on a device of its own.
  const auto chain = [&](const std::function<std::string(int)>& device) {
    const engine::Json whole = engine::parse_json(layers.flow, "layers");
    engine::Json flow = engine::Json::object();
    flow.set("load", *whole.find("load")).set("x", *whole.find("x"));
    std::string source = "x";
    for (int i = 0; i < 64; ++i) {
      engine::Json inputs = engine::Json::object();
      const auto link = [](const std::string& node) {
        engine::Json one = engine::Json::array();
        one.push(node);
        one.push(0);
        return one;
      };
      inputs.set("model", link("load")).set("x", link(source)).set("steps", 1);
      engine::Json node = engine::Json::object();
      node.set("class_type", "test.loop").set("inputs", std::move(inputs)).set("device", device(i));
      source = "loop" + std::to_string(i);
      flow.set(source, std::move(node));
    }
    flow.set("keep", engine::parse_json(R"({"class_type": "test.keep", "inputs": {"value": [")" +
                                            source + R"(", 0]}})",
                                        "keep"));
    return engine::write_json(flow);
  };
  const auto run = [](EngineOptions options, const std::string& flow) {
    options.compute = {{"cpu", "f32"}};
    if (options.device_options.contains("fake")) options.compute = {{"fake", "f32"}};
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"keep.out"}}).wait().floats("keep.out");
  };
  EngineOptions cpu = test::engine_options();
  cpu.reference_kernels = true;
  const std::vector<float> expected = run(cpu, chain([](int) { return "cpu:0"; }));
  const auto everywhere = [](int i) { return "fake:" + std::to_string(i); };
  const EngineOptions fakes = test::fake_engine_options({"fake"}, R"({"memory": "1MiB"})");
  BOOST_TEST(run(fakes, chain(everywhere)) == expected);
  for (std::uint32_t i = 0; i < 64; ++i)
    BOOST_TEST(control->launches(i, HEDDLE_OP_LINEAR) == 3u, "fake:" << i);
}

BOOST_AUTO_TEST_CASE(an_engine_lists_all_devices_of_a_kind_with_their_links) {
  const Engine engine(test::fake_engine_options(
      {"cpu:0", "fake"},
      R"({"count": 3, "memory": "1MiB", "links": {"pairs": {"0-2": {"bandwidth": 5e9}}}})"));
  const std::vector<DeviceInfo> devices = engine.devices();
  BOOST_TEST_REQUIRE(devices.size() == 4u);
  BOOST_TEST(devices[3].id == "fake:2");
  BOOST_TEST(devices[3].memory_total == 1u << 20);
  const DeviceInfo& first = devices[1];
  BOOST_TEST_REQUIRE(first.links.size() == 4u);
  const auto check = [](const DeviceLink& link, const char* to, const char* kind,
                        double bandwidth) {
    BOOST_TEST(link.to == to);
    BOOST_TEST(link.kind == kind);
    BOOST_TEST(link.bytes_per_second == bandwidth);
  };
  check(first.links[0], "cpu:0", "direct", 16e9);
  check(first.links[1], "fake:1", "direct", 64e9);
  check(first.links[2], "fake:2", "direct", 5e9);
  check(first.links[3], "host", "direct", 16e9);
  check(devices[0].links.front(), "fake:0", "direct", 16e9);
  check(devices[0].links.back(), "host", "same", 0);
}

BOOST_AUTO_TEST_CASE(a_dead_device_is_listed_with_its_trouble_beside_the_others) {
  const test::FakeControl control;
  EngineOptions options = test::fake_engine_options({"fake:0", "fake:1"});
  options.compute = {{"fake", "f32"}};
  const Engine engine(std::move(options));
  control->kill(0);
  const std::vector<DeviceInfo> devices = engine.devices();
  control->revive(0);
  BOOST_TEST_REQUIRE(devices.size() == 2u);
  BOOST_TEST(devices[0].trouble.find("died") != std::string::npos, devices[0].trouble);
  BOOST_TEST(devices[0].id == "fake:0");
  BOOST_TEST(devices[1].trouble == "");
  BOOST_TEST(engine.devices()[0].trouble == "");
}

BOOST_AUTO_TEST_CASE(options_that_do_not_fit_are_refused_with_their_name) {
  const auto reason = [](const std::string& options, const char* device = "fake:0") {
    return test::engine_refusal(
        [&] { Engine engine(test::fake_engine_options({device}, options)); });
  };
  const auto check = [&](const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  check(reason(R"({"memry": 5})"), "unknown option 'memry'");
  check(reason(R"({"memory": "much"})"), "option 'memory'");
  check(reason(R"({"links": {"pairs": {"0+1": {}}}})"), "option 'links.pairs.0+1'");
  check(reason(R"({"count": 2})", "fake:2"), "fake:1");
  check(reason("[]"), "options of fake");
  check(test::engine_refusal([] {
          EngineOptions options = test::engine_options();
          options.device_options["cpus"] = "{}";
          Engine engine(options);
        }),
        "'cpus'");
}

BOOST_AUTO_TEST_SUITE_END()
