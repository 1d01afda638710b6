// Timelines and measurements on devices whose clock is simulated, so that every moment is known
// exactly.
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/place/costs.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kWidth = 8;

// A model of four layers; a product takes a second, everything else nothing, a copy from the host
// an eighth of a second, one between devices a quarter.
struct Fixture {
  static constexpr const char* kOptions =
      R"({"op_seconds": {"linear": 1, "*": 0}, "links": {"host": {"bandwidth": 1e30, "latency": 0.125},
          "peer": {"bandwidth": 1e30, "latency": 0.25}}})";
  test::TemporaryFolder folder;
  test::FakeControl control;
  Engine engine{test::fake_engine_options({"fake:0", "fake:1"}, kOptions)};

  Workflow flow(const std::string& loop_inputs = "") {
    std::vector<test::FileTensor> tensors;
    for (int l = 0; l < 4; ++l)
      tensors.push_back({"layers." + std::to_string(l) + ".weight",
                         "F32",
                         {kWidth, kWidth},
                         test::bytes_of_floats(std::vector<float>(kWidth * kWidth, 0.125f))});
    const std::string path =
        folder.write("layers.safetensors", test::safetensors_bytes(tensors)).string();
    const std::string load = R"({"class_type": "test.load", "inputs": {"path": ")" + path +
                             R"("}, "device": "fake:0,fake:1"})";
    const std::string loop =
        R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": 2, "sets": 1)" +
        loop_inputs + R"(}, "device": "fake:0"})";
    return engine.parse(test::workflow(
        {{"load", load.c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 8}, "device": "fake:0"})"},
         {"loop", loop.c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}}));
  }

  // "fake:0 compute: block layer.0 0.5-1.5, 96 bytes", for all spans of these kinds; whatever is by
  // the host's clock is left out.
  std::vector<std::string> spans(const engine::Json& trace,
                                 const std::vector<std::string>& kinds) const {
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> rows;
    std::vector<std::string> found;
    for (const engine::Json& event : trace.at("traceEvents").as_array()) {
      const std::pair row(event.at("pid").as_int64(), event.at("tid").as_int64());
      if (event.at("ph").as_string() == "M") {
        const bool is_process = event.at("name").as_string() == "process_name";
        rows[row] = (is_process ? "" : rows.at({row.first, 0}) + " ") +
                    event.at("args").at("name").as_string();
        continue;
      }
      const std::string kind = event.at("cat").as_string();
      if (std::ranges::find(kinds, kind) == kinds.end() || rows.at(row).ends_with(" host"))
        continue;
      const double begin = event.at("ts").as_double(), duration = event.at("dur").as_double();
      const engine::Json* args = event.find("args");
      found.push_back(engine::cat(
          rows.at(row), ": ", event.at("name").as_string(), " ", begin / 1e6, "-",
          (begin + duration) / 1e6,
          args == nullptr ? "" : engine::cat(", ", args->at("bytes").as_int64(), " bytes")));
    }
    return found;
  }
  engine::Json read(const std::filesystem::path& path) const {
    return engine::parse_json(test::read_text(path), "trace");
  }
};

using Lines = std::vector<std::string>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(timeline, Fixture)

BOOST_AUTO_TEST_CASE(blocks_transfers_and_weights_are_at_their_exact_simulated_times) {
  engine.start(flow(), {.trace = folder / "t.json"}).wait();
  const engine::Json trace = read(folder / "t.json");
  BOOST_TEST(
      spans(trace, {"page-in"}) == (Lines{"fake:0 compute: layer.0.weight 0.375-0.5, 256 bytes",
                                          "fake:0 compute: layer.1.weight 0.5-0.625, 256 bytes",
                                          "fake:1 compute: layer.2.weight 0-0.125, 256 bytes",
                                          "fake:1 compute: layer.3.weight 0.125-0.25, 256 bytes"}),
      boost::test_tools::per_element());
  BOOST_TEST(
      spans(trace, {"block"}) ==
          (Lines{"fake:0 compute: layer.0 0.625-1.625", "fake:0 compute: shift 0.625-0.625",
                 "fake:0 compute: layer.1 1.625-2.625", "fake:0 compute: layer.0 5.125-6.125",
                 "fake:0 compute: layer.1 6.125-7.125", "fake:1 compute: layer.2 2.875-3.875",
                 "fake:1 compute: layer.3 3.875-4.875", "fake:1 compute: layer.2 7.375-8.375",
                 "fake:1 compute: layer.3 8.375-9.375"}),
      boost::test_tools::per_element());
  BOOST_TEST(spans(trace, {"transfer"}) ==
                 (Lines{"fake:0 copy in: layer.3 to fake:0 4.875-5.125, 32 bytes",
                        "fake:0 copy in: layer.3 to fake:0 9.375-9.625, 32 bytes",
                        "fake:1 copy in: shift to fake:1 0.625-0.875, 8 bytes",
                        "fake:1 copy in: layer.1 to fake:1 2.625-2.875, 32 bytes",
                        "fake:1 copy in: layer.1 to fake:1 7.125-7.375, 32 bytes"}),
             boost::test_tools::per_element());
  BOOST_TEST(spans(trace, {"node"}) == (Lines{"fake:0 compute: x test.ramp 0-0.125",
                                              "fake:0 compute: loop test.loop 0.125-9.625"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_second_run_counts_from_its_own_start_and_finds_its_weights_there) {
  engine.start(flow()).wait();
  engine.start(flow(R"(, "nothing": 2)"), {.trace = folder / "t.json"}).wait();
  const engine::Json trace = read(folder / "t.json");
  BOOST_TEST(spans(trace, {"page-in"}).empty());
  const Lines blocks = spans(trace, {"block"});
  BOOST_TEST_REQUIRE(blocks.size() == 9u);
  // Two copies from the host, which the node makes itself; x comes from the cache.
  BOOST_TEST(blocks.front() == "fake:0 compute: layer.0 0.25-1.25");
}

BOOST_AUTO_TEST_CASE(a_timeline_changes_no_simulated_time) {
  engine.start(flow()).wait();
  const double without = control->now(0);
  control->reset();
  Engine other(test::fake_engine_options({"fake:0", "fake:1"}, kOptions));
  other.start(flow(), {.trace = folder / "t.json"}).wait();
  BOOST_TEST(control->now(0) == without);
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_leaves_what_happened_until_then) {
  for (const std::uint32_t d : {0u, 1u}) control->fail_launch(d, 1);
  BOOST_CHECK_THROW(engine.start(flow(), {.trace = folder / "t.json"}).wait(), EngineError);
  BOOST_TEST(!spans(read(folder / "t.json"), {"page-in"}).empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_fails_the_run_with_its_path) {
  BOOST_TEST(test::engine_refusal([&] {
               engine.start(flow(), {.trace = folder / "none" / "t.json"}).wait();
             }).find("none/t.json") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tuning)

// In no build for threads: the next case measures there, and figures take many products.
#if !defined(HEDDLE_THREAD_SANITIZER)
// What is measured takes up to a sixteenth of the memory: little will do for simulated seconds. Of
// attention, the least that is measured takes 7 MiB.
BOOST_AUTO_TEST_CASE(figures_are_those_of_the_devices) {
  const test::FakeControl control;
  Engine engine(test::fake_engine_options(
      {"fake:0", "fake:1"},
      R"({"memory": ["192MiB", "64MiB"], "name": ["one", "other"], "flops": [2e12, 1e12],
    "bandwidth": 5e11, "launch_seconds": 2e-6,
    "links": {"host": {"bandwidth": 8e9, "latency": 1e-5}, "peer": {"bandwidth": 3e10, "latency": 4e-6},
              "pageable": {"bandwidth": 2e9, "latency": 3e-5}}})"));
  const engine::Costs costs = engine::read_costs(engine.tune(), "costs");
  const auto near = boost::test_tools::tolerance(1e-3);
  BOOST_TEST(costs.devices.at("one").flops_per_second == 2e12, near);
  BOOST_TEST(costs.devices.at("other").flops_per_second == 1e12, near);
  BOOST_TEST(costs.devices.at("one").attention_flops_per_second == 2e12, near);
  BOOST_TEST(costs.devices.at("other").attention_flops_per_second == 0);  // it has no room
  BOOST_TEST(costs.devices.at("other").fp8_flops_per_second == 0);        // it has no such products
  BOOST_TEST(costs.devices.at("one").half_time_flops_per_second == 0);    // nor gains by rest
  BOOST_TEST(costs.devices.at("one").bytes_per_second == 5e11, near);
  BOOST_TEST(costs.devices.at("one").launch_seconds == 2e-6, near);
  BOOST_TEST_REQUIRE(costs.links.size() == 8u);
  for (const auto& [ends, link] : costs.links) BOOST_TEST_CONTEXT(ends.first) {
      const bool host = ends.first == "pinned host" || ends.second == "host";
      const bool pageable = ends.first == "host";
      BOOST_TEST(link.bytes_per_second == (pageable ? 2e9 : host ? 8e9 : 3e10), near);
      BOOST_TEST(link.latency_seconds == (pageable ? 3e-5 : host ? 1e-5 : 4e-6), near);
    }
}
#endif

BOOST_AUTO_TEST_CASE(nothing_runs_while_devices_are_measured_and_the_other_way_round) {
  const test::FakeControl control;
  Engine engine(test::fake_engine_options({"fake:0"}, R"({"memory": "64MiB"})"));
  const Workflow flow = engine.parse(
      test::workflow({{"1", R"({"class_type": "test.add", "inputs": {"a": 2, "b": 3}})"},
                      {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}}));
  std::string refusal;
  engine
      .start(flow,
             {.observer =
                  [&](const Event&) { refusal = test::engine_refusal([&] { engine.tune(); }); }})
      .wait();
  BOOST_TEST(refusal.find("when nothing runs") != std::string::npos);
  refusal.clear();
  engine.tune([&](const std::string&) {  // the run is over
    refusal = test::engine_refusal([&] { engine.start(flow).wait(); });
  });
  BOOST_TEST(refusal.find("are being measured") != std::string::npos);
  engine.start(flow).wait();  // the measuring is over
}

BOOST_AUTO_TEST_SUITE_END()
