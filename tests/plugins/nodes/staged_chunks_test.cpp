// One clip through a causal autoencoder with the stages of a chunk on several simulated devices:
// they work side by side, each at another chunk, to the same bytes as one device. The autoencoder
// is the tiny one of Wan 2.1 of video_vae_test.cpp, on devices so slow that computing is what takes
// time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct StagedFixture : PlacedFixture {
  static constexpr int kChunks = 8;
  static constexpr const char* kSlow = R"("flops": 1e8, "bandwidth": 1e12, "launch_seconds": 1e-9)";

  StagedFixture() { add("vae/wan_2.1_vae", seeded_model("vae", false, "wan_vae")); }

  EngineOptions options(std::size_t devices, const std::string& more = "") const {
    std::vector<std::string> all;
    for (std::size_t d = 0; d < devices; ++d) all.push_back(cat("fake:", d));
    EngineOptions options = options_for(all);
    options.device_options["fake"] = cat("{", kSlow, more, "}");
    return options;
  }
  static std::string decode(int seed, int chunks = kChunks, const std::string& hints = "") {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}},
        "in": {"class_type": "RandomLatent", "inputs": {"width": 48, "height": 32, "channels": 16, "length": )",
        1 + 4 * (chunks - 1), R"(, "seed": )", seed, R"(}},
        "out": {"class_type": "VAEDecode", "inputs": {"vae": ["vae", 0], "samples": ["in", 0]})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // Of pictures of noise.
  static std::string encode(int seed, const std::string& hints = "") {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}},
        "grey": {"class_type": "EmptyImage", "inputs": {"width": 48, "height": 32, "batch_size": 29, "color": 8421504}},
        "in": {"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "strength": 0.5, "seed": )",
        seed, R"(}},
        "out": {"class_type": "VAEEncode", "inputs": {"vae": ["vae", 0], "pixels": ["in", 0]})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  struct Made {
    std::vector<float> numbers;
    double seconds = 0;              // simulated, of the furthest device
    std::vector<std::string> heard;  // warnings
    std::vector<double> progress;
  };
  // With the weights there already.
  Made run(Engine& engine, const std::string& flow, std::size_t devices) const {
    control->reset();
    Made made;
    std::mutex mutex;
    const auto observe = [&](const Event& event) {
      if (event.node != "out") return;
      const std::lock_guard lock(mutex);
      if (event.kind == Event::Kind::warning) made.heard.emplace_back(event.text);
      if (event.kind == Event::Kind::node_progress) made.progress.push_back(event.fraction);
    };
    const bool is_latent = flow.find("VAEEncode") != std::string::npos;
    const std::string output = is_latent ? "out.LATENT" : "out.IMAGE";
    made.numbers = engine.start(engine.parse(flow), {.observer = observe, .fetch = {output}})
                       .wait()
                       .floats(output, is_latent ? "samples" : "");
    for (std::uint32_t d = 0; d < devices; ++d) {
      made.seconds = std::max(made.seconds, control->now(d));
      BOOST_TEST(control->freed_in_use(d) == 0u);
    }
    return made;
  }
  static engine::Json step_of(Engine& engine, const std::string& flow) {
    const engine::Json plan = engine::parse_json(engine.plan_json(engine.parse(flow)), "the plan");
    for (const engine::Json& step : plan.at("steps").as_array())
      if (step.at("kind").as_string() == "run" && step.at("node").as_string() == "out") return step;
    throw std::logic_error("the plan has no such node");
  }
  // The most that a device has to do, and a round, as planned.
  struct Bound {
    double slowest = 0, round = 0, all = 0;
  };
  static Bound bound_of(const engine::Json& step) {
    Bound bound;
    std::map<std::string, double> busy;
    const auto& calls = step.at("calls").as_array();
    for (const engine::Json& call : calls) {
      const double seconds = call.at("seconds").as_double();
      busy[call.at("devices").at(0).as_string()] += seconds;
      bound.all += seconds;
    }
    for (const auto& [device, seconds] : busy) bound.slowest = std::max(bound.slowest, seconds);
    const std::size_t stages = calls.size() / kChunks;
    for (std::size_t s = 0; s < stages; ++s)
      bound.round += calls[calls.size() - 1 - s].at("seconds").as_double();
    return bound;
  }
  // Over devices, of `flow(seed)`.
  template <class Flow>
  void hold(const Flow& flow) const {
    Engine one(options(1));
    (void)run(one, flow(1), 1);
    const Made alone = run(one, flow(2), 1);
    for (const std::size_t devices : {2, 4}) {
      Engine engine(options(devices));
      const engine::Json step = step_of(engine, flow(2));
      BOOST_TEST_REQUIRE(step.find("pipeline") != nullptr);
      BOOST_TEST(step.at("pipeline").at("devices").size() == devices);
      const Bound bound = bound_of(step);
      (void)run(engine, flow(1), devices);
      const Made made = run(engine, flow(2), devices);
      BOOST_TEST(are_equal(made.numbers, alone.numbers), devices << " devices");
      BOOST_TEST_MESSAGE(devices << " devices: " << made.seconds << " s, alone " << alone.seconds
                                 << " s; slowest device " << bound.slowest << " s, one chunk "
                                 << bound.round << " s; planned "
                                 << step.at("pipeline").at("seconds").as_double() << " s");
      BOOST_TEST(made.seconds < 1.05 * (bound.slowest + bound.round));
      BOOST_TEST(made.seconds > bound.slowest);
      BOOST_TEST(made.progress == alone.progress, boost::test_tools::per_element());
      BOOST_TEST(made.heard.empty());
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(staged_chunks, StagedFixture)

BOOST_AUTO_TEST_CASE(devices_decode_a_clip_side_by_side_to_the_bytes_of_one) {
  hold([](int seed) { return decode(seed); });
}

BOOST_AUTO_TEST_CASE(devices_encode_a_clip_side_by_side_to_the_bytes_of_one) {
  hold([](int seed) { return encode(seed); });
}

BOOST_AUTO_TEST_CASE(a_plan_tells_of_the_pipeline_and_counts_what_is_under_way) {
  Engine engine(options(2));
  const std::string text = engine.plan(engine.parse(decode(1)));
  BOOST_TEST_MESSAGE(text.substr(text.find("chunks in a pipeline") - 8, 300));
  BOOST_TEST(text.find("8 chunks in a pipeline over fake:1, fake:0: stages 1 to ") !=
             std::string::npos);
  BOOST_TEST(text.find("(stage 1 of ") != std::string::npos);
  // What a device has under way is part of what the node needs there.
  const engine::Json step = step_of(engine, decode(1));
  const engine::Json told =
      engine::parse_json(engine.plan_min_memory(engine.parse(decode(1)), true), "min-memory");
  int found = 0;
  for (const engine::Json& one : step.at("pipeline").at("devices").as_array())
    for (const engine::Json& device : told.as_array()) {
      if (device.at("device").as_string() != one.at("device").as_string()) continue;
      for (const engine::Json& node : device.at("nodes").as_array()) {
        if (node.at("node").as_string() != "out") continue;
        ++found;
        BOOST_TEST(one.at("bytes_under_way").as_uint64() > 0u);
        BOOST_TEST(node.at("all_bytes").as_uint64() > one.at("bytes_under_way").as_uint64());
      }
    }
  BOOST_TEST(found == 2);
}

// With budgets of what the plan says of each device, and of all weights, which it says call by
// call, nothing lacks; with less than half one device does all from the start.
BOOST_AUTO_TEST_CASE(budgets_of_what_is_told_are_enough) {
  constexpr int kFew = 5;
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1, kFew), 1).numbers;
  EngineOptions narrow = options(2);
  for (const char* name : {"fake:0", "fake:1"}) narrow.reserves[name] = std::uint64_t{0};
  narrow.memory_poll_seconds = 0;
  std::map<std::string, std::uint64_t> told;
  {
    Engine engine(narrow);
    const engine::Json all = engine::parse_json(
        engine.plan_min_memory(engine.parse(decode(1, kFew)), true), "min-memory");
    for (const engine::Json& device : all.as_array())
      for (const engine::Json& node : device.at("nodes").as_array())
        if (node.at("node").as_string() == "out" && node.find("all_bytes") != nullptr)
          told[device.at("device").as_string()] = node.at("all_bytes").as_uint64();
  }
  for (const double share : {3.0, 0.4}) {
    for (const char* name : {"fake:0", "fake:1"})
      narrow.budgets[name] = MemorySize{std::uint64_t(share * double(told.at(name)))};
    Engine engine(narrow);
    const bool is_staged = step_of(engine, decode(1, kFew)).find("pipeline") != nullptr;
    BOOST_TEST(is_staged == (share > 1), "a budget of " << share << " times what is told");
    if (share < 1) continue;
    const Made made = run(engine, decode(1, kFew), 2);
    BOOST_TEST(made.heard.empty());
    BOOST_TEST(are_equal(made.numbers, wanted));
  }
}

BOOST_AUTO_TEST_CASE(one_device_does_all_where_it_is_asked_to_or_links_are_slow) {
  Engine engine(options(2));
  BOOST_TEST(step_of(engine, decode(1)).find("pipeline") != nullptr);
  for (const char* hints : {R"(, "parallel": "none")", R"(, "device": "fake:1")"})
    BOOST_TEST(step_of(engine, decode(1, kChunks, hints)).find("pipeline") == nullptr, hints);
  Engine far(options(2, R"(, "links": {"peer": {"bandwidth": 1e4, "latency": 1}})"));
  BOOST_TEST(step_of(far, decode(1)).find("pipeline") == nullptr);
  Engine alone(options(1));
  BOOST_TEST(step_of(alone, decode(1)).find("pipeline") == nullptr);
}

BOOST_AUTO_TEST_CASE(work_that_runs_as_late_as_events_allow_makes_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1), 1).numbers;
  for (int seed = 1; seed <= 2; ++seed) {
    Engine engine(options(3, cat(R"(, "shuffle": )", seed)));
    BOOST_TEST(step_of(engine, decode(1)).find("pipeline") != nullptr);
    BOOST_TEST(are_equal(run(engine, decode(1), 3).numbers, wanted), "shuffled by " << seed);
  }
}

BOOST_AUTO_TEST_CASE(where_a_device_has_no_room_one_goes_on_to_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(2), 1).numbers;
  int warned = 0;
  for (const std::uint64_t nth : {1, 2, 5, 20}) {
    Engine engine(options(2));
    control->reset();
    control->fail_allocs(1, nth, 1000);  // more than the call asks for
    std::vector<double> progress;
    std::vector<std::string> warnings;
    const auto observe = [&](const Event& event) {
      if (event.node != "out") return;
      if (event.kind == Event::Kind::node_progress) progress.push_back(event.fraction);
      if (event.kind == Event::Kind::warning) warnings.emplace_back(event.text);
    };
    const std::vector<float> made =
        engine.start(engine.parse(decode(2)), {.observer = observe, .fetch = {"out.IMAGE"}})
            .wait()
            .floats("out.IMAGE");
    BOOST_TEST(are_equal(made, wanted), "allocation " << nth);
    BOOST_TEST(progress.size() == std::size_t(kChunks));
    BOOST_TEST(std::ranges::is_sorted(progress));
    for (const std::string& warning : warnings) {
      BOOST_TEST(warning.find("one device goes on") != std::string::npos, warning);
      ++warned;
    }
  }
  BOOST_TEST(warned > 0);
}

// Also where the clip is begun again on one device in the middle of it.
BOOST_AUTO_TEST_CASE(who_reads_frames_as_they_come_gets_each_once) {
  constexpr int kFew = 5;
  const std::filesystem::path told = folder / "told";
  std::string flow = decode(1, kFew);
  flow.back() = ',';
  flow += cat(
      R"("follow": {"class_type": "test.follow_rows", "inputs": {"rows": ["out", 0], "path": ")",
      told.string(), R"("}}})");
  for (const std::uint64_t nth : {0, 9}) {
    std::filesystem::remove(told);
    Engine engine(options(2));
    control->reset();
    if (nth > 0) control->fail_allocs(1, nth, 1000);
    std::vector<double> progress;
    const auto observe = [&](const Event& event) {
      if (event.node == "out" && event.kind == Event::Kind::node_progress)
        progress.push_back(event.fraction);
    };
    engine.start(engine.parse(flow), {.observer = observe}).wait();
    BOOST_TEST(std::filesystem::file_size(told) == std::size_t(1 + 4 * (kFew - 1)));
    BOOST_TEST(progress.size() == std::size_t(kFew));
    BOOST_TEST(std::ranges::is_sorted(progress));
  }
}

BOOST_AUTO_TEST_CASE(a_pause_between_chunks_keeps_the_bytes) {
  constexpr int kFew = 5;
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1, kFew), 1).numbers;
  Engine engine(options(2));
  Run* running = nullptr;
  std::atomic<bool> may_pause = false, is_paused = false;
  std::atomic<int> heard = 0;
  Run paused = engine.start(
      engine.parse(decode(1, kFew)),
      {.observer =
           [&](const Event& event) {
             if (event.kind != Event::Kind::node_progress || event.node != "out" || ++heard != 1)
               return;
             while (!may_pause) std::this_thread::yield();
             running->pause();
             is_paused = true;
           },
       .fetch = {"out.IMAGE"}});
  running = &paused;
  may_pause = true;
  while (!is_paused) std::this_thread::yield();
  BOOST_TEST(!paused.wait_for(std::chrono::milliseconds(200)));
  BOOST_TEST(heard < kFew);
  paused.resume();
  BOOST_TEST(are_equal(paused.wait().floats("out.IMAGE"), wanted));
}

// The run begins again, and makes the same.
BOOST_AUTO_TEST_CASE(a_failure_of_one_device_is_got_over) {
  constexpr int kFew = 4;
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(2, kFew), 1).numbers;
  for (const std::uint32_t device : {0u, 1u})
    for (const std::uint64_t nth : {1, 40, 90}) {
      Engine engine(options(2));
      control->reset();
      control->fail_launch(device, nth);
      const std::vector<float> made =
          engine.start(engine.parse(decode(2, kFew)), {{}, {"out.IMAGE"}})
              .wait()
              .floats("out.IMAGE");
      BOOST_TEST(control->faults(device) == 1u);
      BOOST_TEST(control->freed_in_use(device) == 0u);
      BOOST_TEST(are_equal(made, wanted), "launch " << nth << " of fake:" << device);
    }
}

BOOST_AUTO_TEST_CASE(a_run_is_cancelled_between_two_chunks) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(3), 1).numbers;
  Engine engine(options(2));
  (void)run(engine, decode(1), 2);
  Run* running = nullptr;
  std::atomic<bool> may_cancel = false;
  std::atomic<int> told = 0;
  Run run_one =
      engine.start(engine.parse(decode(2)),
                   {.observer =
                        [&](const Event& event) {
                          if (event.kind != Event::Kind::node_progress || event.node != "out")
                            return;
                          ++told;
                          while (!may_cancel) std::this_thread::yield();
                          running->cancel();
                        },
                    .fetch = {"out.IMAGE"}});
  running = &run_one;
  may_cancel = true;
  try {
    run_one.wait();
    BOOST_TEST(false, "it was not cancelled");
  } catch (const EngineError& error) {
    BOOST_TEST(error.code() == HEDDLE_CANCELLED, error.what());
  }
  BOOST_TEST(told < 3);
  for (const std::uint32_t d : {0u, 1u}) BOOST_TEST(control->freed_in_use(d) == 0u);
  BOOST_TEST(are_equal(run(engine, decode(3), 2).numbers, wanted));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
