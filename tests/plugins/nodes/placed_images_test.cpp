// Z-Image with its language model, and Qwen-Image's autoencoder, on several devices and with little
// memory: the same bytes; and what is told before a run.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::check_inference;
using heddle::test::NodeFixture;

namespace {

// Two items of an odd latent, guided.
struct PlacedImages : NodeFixture {
  const heddle::test::FakeControl control;

  PlacedImages() {
    add("z_image.transformer", "diffusion_models/z");
    add("z_image.text", "text_encoders/qwen_3_4b");
    add("qwen_image.vae", "vae/qwen_image_vae");
  }
  void add(const std::string& model, const std::string& name) const {
    heddle::test::write_safetensors(folder / "models" / (name + ".safetensors"),
                                    heddle::test::seeded_model(model));
  }
  static std::string flow(const std::string& hints = "") {
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "z.safetensors", "weight_dtype": "default"}},
      "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen_3_4b.safetensors", "type": "lumina2"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "qwen_image_vae.safetensors"}},
      "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red fox", "clip": ["clip", 0]}},
      "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "no snow at all", "clip": ["clip", 0]}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 3,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints,
        R"(}, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["out", 0], "vae": ["vae", 0]}},
      "again": {"class_type": "VAEEncode", "inputs": {"pixels": ["picture", 0], "vae": ["vae", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["again", 0]}}})");
  }
  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = heddle::test::engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  // The latent that was drawn, and that of its picture.
  static std::vector<float> draw(EngineOptions options, const std::string& hints = "") {
    Engine engine(std::move(options));
    const heddle::Results results =
        engine.start(engine.parse(flow(hints)), {{}, {"out.LATENT", "again.LATENT"}}).wait();
    std::vector<float> all = results.floats("out.LATENT", "samples");
    const std::vector<float> again = results.floats("again.LATENT", "samples");
    all.insert(all.end(), again.begin(), again.end());
    return all;
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_images, PlacedImages)

BOOST_AUTO_TEST_CASE(drawing_has_the_same_bytes_however_the_models_are_placed,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}));
  // Two pictures are a video of one frame of the latent for this autoencoder.
  BOOST_TEST(alone.size() == 3u * 16 * 6 * 10);
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}))), "fake:0");
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0", "fake:1"}))), "as planned");
  for (const char* mode : {"layers", "data", "cfg"})
    BOOST_TEST(
        are_equal(alone, draw(options_for({"fake:0", "fake:1"}),
                              cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"))),
        mode);
}

BOOST_AUTO_TEST_CASE(drawing_has_the_same_bytes_in_little_memory,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"fake:0"}));
  int drawn = 0;
  for (const std::uint64_t kilobytes : {40000, 20000, 17000, 16000, 4000, 2000, 1000, 500}) {
    try {
      const std::vector<float> little = draw(options_for({"fake:0"}, kilobytes << 10));
      ++drawn;
      BOOST_TEST(are_equal(alone, little), kilobytes << " KiB");
    } catch (const heddle::EngineError& error) {
      BOOST_TEST_MESSAGE(kilobytes << " KiB: " << error.what());
      break;
    }
  }
  BOOST_TEST(drawn > 1);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  Engine::Data engine(options_for({"cpu:0"}));
  check_inference(engine, flow());
}

BOOST_AUTO_TEST_SUITE_END()
