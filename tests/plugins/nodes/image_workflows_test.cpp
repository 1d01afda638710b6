// Workflows of Qwen-Image and Z-Image from the prompt to the picture, with ComfyUI's nodes and the
// file names of its examples, over models whose weights follow from their names, against PyTorch
// (../goldens/make_workflow_goldens.py).
#include <cmath>

#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using namespace heddle::test;

namespace {

constexpr const char* kFox = "a photo of a (red fox:1.1) in the snow, soft light";

struct WorkflowFixture : NodeFixture {
  TensorFile expected{tests_folder() / "plugins/goldens/workflows/expected.safetensors"};

  void add(const std::string& model, const std::string& name) const {
    write_safetensors(folder / "models" / (name + ".safetensors"), seeded_model(model));
  }
  static std::string text(const std::string& prompt) {
    return R"({"class_type": "CLIPTextEncode", "inputs": {"text": ")" + prompt +
           R"(", "clip": ["clip", 0]}})";
  }
  static std::string look(const std::string& name, const std::string& node) {
    return "\"" + name + R"(": {"class_type": "test.look", "inputs": {"value": [")" + node +
           R"(", 0]}})";
  }
  // From the loaders to the picture; nodes "one", "two" (texts), "drawn", "picture".
  static std::string flow(const std::string& unet, const std::string& clip, const std::string& type,
                          const std::string& vae, const std::string& more,
                          const std::string& sampling) {
    return R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + unet +
           R"(.safetensors", "weight_dtype": "default"}},
        "clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": ")" +
           clip + R"(.safetensors", "type": ")" + type + R"(", "device": "default"}},
        "vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")" +
           vae + R"(.safetensors"}},
        "one": )" +
           text(kFox) + R"(, "two": )" + text(" ") + more +
           R"(, "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 80, "height": 48, "batch_size": 1}},
        "drawn": )" +
           ksampler(sampling) +
           R"(, "picture": {"class_type": "VAEDecode", "inputs": {"samples": ["drawn", 0], "vae": ["vae", 0]}},
        "first": {"class_type": "test.first", "inputs": {"list": ["one", 0]}},
        "second": {"class_type": "test.first", "inputs": {"list": ["two", 0]}}, )" +
           look("a", "first") + ", " + look("b", "second") + ", " + look("c", "picture") + "}";
  }
  static std::string qwen_flow() {
    return flow(
        "qwen_image_fp8_e4m3fn", "qwen_2.5_vl_7b_fp8_scaled", "qwen_image", "qwen_image_vae",
        R"(, "shifted": {"class_type": "ModelSamplingAuraFlow", "inputs": {"model": ["model", 0], "shift": 3.1}})",
        R"("model": ["shifted", 0], "steps": 3, "cfg": 2.5)");
  }
  static std::string z_flow() {
    return flow("z_image_turbo_bf16", "qwen_3_4b", "lumina2", "ae", "", R"("steps": 3, "cfg": 1)");
  }
  void add_qwen() const {
    add("qwen_image.transformer", "diffusion_models/qwen_image_fp8_e4m3fn");
    add("qwen_image.text", "text_encoders/qwen_2.5_vl_7b_fp8_scaled");
    add("qwen_image.vae", "vae/qwen_image_vae");
  }
  void add_z() const {
    add("z_image.transformer", "diffusion_models/z_image_turbo_bf16");
    add("z_image.text", "text_encoders/qwen_3_4b");
    add("z_image.vae", "vae/ae");
  }

  void compare(const std::vector<float>& got, const std::string& golden) const {
    const double error = relative_error(got, expected.floats(golden));
    BOOST_TEST_MESSAGE(golden << ": relative error " << error);
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
  // In decibels, of pictures from 0 to 1.
  double psnr(const std::vector<float>& got, const std::string& golden) const {
    const std::vector<float> wanted = expected.floats(golden);
    BOOST_TEST_REQUIRE(got.size() == wanted.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      sum += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    return -10 * std::log10(sum / double(got.size()));
  }
  void compare_drawing(const heddle::Results& results, const std::string& family) {
    BOOST_TEST(warnings.empty());
    compare(results.floats("first.value", "cross_attn"), family + ".cross_attn");
    compare(results.floats("drawn.LATENT", "samples"), family + ".latent");
    const double decibels = psnr(results.floats("picture.IMAGE"), family + ".picture");
    BOOST_TEST_MESSAGE(family << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, family << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(image_workflows, WorkflowFixture)

BOOST_AUTO_TEST_CASE(qwen_image_from_the_prompt_to_the_picture_equals_pytorch) {
  add_qwen();
  const heddle::Results results =
      run_whole(qwen_flow(), {"first.value", "second.value", "drawn.LATENT", "picture.IMAGE"});
  compare(results.floats("second.value", "cross_attn"), "qwen_image.negative");
  compare_drawing(results, "qwen_image");
}

BOOST_AUTO_TEST_CASE(z_image_from_the_prompt_to_the_picture_equals_pytorch) {
  add_z();
  compare_drawing(run_whole(z_flow(), {"first.value", "drawn.LATENT", "picture.IMAGE"}), "z_image");
}

BOOST_AUTO_TEST_SUITE_END()
