// Calls of isolated nodes that are under way at the same time with memory of devices: of one run,
// whose calls one worker has, and of two, whose workers have the same memory.
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "engine/base/text.h"
#include "tests/engine/isolate/on_device_fixture.h"

using namespace heddle;
using engine::cat;
using test::child_processes;
using test::engine_refusal;
using test::fake_mappings;
using test::on_fake;

BOOST_AUTO_TEST_SUITE(calls_at_once)

namespace {

constexpr int kRows = 700;

// `hows.size()` calls of which none ends before all are under way. All read the same tensor, and
// each one more: call i makes (i + 3) times 0, 1, 2, ...
std::string gathered(const std::vector<std::string>& hows) {
  std::string text =
      cat(R"({"ramp": {"class_type": "test.device.ramp", "inputs": {"rows": )", kRows, "}}");
  std::string last = "ramp";
  for (std::size_t i = 0; i < hows.size(); ++i) {
    text += cat(R"(, "together)", i, R"(": {"class_type": "test.device.together", "inputs": {)",
                R"("a": [")", last, R"(", 0], "b": ["ramp", 0], "count": )", hows.size(),
                R"(, "how": ")", hows[i], R"("}})");
    for (const auto& [name, output] : {std::pair("sum", 0), {"where", 1}, {"process", 2}})
      text +=
          cat(", \"", name, i, R"(": {"class_type": "test.keep", "inputs": {"value": ["together)",
              i, "\", ", output, "]}}");
    text += cat(R"(, "more)", i, R"(": {"class_type": "test.device.sum", "inputs": {"a": [")", last,
                R"(", 0], "b": ["ramp", 0]}})");
    last = cat("more", i);
  }
  return text + "}";
}

// Where calls of the engine wait for each other: false where nobody else comes.
class Meeting {
 public:
  bool wait(int count) {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return here_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
};

}  // namespace

BOOST_DATA_TEST_CASE(a_worker_has_several_calls_on_its_devices,
                     boost::unit_test::data::make({1, 2}) * boost::unit_test::data::make({2, 5}),
                     device_count, count) {
  const std::size_t children = child_processes(), mappings = fake_mappings();
  {
    std::vector<std::string> devices = {"fake:0", "fake:1"};
    devices.resize(std::size_t(device_count));
    Engine engine(on_fake(true, "{}", devices));
    Workflow flow = engine.parse(gathered(std::vector<std::string>(std::size_t(count))));
    StartOptions start;
    for (int i = 0; i < count; ++i) {
      flow.place(cat("together", i), devices[std::size_t(i % device_count)]);
      for (const char* name : {"sum", "where", "process"})
        start.fetch.push_back(cat(name, i, ".out"));
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Results results = engine.start(flow, start).wait();
      std::set<std::string> processes;
      for (int i = 0; i < count; ++i) {
        std::vector<float> expected(std::size_t{kRows} * 4);
        for (std::size_t k = 0; k < expected.size(); ++k) expected[k] = float(k) * float(i + 3);
        BOOST_TEST((results.floats(cat("sum", i, ".out")) == expected), i);
        BOOST_TEST(results.text(cat("where", i, ".out")) == devices[std::size_t(i % device_count)]);
        processes.insert(results.text(cat("process", i, ".out")));
      }
      BOOST_TEST(processes.size() == 1u);
      BOOST_TEST(!processes.contains(std::to_string(::getpid())));
    }
  }
  BOOST_TEST(child_processes() == children);
  BOOST_TEST(fake_mappings() == mappings);
}

// The worker goes, and the other calls with it: whichever the run hears of first, it is told why.
BOOST_DATA_TEST_CASE(of_calls_of_one_worker_the_one_that_fails_is_told,
                     boost::unit_test::data::make({"throw", "kill"}) *
                         boost::unit_test::data::make({0, 1}),
                     how, which) {
  const std::size_t mappings = fake_mappings();
  {
    Engine engine(on_fake(true));
    std::vector<std::string> hows(3, "stay");
    hows[std::size_t(which)] = how;
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::string told;
      try {
        engine.start(engine.parse(gathered(hows))).wait();
      } catch (const EngineError& error) {
        told = cat(error.code(), " ", error.what());
      }
      const bool is_killed = how == std::string("kill");
      BOOST_TEST(
          told.starts_with(std::to_string(is_killed ? HEDDLE_INTERNAL : HEDDLE_INVALID_ARGUMENT)),
          told);
      BOOST_TEST(told.find(is_killed ? "SIGKILL" : "it was asked to fail") != std::string::npos,
                 told);
      StartOptions start;
      start.fetch = {"sum0.out"};
      const Results results = engine.start(engine.parse(gathered({"", ""})), start).wait();
      BOOST_TEST(results.floats("sum0.out").at(5) == 15.f);
    }
  }
  BOOST_TEST(fake_mappings() == mappings);
}

// The tensor is of an earlier run, so that both workers have its memory while the calls wait.
BOOST_DATA_TEST_CASE(two_workers_have_the_same_memory,
                     boost::unit_test::data::make({"", "kill", "throw"}), how) {
  const std::size_t mappings = fake_mappings();
  {
    Engine engine(on_fake(true));
    const std::string ramp =
        cat(R"({"ramp": {"class_type": "test.device.ramp", "inputs": {"rows": )", kRows,
            R"(}}, "keep": {"class_type": "test.keep", "inputs": {"value": [")");
    engine.start(engine.parse(ramp + R"(ramp", 0]}}})")).wait();
    Meeting meeting;
    std::atomic<std::size_t> shared = 0;
    const auto run = [&](const std::string& its_how) {
      StartOptions start;
      start.fetch = {"keep.out"};
      start.observer = [&](const heddle::Event& event) {
        if (event.kind != heddle::Event::Kind::node_progress || event.node != "sum") return;
        if (!meeting.wait(2)) return;
        if (its_how.empty()) shared = fake_mappings() - mappings;
        meeting.wait(4);
      };
      const std::string flow =
          cat(ramp, R"(sum", 0]}}, "sum": {"class_type": "test.device.sum", "inputs": {)",
              R"("a": ["ramp", 0], "b": ["ramp", 0], "how": ")", its_how, R"("}}})");
      return engine.start(engine.parse(flow), std::move(start)).wait().floats("keep.out");
    };
    std::string told;
    std::vector<float> sum;
    std::thread other([&] { told = engine_refusal([&] { run(how); }); });
    const std::string failed = engine_refusal([&] { sum = run(""); });
    other.join();
    BOOST_TEST(failed == "");
    BOOST_TEST_REQUIRE(sum.size() == std::size_t{kRows} * 4);
    for (std::size_t k = 0; k < sum.size(); ++k) BOOST_TEST_REQUIRE(sum[k] == 2 * float(k));
    BOOST_TEST(shared.load() == 3u);  // the tensor once, and the sum of each call
    const bool fails = how != std::string();
    BOOST_TEST(told.empty() != fails, told);
  }
  BOOST_TEST(fake_mappings() == mappings);
}

BOOST_AUTO_TEST_SUITE_END()
