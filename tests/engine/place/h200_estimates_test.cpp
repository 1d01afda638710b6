// What placement says of a published model beside what was measured: FLUX.1 dev at 1024x1024, in
// bf16, on H200s that are linked to each other.
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/support/plan_case.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// As `heddle tune` found them, in the call in which most of what follows was measured; how much
// more is multiplied at half the time (1.108 times as much), in a later one.
constexpr const char* kMachine = R"({
  "pinned": "64GiB",
  "devices": [%s],
  "links": {"cuda:0 -> cuda:1": {"kind": "direct", "both": true}},
  "costs": {
    "devices": {"NVIDIA H200": {"flops_per_second": 6.72e14, "attention_flops_per_second": 6.04e14,
                                "fp8_flops_per_second": 1.148e15,
                                "half_time_flops_per_second": 7.45e14, "bytes_per_second": 3.61e12,
                                "launch_seconds": 1.17e-5}},
    "links": {"NVIDIA H200 -> NVIDIA H200": {"bytes_per_second": 3.99e11, "latency_seconds": 1.59e-5},
              "host -> NVIDIA H200": {"bytes_per_second": 8.66e9, "latency_seconds": 1e-5},
              "pinned host -> NVIDIA H200": {"bytes_per_second": 5.55e10, "latency_seconds": 1e-5}}},
  "models": {"flux": {"kind": "flux", "scaled_fp8": %s, "hints": {"parallel": "%s"}}},
  "nodes": [{"id": "sampler", "outputs": ["512KiB"],
             "calls": [{"model": "flux", "steps": %d, "sets": %d}]}]
})";

struct Measured {
  const char* what;
  int devices, sets;
  const char *budget, *mode;
  double milliseconds;  // of a step
  bool scaled = false;
  int steps = 6;
};
constexpr Measured kMeasured[] = {
    {"one device", 1, 1, "", "none", 124.0},
    {"products of 8 bits", 1, 1, "", "none", 87.2, true},
    {"layers over two", 2, 1, "", "layers", 115.4},
    {"sequence over two", 2, 1, "", "sequence", 70.9},
    {"rows over two", 2, 1, "", "tensor", 81.0},
    {"two sets on one", 1, 2, "", "none", 244.1},
    {"a set on each of two", 2, 2, "", "cfg", 124.1},
    {"streamed from the other", 2, 1, "12GiB", "none", 127.1},
    {"two sets streamed to one", 1, 2, "14GiB", "none", 249.5},
    {"two sets streamed to two", 2, 2, "14GiB", "cfg", 126.2},
    {"most streamed", 1, 1, "8GiB", "none", 184.0},
    {"some streamed", 1, 1, "12GiB", "none", 126.0},
};

engine::PlacedCall placed(const Measured& m, const engine::Catalog& catalog) {
  std::string devices;
  for (int d = 0; d < m.devices; ++d)
    devices +=
        engine::cat(d == 0 ? "" : ",", R"({"name": "cuda:)", d,
                    R"(", "model": "NVIDIA H200", "memory": "139GiB")",
                    *m.budget == 0 ? "" : engine::cat(R"(, "budget": ")", m.budget, "\""), "}");
  std::string text(4096, ' ');
  text.resize(std::size_t(std::snprintf(text.data(), text.size(), kMachine, devices.c_str(),
                                        m.scaled ? "true" : "false", m.mode, m.steps, m.sets)));
  const test::TemporaryFolder folder;
  const test::PlanCase question(engine::parse_json(text, "H200"), catalog, folder.path());
  return question.plan().assignments.front().calls.front();
}

double planned(const Measured& m, const engine::Catalog& catalog) {
  return placed(m, catalog).step_seconds;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(estimates_of_a_published_model, *boost::unit_test::label("long"))

BOOST_AUTO_TEST_CASE(are_near_what_was_measured) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  for (const Measured& m : kMeasured) BOOST_TEST_CONTEXT(m.what) {
      const double seconds = planned(m, *plugins.catalog);
      BOOST_TEST_MESSAGE(m.what << ": " << seconds * 1e3 << " ms, measured " << m.milliseconds);
      BOOST_TEST(seconds * 1e3 / m.milliseconds > 0.85);
      BOOST_TEST(seconds * 1e3 / m.milliseconds < 1.15);
    }
}

// Two cards that take turns at FLUX's layers are faster than one, as they rest in between. What
// that gains in few steps is too little beside loading. Measured: 28 steps of 114.4 ms against
// 123.0 on one.
BOOST_AUTO_TEST_CASE(of_the_ways_that_keep_the_form_the_fastest_is_chosen) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  const auto chosen = [&](int devices, int sets, int steps) {
    const engine::PlacedCall call =
        placed({"", devices, sets, "", "", 0, false, steps}, *plugins.catalog);
    const auto way = std::ranges::find_if(call.report.alternatives, &engine::Alternative::chosen);
    return way == call.report.alternatives.end() ? std::string("none is") : way->name;
  };
  BOOST_TEST(chosen(2, 1, 28) == "layers over cuda:0, cuda:1");
  BOOST_TEST(chosen(2, 1, 4) == "resident on cuda:0");
  BOOST_TEST(chosen(2, 2, 28) == "cfg over cuda:0, cuda:1");
  BOOST_TEST(chosen(1, 1, 28) == "resident on cuda:0");
}

BOOST_AUTO_TEST_CASE(what_an_idle_device_lends_passes_beside_computing) {
  const engine::LoadedPlugins plugins =
      engine::load_plugins({std::filesystem::path(HEDDLE_PLUGINS_DIR) / "denoisers.so"});
  const auto seconds = [&](int devices, const char* budget) {
    return planned({"", devices, 1, budget, "none", 0}, *plugins.catalog);
  };
  const double resident = seconds(1, "");
  BOOST_TEST(seconds(1, "8GiB") > 1.2 * resident);  // from host memory
  BOOST_TEST(seconds(2, "8GiB") < 1.2 * resident);  // most of it from the other
  BOOST_TEST(seconds(2, "12GiB") < 1.02 * resident);
}

BOOST_AUTO_TEST_SUITE_END()
