// HunyuanImageToVideo, and what HunyuanVideo 1.0 draws of it, against diffusers
// (../goldens/make_hunyuan_begin_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct HunyuanBegin : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan_begin/expected.safetensors";
  TensorFile expected{golden};

  HunyuanBegin() {
    for (const char* kind : {"concat", "replace"})
      add(cat("diffusion_models/", kind), seeded_model(kind, true, "hunyuan_begin"));
    add("diffusion_models/shown", seeded_model("shown", true, "hunyuan_shown"));
    add("vae/hunyuan_video_vae_bf16", seeded_model("vae", false, "hunyuan_first"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string nodes(const std::string& model, const std::string& how, int items = 1,
                    const char* more = R"(, "start_image": ["picture", 0])") const {
    return cat(loaded(model), R"(, "one": )", text("one", golden),
               node_of("picture", "test.image",
                       cat(R"("path": ")", golden.string(), R"(", "name": "picture")")),
               node_of("vae", "VAELoader", R"("vae_name": "hunyuan_video_vae_bf16.safetensors")"),
               node_of("node", "HunyuanImageToVideo",
                       cat(R"("positive": ["one", 0], "vae": ["vae", 0], "width": 64, "height": 48,
                              "length": 9, "batch_size": )",
                           items, R"(, "guidance_type": ")", how, "\"", more)));
  }
  static std::string sampled(const std::string& nodes, const std::string& hints = "") {
    return cat(
        "{", nodes,
        R"(, "shifted": {"class_type": "ModelSamplingSD3", "inputs": {"model": ["model", 0], "shift": 7.0}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": ["shifted", 0], "conditioning": ["node", 0]}},
      "sigmas": {"class_type": "BasicScheduler", "inputs": {"model": ["shifted", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["node", 1]})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.output"}).floats("out.output", "samples");
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    const std::string begin = R"("one": {"class_type": "test.)";
    flow.insert(flow.find(begin) + begin.size(), "given_");
    const std::size_t from = flow.find(R"("picture": {)"), to = flow.find("}}", from) + 2;
    return flow.replace(from, to - from, R"("picture": {"class_type": "EmptyImage", "inputs":
        {"width": 12, "height": 9, "batch_size": 1, "color": 255000}})");
  }
  static std::vector<float> drawn(EngineOptions options, const std::string& flow) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow), {{}, {"out.output"}})
        .wait()
        .floats("out.output", "samples");
  }
};

constexpr const char *kConcat = "v1 (concat)", *kReplace = "v2 (replace)", *kCustom = "custom";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_begin_nodes, HunyuanBegin)

BOOST_AUTO_TEST_CASE(videos_that_begin_with_a_picture_equal_diffusers) {
  for (const auto& [model, how] : {std::pair("concat", kConcat), std::pair("replace", kReplace)}) {
    const double error = relative_error(latent_of(sampled(nodes(model, how))),
                                        expected.floats(cat(model, ".latent")));
    BOOST_TEST_MESSAGE(model << ": relative error " << error << ", " << -20 * std::log10(error)
                             << " dB");
    BOOST_TEST(error < kTolerance, model << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(without_a_picture_a_latent_is_empty) {
  const std::vector<float> latent =
      run_whole(cat("{", nodes("replace", kReplace, 2, ""),
                    R"(, "look": {"class_type": "test.look", "inputs": {"value": ["node", 1]}}})"),
                {"node.latent"})
          .floats("node.latent", "samples");
  BOOST_TEST(latent == std::vector<float>(2 * 16 * 3 * 6 * 8, 0.0f));
}

BOOST_AUTO_TEST_CASE(dividing_a_video_that_begins_with_a_picture_keeps_its_bytes,
                     *boost::unit_test::label("long")) {
  for (const auto& [model, how] : {std::pair("concat", kConcat), std::pair("replace", kReplace),
                                   std::pair("shown", kCustom)}) {
    const std::string flow = known(sampled(nodes(model, how)));
    const std::vector<float> of_one = drawn(options_for({"cpu:0"}), flow);
    const auto divided = [&](const char* mode) {
      return drawn(options_for({"fake:0", "fake:1"}),
                   known(sampled(nodes(model, how), cat(R"(, "parallel": ")", mode,
                                                        R"(", "device": "fake:0,fake:1")"))));
    };
    BOOST_TEST(are_equal(of_one, divided("layers")), model);
    BOOST_TEST(are_equal(of_one, drawn(options_for({"fake:0"}, std::uint64_t{8} << 20), flow)),
               model << ", little memory");
    for (const char* mode : {"sequence", "tensor"}) {
      const double error = relative_error(divided(mode), of_one);
      BOOST_TEST_MESSAGE(model << ", " << mode << ": relative error " << error);
      BOOST_TEST(error < kTolerance, model << ", " << mode << ": relative error " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(videos_that_begin_with_a_picture_are_told_before_a_run) {
  for (const auto& [model, how] : {std::pair("concat", kConcat), std::pair("replace", kReplace),
                                   std::pair("shown", kCustom)}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(sampled(nodes(model, how, 2))));
  }
}

// The model looks at the picture, which is no frame of the video. In PyTorch
// (../goldens/make_hunyuan_shown_goldens.py), as diffusers has no such model.
BOOST_AUTO_TEST_CASE(a_video_beside_a_picture_equals_pytorch) {
  const TensorFile shown(golden.parent_path().parent_path() / "hunyuan_shown/expected.safetensors");
  const double error =
      relative_error(latent_of(sampled(nodes("shown", kCustom))), shown.floats("latent"));
  BOOST_TEST_MESSAGE("relative error " << error << ", " << -20 * std::log10(error) << " dB");
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_picture_beside_a_video_is_refused_by_a_model_that_reads_it_otherwise) {
  const std::string text =
      engine_refusal([&] { run_whole(sampled(nodes("concat", kCustom)), {}); });
  for (const char* word : {"reference_latents", "'hunyuan-video'"})
    BOOST_TEST(text.find(word) != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
