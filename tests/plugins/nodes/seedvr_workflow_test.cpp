// SeedVR2's workflows by the nodes of ComfyUI's templates, over tiny models whose weights follow
// from their names, against PyTorch (../goldens/make_seedvr_goldens.py).
#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/model_probe.h"

namespace heddle::test {
namespace {

using engine::cat;

struct SeedvrWorkflows : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/seedvr/expected.safetensors";
  TensorFile expected{golden};
  std::optional<Engine> drawing_engine;  // of the last results

  SeedvrWorkflows() {
    add("diffusion_models/seedvr2_3b_int8_convrot", seeded_model("flow", false, "seedvr"));
    add("vae/seedvr2_ema_vae_fp16", seeded_model("vae", false, "seedvr_vae"));
  }

  static constexpr const char *kWhole = R"(", "inputs": {)",
                              *kTiled = R"(Tiled", "inputs": {"tile_size": 512, "overlap": 128,
        "temporal_size": 64, "temporal_overlap": 8, )";  // of the templates
  const char* coding = kWhole;

  // Up to the sampler, "out"; latent: what it works on.
  std::string drawing(const std::string& latent, const std::string& hints = "") const {
    return cat(
        loaded("seedvr2_3b_int8_convrot"),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "seedvr2_ema_vae_fp16.safetensors"}},
      "film": {"class_type": "test.image", "inputs": {"path": ")",
        golden.string(), R"(", "name": "flow.film"}},
      "before": {"class_type": "SeedVR2Preprocess", "inputs": {"resized_images": ["film", 0]}},
      "coded": {"class_type": "VAEEncode)",
        coding, R"("pixels": ["before", 0], "vae": ["vae", 0]}},
      "told": {"class_type": "SeedVR2Conditioning", "inputs": {"model": ["model", 0], "vae_conditioning": )",
        latent, R"(}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 1,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["told", 0],
        "negative": ["told", 1], "latent_image": )",
        latent, R"(, "denoise": 1.0})", hints, "}");
  }
  std::string whole() const {
    return cat("{", drawing(R"(["coded", 0])"), R"(, "decoded": {"class_type": "VAEDecode)", coding,
               R"("samples": ["out", 0], "vae": ["vae", 0]}},
      "after": {"class_type": "SeedVR2PostProcessing", "inputs": {"images": ["decoded", 0],
        "original_resized_images": ["film", 0], "color_correction_method": "none"}},
      "look": {"class_type": "test.look", "inputs": {"value": ["after", 0]}}})");
  }
  heddle::Results results(const std::string& flow, std::vector<std::string> keep) {
    drawing_engine.emplace(options_for({"cpu:0"}));
    return drawing_engine->start(drawing_engine->parse(flow), {{}, std::move(keep)}).wait();
  }
  static double decibels(const std::vector<float>& made, const std::vector<float>& wanted) {
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double squares = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      squares += std::pow(double(made[i]) - wanted[i], 2);
    return -10 * std::log10(squares / double(made.size()));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(seedvr_workflows, SeedvrWorkflows)

BOOST_AUTO_TEST_CASE(a_film_becomes_sharper_in_one_step_as_in_pytorch) {
  for (const char* way : {kWhole, kTiled}) {
    coding = way;
    const heddle::Results made = results(whole(), {"out.LATENT", "after.images"});
    const double error =
        relative_error(made.floats("out.LATENT", "samples"), expected.floats("flow.latent"));
    const double near = decibels(made.floats("after.images"), expected.floats("flow.sharp"));
    BOOST_TEST_MESSAGE("latent: relative error " << error << "; pictures: " << near << " dB");
    BOOST_TEST(error < 2e-5);
    BOOST_TEST(near > 90);
    BOOST_TEST(made.shape("after.images") == expected.at("flow.sharp").shape,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_film_is_drawn_in_parts_as_in_pytorch) {
  const std::string flow = cat(
      "{", drawing(R"(["parts", 0])"),
      R"(, "parts": {"class_type": "SeedVR2TemporalChunk", "inputs": {"latent": ["coded", 0], "temporal_overlap": 0,
        "chunking_mode": "manual", "chunking_mode.frames_per_chunk": 1}},
      "joined": {"class_type": "SeedVR2TemporalMerge", "inputs": {"latents": ["out", 0], "temporal_overlap": ["parts", 1]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["joined", 0]}}})");
  const heddle::Results made = results(flow, {"joined.latent"});
  const double error =
      relative_error(made.floats("joined.latent", "samples"), expected.floats("flow.parts"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 2e-5);
}

BOOST_AUTO_TEST_CASE(placements_and_budgets_give_the_same_bytes) {
  const std::string given = cat(R"(, "given": {"class_type": "test.latent", "inputs": {"path": ")",
                                golden.string(), R"(", "name": "flow.latent"}})");
  const auto flow = [&](const std::string& hints) {
    std::string drawn = drawing(R"(["given", 0])", hints);
    const std::string_view alone = R"("cfg": 1.0)";  // the texts have other lengths
    drawn.replace(drawn.find(alone), alone.size(), R"("cfg": 2.0)");
    return cat("{", drawn, given,
               R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  };
  hold(flow, {"layers", "cfg"}, {}, 7 << 18, 16 * 2 * 4 * 4);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const std::string untold = cat(
      "{", loaded("seedvr2_3b_int8_convrot"),
      R"(, "one": {"class_type": "test.conditioning", "inputs": {"path": ")", golden.string(),
      R"(", "prefix": "untold", "option": ""}}, "empty": {"class_type": "EmptyHunyuanLatentVideo",
        "inputs": {"width": 32, "height": 32, "length": 5, "batch_size": 1}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 1, "cfg": 1.0,
        "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0], "negative": ["one", 0],
        "latent_image": ["empty", 0], "denoise": 1.0}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  says(engine_refusal([&] { results(untold, {"out.LATENT"}); }), {"SeedVR2Conditioning"});
  const std::string other =
      R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors", "weight_dtype": "default"}},
      "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 32, "height": 32, "length": 5, "batch_size": 1}},
      "told": {"class_type": "SeedVR2Conditioning", "inputs": {"model": ["model", 0], "vae_conditioning": ["empty", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["told", 0]}}})";
  says(engine_refusal([&] { results(other, {"told.positive"}); }), {"family 'flux'", "UNETLoader"});
  const std::string short_part =
      R"({"empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 32, "height": 32, "length": 21, "batch_size": 1}},
      "parts": {"class_type": "SeedVR2TemporalChunk", "inputs": {"latent": ["empty", 0], "temporal_overlap": 0,
        "chunking_mode": "manual", "chunking_mode.frames_per_chunk": 17}},
      "four": {"class_type": "PrimitiveInt", "inputs": {"value": 4}},
      "joined": {"class_type": "SeedVR2TemporalMerge", "inputs": {"latents": ["parts", 0], "temporal_overlap": ["four", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["joined", 0]}}})";
  says(engine_refusal([&] { results(short_part, {"joined.latent"}); }),
       {"the last one has 1 frames", "overlap of 4", "SeedVR2TemporalChunk"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
