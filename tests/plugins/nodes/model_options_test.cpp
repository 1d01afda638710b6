// Nodes that ask for a device or for a way to run a model, and loaders of the same kind.
#include <mutex>

#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

struct ModelOptions : NodeFixture {
  const FakeControl control;
  std::mutex guard;
  std::vector<std::string> logged;

  EngineOptions engine_of(std::vector<std::string> devices) {
    EngineOptions options = fake_engine_options(std::move(devices));
    options.log = [this](int, std::string_view message) {
      const std::lock_guard lock(guard);
      logged.emplace_back(message);
    };
    options.compute = {{"cpu", "f32"}, {"fake", "f32"}};
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "out";
    return options;
  }

  // How many weights each fake device made to sample with "changed", and what comes out.
  struct Sampled {
    std::uint64_t on_first = 0, on_second = 0;
    std::vector<float> latent;
  };
  Sampled sample(const std::string& changed) {
    const std::uint64_t first = control->weights(0), second = control->weights(1);
    const std::string text = workflow("\"changed\": " + changed + R"(, "out": )" +
                                      ksampler(R"("model": ["changed", 0])") + ", " + kLook);
    Engine fresh(engine_of({"cpu:0", "fake:0", "fake:1"}));
    logged.clear();
    Sampled done;
    done.latent =
        fresh.start(fresh.parse(text), {{}, {"out.LATENT"}}).wait().floats("out.LATENT", "samples");
    done.on_first = control->weights(0) - first;
    done.on_second = control->weights(1) - second;
    return done;
  }
  static std::string changed_by(const std::string& type, const std::string& inputs) {
    return R"({"class_type": ")" + type + R"(", "inputs": {"model": ["model", 0], )" + inputs +
           "}}";
  }
  static std::string on(const std::string& device) {
    return changed_by("SelectModelDevice", R"("device": ")" + device + "\"");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(model_options, ModelOptions)

BOOST_AUTO_TEST_CASE(a_model_runs_on_the_device_that_is_selected_where_there_is_one) {
  const Sampled first = sample(on("gpu:0")), second = sample(on("gpu:1"));
  BOOST_TEST(first.on_first > 0u);
  BOOST_TEST(first.on_second == 0u);
  BOOST_TEST(second.on_first == 0u);
  BOOST_TEST(second.on_second == first.on_first);
  BOOST_TEST((second.latent == first.latent));
  BOOST_TEST(sample(on("fake:1")).on_second > 0u);
  const Sampled host = sample(on("cpu"));
  BOOST_TEST(host.on_first + host.on_second == 0u);
  // A device that is not there is no wish.
  const Sampled plain = sample(on("default")), nowhere = sample(on("gpu:7"));
  BOOST_TEST(nowhere.on_first == plain.on_first);
  BOOST_TEST(nowhere.on_second == plain.on_second);
  BOOST_TEST((nowhere.latent == plain.latent));
}

BOOST_AUTO_TEST_CASE(parts_beside_the_model_are_selected_for_as_well) {
  const auto made = [&](const std::string& device) {
    const std::uint64_t before = control->weights(1);
    Engine fresh(engine_of({"cpu:0", "fake:0", "fake:1"}));
    const std::string text =
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
          "clip": {"class_type": "SelectCLIPDevice", "inputs": {"clip": ["loader", 1], "device": ")" +
        device +
        R"("}}, "vae": {"class_type": "SelectVAEDevice", "inputs": {"vae": ["loader", 2], "device": ")" +
        device +
        R"("}}, "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["clip", 0]}},
          "first": {"class_type": "test.first", "inputs": {"list": ["text", 0]}},
          "latent": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
          "out": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}},
          "look2": {"class_type": "test.look", "inputs": {"value": ["first", 0]}}, )" +
        kLook + "}";
    const Results results =
        fresh.start(fresh.parse(text), {{}, {"out.IMAGE", "first.value"}}).wait();
    std::vector<float> all = results.floats("out.IMAGE", "");
    for (const float number : results.floats("first.value", "cross_attn")) all.push_back(number);
    return std::pair(control->weights(1) - before, all);
  };
  const auto second = made("gpu:1"), first = made("gpu:0");
  BOOST_TEST(second.first > 0u);
  BOOST_TEST(first.first == 0u);
  BOOST_TEST((first.second == second.second));
}

BOOST_AUTO_TEST_CASE(how_a_model_runs_is_the_planners) {
  const Sampled plain = sample(on("default"));
  for (const auto& [type, inputs] :
       {std::pair("TorchCompileModel", R"("backend": "inductor")"),
        {"ModelAttentionBackend", R"("attention": "comfy kitchen attention")"},
        {"MultiGPU_WorkUnits", R"("max_gpus": 2)"},
        {"ModelComputeDtype", R"("dtype": "default")"}}) {
    BOOST_TEST((sample(changed_by(type, inputs)).latent == plain.latent), type);
    BOOST_TEST(logged.empty(), type);
  }
  BOOST_TEST(
      (sample(changed_by("ModelComputeDtype", R"("dtype": "bf16")")).latent == plain.latent));
  BOOST_TEST_REQUIRE(logged.size() == 1u);
  BOOST_TEST(logged[0].find("--compute DEVICE=bf16") != std::string::npos, logged[0]);
}

BOOST_AUTO_TEST_CASE(a_lora_beside_the_weights_is_a_lora) {
  const std::string lora = R"("lora_name": "diffusers.safetensors", "strength_model": 0.5)";
  const Sampled added = sample(changed_by("LoraLoaderModelOnly", lora));
  BOOST_TEST((sample(changed_by("LoraLoaderBypassModelOnly", lora)).latent == added.latent));
  const auto both = [&](const std::string& type) {
    return R"({"class_type": ")" + type +
           R"(", "inputs": {"model": ["model", 0], "clip": ["clip", 0], "strength_clip": 0.5, )" +
           lora +
           R"(}}, "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "clip_l.safetensors",
                     "type": "stable_diffusion"}})";
  };
  BOOST_TEST((sample(both("LoraLoaderBypass")).latent == added.latent));
  BOOST_TEST((sample(both("LoraLoader")).latent == added.latent));
}

BOOST_AUTO_TEST_CASE(sets_of_encoders_that_are_not_known_are_named) {
  const auto refused = [&](const std::string& type, int count) {
    std::string inputs;
    for (int i = 1; i <= count; ++i)
      inputs += std::string(i == 1 ? "" : ", ") + "\"clip_name" + std::to_string(i) + "\": \"" +
                (i == 2 ? "t5" : "clip_l") + ".safetensors\"";
    return engine_refusal([&] {
      run_whole(R"({"clip": {"class_type": ")" + type + R"(", "inputs": {)" + inputs + R"(}},
                  "out": {"class_type": "CLIPTextEncode", "inputs": {"text": "a", "clip": ["clip", 0]}}, )" +
                    kLook + "}",
                {});
    });
  };
  const std::string three = refused("TripleCLIPLoader", 3);
  BOOST_TEST(three.find("the text encoders clip_l, t5xxl, clip_l are no set that is known") !=
                 std::string::npos,
             three);
  const std::string four = refused("QuadrupleCLIPLoader", 4);
  BOOST_TEST(four.find("clip_l, t5xxl, clip_l, clip_l are no set") != std::string::npos, four);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
