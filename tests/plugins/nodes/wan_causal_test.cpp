// SamplerARVideo, EmptyARVideoLatent and ARVideoI2V, and what a causal Wan 2.1 draws by them,
// against PyTorch (../goldens/make_wan_causal_goldens.py).
#include <atomic>
#include <thread>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanCausalNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_causal/expected.safetensors";
  TensorFile expected{golden};

  WanCausalNodes() {
    const std::filesystem::path models = folder / "models/diffusion_models";
    std::filesystem::create_directories(models);
    write_safetensors(models / "causal.safetensors", seeded_model("flow", true, "wan_causal"),
                      {{"config", R"({\"transformer\": {\"causal_ar\": true}})"}});
    add("diffusion_models/whole", seeded_model("flow", true, "wan_causal"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  // What is drawn, and of how many frames of the latent each block is.
  struct Drawn {
    int width = 64, height = 48, length = 17, each = 2, items = 1;
    double cfg = 1;
    bool begins = false;  // with a picture
    const char* model = "causal";
  };
  std::string drawn(const Drawn& video, const std::string& more = "") const {
    const std::string size =
                          cat(R"("width": )", video.width, R"(, "height": )", video.height,
                              R"(, "length": )", video.length, R"(, "batch_size": )", video.items),
                      model = video.begins ? "begin" : "model",
                      latent = video.begins ? R"(["begin", 1])" : R"(["empty", 0])";
    return cat(
        "{", loaded(video.model), R"(, "one": )", text("one", golden), R"(, "two": )",
        text("two", golden),
        node_of("pictures", "test.image",
                cat(R"("path": ")", golden.string(), R"(", "name": "pictures")")),
        node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"),
        video.begins ? node_of("begin", "ARVideoI2V",
                               cat(R"("model": ["model", 0], "vae": ["vae", 0], "start_image":
                                      ["pictures", 0], )",
                                   size))
                     : node_of("empty", "EmptyARVideoLatent", size),
        node_of("blocks", "SamplerARVideo", cat(R"("num_frame_per_block": )", video.each)),
        node_of("levels", "BasicScheduler",
                R"("model": ["model", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0)"),
        more,
        node_of(
            "out", "SamplerCustom",
            cat(R"("model": [")", model, R"(", 0], "add_noise": true, "noise_seed": 7, "cfg": )",
                video.cfg, R"(, "positive": ["one", 0], "negative": ["two", 0], "sampler":
                    ["blocks", 0], "sigmas": ["levels", 0], "latent_image": )",
                latent)),
        R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // hints: of the sampler, whose inputs end before them.
  static std::string with_hints(std::string flow, const std::string& hints) {
    const std::size_t look = flow.find(R"(, "look")");
    return flow.insert(look - 1, hints);
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.output"}).floats("out.output", "samples");
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    const std::size_t from = flow.find(R"("pictures": {)"), to = flow.find("}}", from) + 2;
    return flow.replace(from, to - from, R"("pictures": {"class_type": "EmptyImage", "inputs":
        {"width": 12, "height": 9, "batch_size": 2, "color": 255000}})");
  }
  static std::vector<float> drawn_by(heddle::EngineOptions options, const std::string& flow) {
    heddle::Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"out.output"}})
        .wait()
        .floats("out.output", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_causal_nodes, WanCausalNodes)

BOOST_AUTO_TEST_CASE(a_video_drawn_block_by_block_equals_pytorch) {
  compare(latent_of(drawn({})), "latent");
}

BOOST_AUTO_TEST_CASE(each_side_of_a_guidance_looks_at_frames_of_its_own) {
  compare(latent_of(drawn({.width = 48, .height = 32, .length = 9, .each = 1, .cfg = 3})),
          "guided.latent");
}

BOOST_AUTO_TEST_CASE(two_videos_at_once_equal_pytorch) {
  compare(latent_of(drawn({.width = 48, .height = 32, .length = 9, .items = 2})), "batch.latent");
}

BOOST_AUTO_TEST_CASE(a_video_behind_a_picture_equals_pytorch) {
  compare(latent_of(drawn({.height = 64, .each = 3, .begins = true})), "begun.latent");
}

BOOST_AUTO_TEST_CASE(dividing_a_video_of_blocks_keeps_its_bytes, *boost::unit_test::label("long")) {
  const std::string flow =
      known(drawn({.width = 48, .height = 32, .length = 9, .each = 1, .cfg = 3}));
  const std::vector<float> of_one = drawn_by(options_for({"cpu:0"}), flow);
  for (const char* mode : {"layers", "cfg"})
    BOOST_TEST(
        are_equal(of_one, drawn_by(options_for({"fake:0", "fake:1"}),
                                   with_hints(flow, cat(R"(, "parallel": ")", mode,
                                                        R"(", "device": "fake:0,fake:1")")))),
        mode);
  BOOST_TEST(are_equal(of_one, drawn_by(options_for({"fake:0"}, std::uint64_t{4} << 20), flow)),
             "little memory");
  const std::string pair = known(drawn({.width = 48, .height = 32, .length = 9, .items = 2}));
  BOOST_TEST(are_equal(drawn_by(options_for({"cpu:0"}), pair),
                       drawn_by(options_for({"fake:0", "fake:1"}),
                                with_hints(pair, R"(, "parallel": "data", "device":
                                                     "fake:0,fake:1")"))),
             "data");
}

// Stopped at every boundary between two steps, and begun again in another call.
BOOST_AUTO_TEST_CASE(a_video_of_blocks_goes_on_from_every_step) {
  const std::string flow = drawn({.width = 48, .height = 32, .length = 9, .each = 2, .cfg = 3});
  heddle::EngineOptions options = options_for({"cpu:0"});
  options.cache_bytes = 1;
  heddle::Engine again(options);
  std::atomic<heddle::Run*> under_way{nullptr};
  std::atomic<int> begun{0}, steps{0};
  heddle::Run run =
      again.start(again.parse(flow), {[&](const heddle::Event& event) {
                                        if (event.node != "out") return;
                                        if (event.kind == heddle::Event::Kind::node_started)
                                          ++begun;
                                        if (event.kind != heddle::Event::Kind::node_progress)
                                          return;
                                        ++steps;
                                        while (under_way == nullptr) std::this_thread::yield();
                                        under_way.load()->pause_and_release();
                                        under_way.load()->resume();
                                      },
                                      {"out.output"}});
  under_way = &run;
  const std::vector<float> in_pieces = run.wait().floats("out.output", "samples");
  BOOST_TEST(are_equal(drawn_by(options, flow), in_pieces));
  constexpr int kSteps = 2 * 3;  // of two blocks
  BOOST_TEST(steps >= kSteps);
  BOOST_TEST(begun > kSteps - 1, begun << " calls");
}

BOOST_AUTO_TEST_CASE(a_video_of_blocks_is_told_before_a_run) {
  for (const Drawn& video : {Drawn{}, Drawn{.width = 48, .height = 32, .cfg = 3},
                             Drawn{.height = 64, .each = 3, .begins = true},
                             Drawn{.height = 64, .length = 1, .begins = true}}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(drawn(video)));
  }
}

// And not of the last block alone, which is smaller than those before it.
BOOST_AUTO_TEST_CASE(the_memory_of_the_largest_block_is_told) {
  const auto told = [&](int length) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    return infer_and_run(data,
                         known(drawn({.width = 48, .height = 32, .length = length, .each = 4})))
        .inferred.host_scratch.at("out");
  };
  const std::uint64_t frames = sizeof(float) * 16 * 4 * 6;  // of one of the latent
  BOOST_TEST(told(17) >= told(13) + frames);
}

// ComfyUI draws by any sampler with such a model; it then is as any other Wan 2.1.
BOOST_AUTO_TEST_CASE(another_sampler_draws_a_whole_video) {
  const auto whole = [&](const char* model) {
    std::string flow = drawn({.width = 48, .height = 32, .length = 9, .model = model});
    const std::string
        blocks = R"({"class_type": "SamplerARVideo", "inputs": {"num_frame_per_block": 2}})",
        levels = R"("model": ["model", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0)";
    flow.replace(flow.find(blocks), blocks.size(),
                 R"({"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}})");
    const std::size_t at = flow.find(R"({"class_type": "BasicScheduler", "inputs": {)" + levels);
    const std::size_t end = flow.find("}}", at) + 2;
    flow.replace(at, end - at,
                 R"({"class_type": "ManualSigmas", "inputs": {"sigmas": "1, 0.5, 0"}})");
    return latent_of(flow);
  };
  BOOST_TEST((whole("causal") == whole("whole")));
}

BOOST_AUTO_TEST_CASE(what_blocks_do_not_go_together_with_is_refused) {
  refused(drawn({.model = "whole"}), {"SamplerARVideo", "'wan'", "causal_ar"});
  // Levels that do not go down to 0.
  std::string flow = drawn({});
  const std::string levels = R"(["levels", 0])";
  flow.replace(flow.find(levels), levels.size(), R"(["split", 0])");
  flow.insert(
      1,
      R"("split": {"class_type": "SplitSigmas", "inputs": {"sigmas": ["levels", 0], "step": 2}}, )");
  refused(flow, {"sigmas: they end at", "SamplerARVideo", "end at 0"});
  // A latent that is not the node's.
  flow = drawn({.height = 64, .each = 3, .begins = true},
               node_of("empty", "EmptyARVideoLatent",
                       R"("width": 32, "height": 32, "length": 9, "batch_size": 1)"));
  const std::string latent = R"("latent_image": ["begin", 1])";
  flow.replace(flow.find(latent), latent.size(), R"("latent_image": ["empty", 0])");
  refused(flow, {"first frames are of (1, 16, 1, 8, 8)", "(1, 16, 3, 4, 4)", "ARVideoI2V"});
  // Context windows and areas.
  const auto of_model = [&](const std::string& type, const std::string& inputs) {
    std::string made = drawn({}, node_of("changed", type, R"("model": ["model", 0], )" + inputs));
    const std::string model = R"("model": ["model", 0], "add_noise")";
    return made.replace(made.find(model), model.size(), R"("model": ["changed", 0], "add_noise")");
  };
  refused(
      of_model("EasyCache", R"("reuse_threshold": 0.2, "start_percent": 0.15, "end_percent": 0.95,
                                    "verbose": false)"),
      {"SamplerARVideo", "EasyCache"});
  flow = drawn({}, node_of("part", "ConditioningSetArea",
                           R"("conditioning": ["one", 0], "width": 64, "height": 64, "x": 0, "y": 0,
                                  "strength": 1.0)"));
  const std::string positive = R"("positive": ["one", 0])";
  refused(flow.replace(flow.find(positive), positive.size(), R"("positive": ["part", 0])"),
          {"areas"});
  flow = drawn({}, node_of("part", "ConditioningSetTimestepRange",
                           R"("conditioning": ["one", 0], "start": 0.0, "end": 0.9)"));
  refused(flow.replace(flow.find(positive), positive.size(), R"("positive": ["part", 0])"),
          {"counts while frames are drawn", "ConditioningSetTimestepRange"});
}

BOOST_AUTO_TEST_CASE(a_division_of_blocks_of_tokens_is_refused) {
  const std::string flow = known(drawn({.width = 48, .height = 32, .length = 9}));
  const std::string text = engine_refusal([&] {
    drawn_by(options_for({"fake:0", "fake:1"}),
             with_hints(flow, R"(, "parallel": "sequence", "device": "fake:0,fake:1")"));
  });
  BOOST_TEST(text.find("SamplerARVideo") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
