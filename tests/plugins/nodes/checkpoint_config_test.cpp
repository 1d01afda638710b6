// CheckpointLoader: a checkpoint with a config, which says what nodes say elsewhere.
#include <fstream>

#include "tests/plugins/nodes/unet_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

constexpr const char* kLoader = R"("config_name": "drawn.yaml", "ckpt_name": "drawn.safetensors")";

struct WithConfig : UnetWorkflow {
  WithConfig() { write("sd1"); }

  // A config as they were published.
  void write_config(const std::string& text) const {
    const std::filesystem::path path = folder / "models/configs/drawn.yaml";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  static std::string config(const std::string& kind, const std::string& clip) {
    return cat(
        "model:\n  base_learning_rate: 1.0e-04\n  target: ldm.models.diffusion.ddpm.LatentDiffusion"
        "\n  params:\n",
        kind, "    linear_start: 0.00085\n    scale_factor: 0.18215\n    cond_stage_config:\n",
        "      target: ldm.modules.encoders.modules.FrozenCLIPEmbedder\n", clip);
  }
  std::vector<float> drawn(const std::string& nodes, const char* clip = R"(["model", 1])",
                           const char* model = "model") {
    const std::string whole =
        "{" + nodes + texts(clip) + R"("drawn": )" +
        ksampler(sampler("4.0", "euler", "normal", 2) +
                 cat(R"(, "model": [")", model, R"(", 0])")) +
        R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}}})";
    return run_whole(whole, {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
  static std::string with_config() { return node("model", "CheckpointLoader", kLoader); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(checkpoint_configs, WithConfig)

BOOST_AUTO_TEST_CASE(a_config_that_says_nothing_else_changes_nothing) {
  write_config(config("    parameterization: eps\n", ""));
  BOOST_TEST((drawn(with_config()) == drawn(loader())));
}

BOOST_AUTO_TEST_CASE(velocities_are_those_of_the_node) {
  write_config(config("    parameterization: \"v\"\n", ""));
  const std::vector<float> told = drawn(with_config());
  const std::string by_node =
      loader() + node("other", "ModelSamplingDiscrete",
                      R"("model": ["model", 0], "sampling": "v_prediction", "zsnr": false)");
  BOOST_TEST((told == drawn(by_node, R"(["model", 1])", "other")));
  BOOST_TEST((told != drawn(loader())));
}

BOOST_AUTO_TEST_CASE(the_layer_of_clip_is_that_of_the_node) {
  write_config(config("", "      params:\n        layer: hidden\n        layer_idx: -2\n"));
  const std::vector<float> told = drawn(with_config());
  const std::string by_node = loader() + node("stopped", "CLIPSetLastLayer",
                                              R"("clip": ["model", 1], "stop_at_clip_layer": -2)");
  BOOST_TEST((told == drawn(by_node, R"(["stopped", 0])")));
  BOOST_TEST((told != drawn(loader())));
  // Beyond the first layer: the last one.
  write_config(config(
      "", "      params:\n        layer: hidden\n        layer_idx: -9223372036854775808\n"));
  BOOST_TEST((drawn(with_config()) == drawn(loader())));
}

BOOST_AUTO_TEST_CASE(what_is_no_config_is_refused_with_its_line) {
  const auto refused = [&](const std::string& text, const char* part) {
    write_config(text);
    const std::string said = engine_refusal([&] { drawn(with_config()); });
    BOOST_TEST(said.find(part) != std::string::npos, said);
    BOOST_TEST(said.find("drawn.yaml") != std::string::npos, said);
  };
  refused("model: [1, 2\n", "no YAML");
  refused("", "no map 'model'");
  refused("model:\n  params: 5\n", "drawn.yaml:2: there is no map 'params'");
  refused("model:\n  params:\n    parameterization: v\n", "no map 'cond_stage_config'");
  refused(config("", "      params: {layer_idx: first}\n"), "layer_idx is 'first'");
  refused(config("", "      params: {layer_idx: 11}\n"), "layer_idx is '11'");
  refused(std::string((1 << 20) + 1, '#'), "this is no config");
}

BOOST_AUTO_TEST_SUITE_END()
