// Items of the node contract that no other program has under ThreadSanitizer, each through a plugin
// of its own, in several runs at once (sdk/abi/README.md).
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>
#include <thread>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::cat;
using test::workflow;

BOOST_AUTO_TEST_SUITE(contract)

namespace {

constexpr int kTokens = 48, kTokenWidth = 4, kMixes = 2;

std::vector<float> mixing_weight(int layer) {
  std::vector<float> weight(kTokenWidth * kTokenWidth);
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] = 0.1f * float((i * 7 + std::size_t(layer) * 5) % 11) - 0.4f;
  return weight;
}

// What `test.loop` makes of 0, 1, 2, ... by tests/sample_plugins/token_group.cpp, in double.
std::vector<double> mixed(int steps) {
  std::vector<double> x(kTokens * kTokenWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i);
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t c = 0; c < kTokenWidth; ++c)
      sum += x[a * kTokenWidth + c] * x[b * kTokenWidth + c];
    return sum;
  };
  for (int step = 0; step < steps; ++step) {
    for (double& value : x) value += 0.5 + 1.0 + step;
    for (int layer = 0; layer < kMixes; ++layer) {
      const std::vector<float> weight = mixing_weight(layer);
      std::vector<double> y(x.size());
      for (std::size_t t = 0; t < kTokens; ++t) {
        std::vector<double> share(kTokens), seen(kTokenWidth);
        double most = -1e300, sum = 0;
        for (std::size_t s = 0; s < kTokens; ++s)
          most = std::max(most, share[s] = dot(t, s) * 1e-4);
        for (double& value : share) sum += value = std::exp(value - most);
        for (std::size_t s = 0; s < kTokens; ++s)
          for (std::size_t c = 0; c < kTokenWidth; ++c)
            seen[c] += share[s] / sum * x[s * kTokenWidth + c];
        for (std::size_t o = 0; o < kTokenWidth; ++o)
          for (std::size_t c = 0; c < kTokenWidth; ++c)
            y[t * kTokenWidth + o] += seen[c] * double(weight[o * kTokenWidth + c]);
      }
      x = y;
    }
  }
  return x;
}

double distance(const std::vector<float>& got, const std::vector<double>& expected) {
  BOOST_TEST_REQUIRE(got.size() == expected.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(got[i] - expected[i], 2);
    whole += expected[i] * expected[i];
  }
  return std::sqrt(difference / whole);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_group_divides_the_tokens_of_a_family) {
  const test::TemporaryFolder folder;
  std::vector<test::FileTensor> tensors;
  for (int layer = 0; layer < kMixes; ++layer)
    tensors.push_back({cat("mix.", layer, ".weight"),
                       "F32",
                       {kTokenWidth, kTokenWidth},
                       test::bytes_of_floats(mixing_weight(layer))});
  const std::string path =
      folder.write("mix.safetensors", test::safetensors_bytes(tensors)).string();
  EngineOptions options = test::fake_engine_options({"fake:0", "fake:1", "fake:2"});
  options.compute = {{"fake", "f32"}};
  Engine engine(options);
  const auto run = [&](int steps, const std::string& hints) {
    const std::string load =
        cat(R"({"class_type": "test.load", "inputs": {"path": ")", path, R"("}})");
    const std::string x =
        cat(R"({"class_type": "test.ramp", "inputs": {"count": )", kTokens * kTokenWidth, "}}");
    const std::string loop = cat(
        R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )",
        steps, "}", hints, "}");
    const std::string flow =
        workflow({{"load", load.c_str()},
                  {"x", x.c_str()},
                  {"loop", loop.c_str()},
                  {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
    StartOptions start;
    start.fetch = {"keep.out"};
    start.anew = true;
    return engine.start(engine.parse(flow), std::move(start)).wait().floats("keep.out");
  };
  const std::string divided = R"(, "parallel": "sequence", "device": "fake:0,fake:1")";
  const test::FakeControl control;
  const std::vector<float> first = run(3, divided);
  BOOST_TEST(distance(first, mixed(3)) < 1e-5);
  for (const std::uint32_t device : {0, 1})
    BOOST_TEST(control->launches(device, HEDDLE_OP_ATTENTION) > 0u, "fake:" << device);
  BOOST_TEST(control->launches(2, nullptr) == 0u);

  // Others at the same time, by the same group and by one device: the same bytes again.
  constexpr int kRuns = 4;
  std::vector<std::vector<float>> all(kRuns);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i)
    threads.emplace_back([&, i] {
      all[std::size_t(i)] = run(3 - i % 2, i < 3 ? divided : R"(, "device": "fake:2")");
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST((all[0] == first));
  BOOST_TEST((all[2] == first));
  BOOST_TEST((all[1] == all[3]));
  BOOST_TEST(distance(all[1], mixed(2)) < 1e-5);
}

// One that the engine has and one that it has not, asked for in runs of two engines at once.
BOOST_AUTO_TEST_CASE(optional_services_are_there_or_not) {
  EngineOptions options = test::engine_options();
  options.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/bad/bad_optional_service.so");
  std::deque<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.emplace_back(options);
  const std::string flow =
      workflow({{"guess", R"({"class_type": "test.guesser", "inputs": {}})"},
                {"guessed", R"({"class_type": "test.keep", "inputs": {"value": ["guess", 0]}})"},
                {"draw", R"({"class_type": "test.draw", "inputs": {}})"},
                {"drawn", R"({"class_type": "test.keep", "inputs": {"value": ["draw", 0]}})"}});
  constexpr int kRuns = 4;
  std::vector<std::string> all(kRuns);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i)
    threads.emplace_back([&, i] {
      Engine& engine = engines[std::size_t(i % 2)];
      for (int repeat = 0; repeat < 5; ++repeat) {
        int shown = 0;
        StartOptions start;
        start.fetch = {"guessed.out", "drawn.out"};
        start.anew = true;
        start.previews = PreviewMethod::linear;
        start.observer = [&](const Event& event) {
          shown += event.kind == Event::Kind::preview ? 1 : 0;
        };
        const Results results = engine.start(engine.parse(flow), std::move(start)).wait();
        all[std::size_t(i)] +=
            cat(results.text("guessed.out"), " ", results.text("drawn.out"), " ", shown, ";");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& told : all)
    BOOST_TEST(told == "false 3 3;false 3 3;false 3 3;false 3 3;false 3 3;");
}

BOOST_AUTO_TEST_SUITE_END()
