// One clip through a causal autoencoder whose stages are on several simulated devices. The
// autoencoder is the tiny one of Wan 2.1 of video_vae_test.cpp, on devices so slow that computing
// is what takes time.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>

#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {

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
    return decode_by("VAEDecode", seed, chunks, 1, "", hints);
  }
  // of so many videos, all the same; inputs: more of them.
  static std::string decode_by(const std::string& type, int seed, int chunks, int videos,
                               const std::string& inputs, const std::string& hints = "") {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}},
        "one": {"class_type": "RandomLatent", "inputs": {"width": 48, "height": 32, "channels": 16, "length": )",
        1 + 4 * (chunks - 1), R"(, "seed": )", seed,
        R"(}}, "all": {"class_type": "RepeatLatentBatch", "inputs": {"samples": ["one", 0], "amount": )",
        videos, R"(}}, "out": {"class_type": ")", type,
        R"(", "inputs": {"vae": ["vae", 0], "samples": [")", videos > 1 ? "all" : "one", R"(", 0])",
        inputs, "}", hints,
        R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
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
  // heard: told of 0 before the run, and of each chunk of "out" that is read, on the call's thread.
  Made run(Engine& engine, const std::string& flow, std::size_t devices,
           const std::function<void(std::size_t chunks)>& heard = {}) const {
    control->reset();
    if (heard) heard(0);
    Made made;
    std::mutex mutex;
    const auto observe = [&](const Event& event) {
      if (event.node != "out") return;
      const std::lock_guard lock(mutex);
      if (event.kind == Event::Kind::warning) made.heard.emplace_back(event.text);
      if (event.kind != Event::Kind::node_progress) return;
      made.progress.push_back(event.fraction);
      if (heard) heard(made.progress.size());
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
  // On devices of which all is to be used, and nothing counts but what the engine takes.
  EngineOptions narrow(std::size_t devices) const {
    EngineOptions narrow = options(devices);
    for (std::size_t d = 0; d < devices; ++d) narrow.reserves[cat("fake:", d)] = std::uint64_t{0};
    narrow.memory_poll_seconds = 0;
    return narrow;
  }
  // By device: what the plan says that "out" needs there, "min_bytes" or "all_bytes".
  static std::map<std::string, std::uint64_t> told_of(const EngineOptions& options,
                                                      const std::string& flow, const char* what) {
    Engine engine(options);
    std::map<std::string, std::uint64_t> told;
    const engine::Json all =
        engine::parse_json(engine.plan_min_memory(engine.parse(flow), true), "min-memory");
    for (const engine::Json& device : all.as_array())
      for (const engine::Json& node : device.at("nodes").as_array())
        if (node.at("node").as_string() == "out" && node.find(what) != nullptr)
          told[device.at("device").as_string()] = node.at(what).as_uint64();
    return told;
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

}  // namespace heddle::test
