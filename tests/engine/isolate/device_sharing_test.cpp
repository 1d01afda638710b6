// Isolated nodes that are placed on a device: a fake one, whose memory both processes map.
#include <boost/test/data/test_case.hpp>
#include <csignal>
#include <thread>

#include "engine/base/text.h"
#include "engine/device/sharing.h"
#include "engine/isolate/device_buffers.h"
#include "tests/engine/isolate/on_device_fixture.h"

using namespace heddle;
using engine::cat;
using test::child_processes;
using test::engine_refusal;
using test::fake_mappings;
using test::on_fake;
using test::open_descriptors;
using test::workflow;

BOOST_AUTO_TEST_SUITE(device_sharing)

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string sum_workflow(int rows, const std::string& how = "") {
  const std::string ramp =
      cat(R"({"class_type": "test.device.ramp", "inputs": {"rows": )", rows, "}}");
  const std::string first =
      R"({"class_type": "test.device.sum", "inputs": {"a": ["ramp", 0], "b": ["ramp", 0]}})";
  const std::string second = cat(
      R"({"class_type": "test.device.sum", "inputs": {"a": ["first", 0], "b": ["ramp", 0], "how": ")",
      how, R"("}})");
  return workflow({{"ramp", ramp.c_str()},
                   {"first", first.c_str()},
                   {"second", second.c_str()},
                   {"sum", R"({"class_type": "test.keep", "inputs": {"value": ["second", 0]}})"},
                   {"where", R"({"class_type": "test.keep", "inputs": {"value": ["second", 1]}})"},
                   {"pid", R"({"class_type": "test.keep", "inputs": {"value": ["second", 2]}})"}});
}

struct Summed {
  std::vector<float> sum;
  std::vector<std::int64_t> shape;
  std::string where, process;
};

Summed run(Engine& engine, const std::string& flow) {
  StartOptions start;
  start.fetch = {"sum.out", "where.out", "pid.out"};
  const Results results = engine.start(engine.parse(flow), std::move(start)).wait();
  return {results.floats("sum.out"), results.shape("sum.out"), results.text("where.out"),
          results.text("pid.out")};
}

}  // namespace

BOOST_DATA_TEST_CASE(a_node_works_on_its_device_as_in_the_engine,
                     boost::unit_test::data::make({1, 3, 1'000, 70'000}) *
                         boost::unit_test::data::make({"", "turn"}),
                     rows, how) {
  Engine here(on_fake(false)), there(on_fake(true));
  const Summed expected = run(here, sum_workflow(rows, how)),
               got = run(there, sum_workflow(rows, how));
  BOOST_TEST((got.sum == expected.sum));
  BOOST_TEST(got.sum.size() == std::size_t(rows) * 4);
  BOOST_TEST((got.shape == expected.shape));
  BOOST_TEST(got.where == "fake:0");
  BOOST_TEST(expected.where == "fake:0");
  BOOST_TEST(expected.process == std::to_string(::getpid()));
  BOOST_TEST(got.process != std::to_string(::getpid()));
}

// What others have made lies in the device's pools, beside other tensors: a copy crosses.
BOOST_DATA_TEST_CASE(what_others_have_made_is_copied_on_the_device,
                     boost::unit_test::data::make({1, 5'000}) *
                         boost::unit_test::data::make({"false", "true"}),
                     rows, turned) {
  const std::string count = cat(R"({"class_type": "test.isolated.count", "inputs": {"rows": )",
                                rows, R"(, "turned": )", turned, "}}");
  const std::string flow = workflow(
      {{"count", count.c_str()},
       {"add",
        R"({"class_type": "test.device.sum", "inputs": {"a": ["count", 0], "b": ["count", 0]}})"},
       {"sum", R"({"class_type": "test.keep", "inputs": {"value": ["add", 0]}})"},
       {"where", R"({"class_type": "test.keep", "inputs": {"value": ["add", 1]}})"},
       {"pid", R"({"class_type": "test.keep", "inputs": {"value": ["add", 2]}})"}});
  Engine here(on_fake(false)), there(on_fake(true));
  const Summed expected = run(here, flow), got = run(there, flow);
  BOOST_TEST(got.sum.size() == std::size_t(rows) * 4);
  BOOST_TEST((got.sum == expected.sum));
  BOOST_TEST((got.shape == expected.shape));
  BOOST_TEST(got.where == "fake:0");
  BOOST_TEST(got.process != std::to_string(::getpid()));
}

// HEDDLE_TEST_DEVICE=cuda:0: the same on a GPU, in both processes.
boost::test_tools::assertion_result has_test_device(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(test::test_device() != "cpu:0");
  result.message() << "HEDDLE_TEST_DEVICE names no device";
  return result;
}
BOOST_AUTO_TEST_CASE(a_node_works_on_the_device_of_the_environment,
                     *boost::unit_test::precondition(has_test_device)) {
  const auto on_device = [](bool isolated) {
    EngineOptions options = test::engine_options();
    options.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/isolated");
    if (isolated) options.isolation.plugins = {"sample_on_device"};
    return options;
  };
  Engine here(on_device(false)), there(on_device(true));
  for (const int rows : {1, 1000, 1 << 20}) {
    const Summed expected = run(here, sum_workflow(rows)), got = run(there, sum_workflow(rows));
    BOOST_TEST((got.sum == expected.sum));
    BOOST_TEST(got.where == test::test_device());
    BOOST_TEST(got.process != std::to_string(::getpid()));
  }
  BOOST_TEST(holds(engine_refusal([&] { run(there, sum_workflow(1 << 20, "kill")); }), "SIGKILL"));
  BOOST_TEST((run(there, sum_workflow(1000)).sum == run(here, sum_workflow(1000)).sum));
}

BOOST_AUTO_TEST_CASE(a_device_that_shares_nothing_is_gone_around) {
  Engine here(on_fake(false)), there(on_fake(true, R"({"shares": false})"));
  const std::string refused = engine_refusal([&] { run(there, sum_workflow(100)); });
  // Without a device the node has no ops: it says so, as ever.
  BOOST_TEST(holds(refused, "is not placed on a device that shares its memory"), refused);
  const std::string flow =
      workflow({{"ramp", R"({"class_type": "test.device.ramp", "inputs": {"rows": 5000}})"},
                {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["ramp", 0]}})"}});
  StartOptions start;
  start.fetch = {"keep.out"};
  BOOST_TEST((there.start(there.parse(flow), start).wait().floats("keep.out") ==
              here.start(here.parse(flow), start).wait().floats("keep.out")));
}

BOOST_AUTO_TEST_CASE(where_one_device_shares_nothing_nodes_stay_in_host_memory) {
  EngineOptions options = on_fake(true, R"({"shares": false})");
  options.devices = {"fake:0", "cpu:0"};
  Engine engine(options);
  BOOST_TEST(holds(engine_refusal([&] { run(engine, sum_workflow(10)); }), "is not placed"));
}

BOOST_AUTO_TEST_CASE(limits_of_memory_leave_no_room_for_a_driver) {
  EngineOptions options = on_fake(true);
  options.isolation.memory_bytes = std::uint64_t{1} << 30;
  Engine engine(options);
  BOOST_TEST(holds(engine_refusal([&] { run(engine, sum_workflow(10)); }), "is not placed"));
}

// A worker that is killed between two kernels, or hangs there, or whose node fails: the run is
// told, memory comes back, and the next run has another worker and the same device.
BOOST_AUTO_TEST_CASE(a_crash_costs_one_run_and_leaves_nothing) {
  const std::size_t children = child_processes(), mappings = fake_mappings();
  {
    EngineOptions options = on_fake(true);
    options.isolation.call_seconds = 20;
    Engine engine(options);
    const Summed first = run(engine, sum_workflow(3000));
    const std::size_t descriptors = open_descriptors();
    for (int i = 0; i < 5; ++i) {
      const std::string killed = engine_refusal([&] { run(engine, sum_workflow(3000, "kill")); });
      BOOST_TEST(holds(killed, "SIGKILL"), killed);
      const std::string thrown = engine_refusal([&] { run(engine, sum_workflow(3000, "throw")); });
      BOOST_TEST(holds(thrown, "it was asked to fail"), thrown);
      const Summed again = run(engine, sum_workflow(3000));
      BOOST_TEST((again.sum == first.sum));
      BOOST_TEST(again.where == "fake:0");
    }
    BOOST_TEST(open_descriptors() <= descriptors + 8);  // lanes of workers that wait
  }
  BOOST_TEST(child_processes() == children);
  BOOST_TEST(fake_mappings() == mappings);
}

BOOST_AUTO_TEST_CASE(a_hang_ends_at_its_limit) {
  EngineOptions options = on_fake(true);
  options.isolation.call_seconds = 10;
  Engine engine(options);
  BOOST_TEST(holds(engine_refusal([&] { run(engine, sum_workflow(300, "hang")); }),
                   "has not ended within 10 s"));
  BOOST_TEST(run(engine, sum_workflow(300)).sum.size() == 1200u);
}

BOOST_AUTO_TEST_CASE(several_runs_crash_and_do_not_crash_at_the_same_time) {
  Engine engine(on_fake(true));
  const std::vector<float> expected = run(engine, sum_workflow(2000)).sum;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> all;
  for (int t = 0; t < 3; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < 6; ++i) {
        const bool crashes = (i + t) % 3 == 0;
        std::vector<float> sum;
        const std::string error = engine_refusal(
            [&] { sum = run(engine, sum_workflow(2000, crashes ? "kill" : "")).sum; });
        const bool is_right = crashes ? holds(error, "SIGKILL") : error.empty() && sum == expected;
        if (!is_right) BOOST_TEST_MESSAGE(error);
        if (!is_right) ++wrong;
      }
    });
  all.clear();
  BOOST_TEST(wrong == 0);
}

// Two inputs, two sums: what a worker is given and makes counts, and there is no room for more.
BOOST_AUTO_TEST_CASE(the_budget_of_the_device_is_held) {
  constexpr std::uint64_t kTensor = std::uint64_t{1} << 20;  // 65536 rows
  EngineOptions options = on_fake(true);
  options.budgets["fake:0"] = heddle::MemorySize(8 * kTensor);
  options.cache_bytes = 1;
  Engine engine(options);
  const test::FakeControl control;
  BOOST_TEST(run(engine, sum_workflow(65'536)).sum.size() == kTensor / 4);
  BOOST_TEST(control->peak_bytes(0) <= 8 * kTensor);
  BOOST_TEST(control->peak_bytes(0) >= 3 * kTensor);
  const std::string refused = engine_refusal([&] { run(engine, sum_workflow(1 << 18)); });
  BOOST_TEST(holds(refused, "fake:0"), refused);
  BOOST_TEST(run(engine, sum_workflow(65'536)).sum.size() == kTensor / 4);
  BOOST_TEST(control->peak_bytes(0) <= 8 * kTensor);
}

// A driver gives such memory in large pieces, and the ledger counts what they take.
BOOST_AUTO_TEST_CASE(a_small_tensor_counts_as_the_piece_that_it_takes) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const test::Fakes fakes(R"({"shared_piece": "1MiB"})");
  engine::DeviceState& state = fakes.state();
  const auto small = engine::DeviceBuffer::make(state, 1000, "a test");
  BOOST_TEST(small->bytes() < kPiece);
  BOOST_TEST(state.ledger().report().taken == kPiece);
  {
    const auto more = engine::DeviceBuffer::make(state, kPiece + 1, "a test");
    BOOST_TEST(state.ledger().report().taken == 3 * kPiece);
  }
  BOOST_TEST(state.ledger().report().taken == kPiece);
}

// What the engine's ends do without a worker: memory is the device's until work on it is done, and
// goes where the device does, whoever holds it still.
BOOST_AUTO_TEST_CASE(memory_goes_with_its_device_at_the_latest) {
  const std::size_t mappings = fake_mappings();
  std::shared_ptr<engine::DeviceBuffer> kept;
  engine::Tensor tensor;
  {
    const test::Fakes fakes;
    engine::DeviceState& state = fakes.state();
    BOOST_TEST(engine::can_share(state.device()));
    kept = engine::DeviceBuffer::make(state, 1000, "a test");
    BOOST_TEST(kept->bytes() >= 1000u);
    BOOST_TEST(state.ledger().report().taken == kept->bytes());
    BOOST_TEST(!state.close());
    const std::int64_t shape[] = {250};
    tensor = engine::make_tensor(engine::make_info(HEDDLE_F32, shape),
                                 std::make_shared<engine::SharedDeviceMemory>(state, kept));
    const heddle_fill_attrs attrs{3};
    heddle_tensor* const out[] = {tensor.get()};
    state.op(engine::op_id(HEDDLE_OP_FILL), {}, out, std::as_bytes(std::span(&attrs, 1)));
    std::vector<float> read(250);
    state.read(tensor, read.data(), 1000);
    BOOST_TEST((read == std::vector<float>(250, 3.f)));
    BOOST_TEST(fake_mappings() == mappings + 1);
  }
  BOOST_TEST(fake_mappings() == mappings);
  tensor = {};
  kept = nullptr;
}

BOOST_AUTO_TEST_CASE(memory_of_no_owner_goes_when_its_work_is_done) {
  const test::Fakes fakes;
  engine::DeviceState& state = fakes.state();
  {
    auto buffer = engine::DeviceBuffer::make(state, 1 << 20, "a test");
    const std::int64_t shape[] = {1 << 18};
    const engine::Tensor tensor =
        engine::make_tensor(engine::make_info(HEDDLE_F32, shape),
                            std::make_shared<engine::SharedDeviceMemory>(state, buffer));
    const heddle_fill_attrs attrs{3};
    heddle_tensor* const out[] = {tensor.get()};
    state.op(engine::op_id(HEDDLE_OP_FILL), {}, out, std::as_bytes(std::span(&attrs, 1)));
  }
  state.trim();
  BOOST_TEST(state.ledger().report().taken == 0u);
  BOOST_TEST(fakes.control()->freed_in_use(0) == 0u);
  BOOST_TEST(state.close());
}

BOOST_AUTO_TEST_SUITE_END()
