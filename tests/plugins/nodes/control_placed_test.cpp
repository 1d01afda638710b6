// Runs with ControlNets on several devices and with little memory: the same bytes, or, where the
// order of sums changes, nearly the same numbers.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"
#include "tests/support/seeded_weights.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;

namespace {

std::filesystem::path control_goldens() {
  return heddle::test::tests_folder() / "plugins/goldens/control";
}

struct PlacedControl {
  const heddle::test::FakeControl control;
  heddle::test::TemporaryFolder folder;

  PlacedControl() {
    using heddle::test::seeded_model;
    add("diffusion_models/flux", seeded_model("flux", false, "control"));
    add("controlnet/union", seeded_model("flux_union", false, "control"));
    add("vae/ae", seeded_model("z_image.vae"));
  }
  void add(const std::string& name, const std::vector<heddle::test::FileTensor>& tensors) const {
    std::filesystem::create_directories((folder / "models" / name).parent_path());
    heddle::test::write_safetensors(folder / "models" / (name + ".safetensors"), tensors);
  }
  // Two items, guided by two sets, of which the first alone has the ControlNet.
  static std::string flow(const std::string& hints) {
    const std::string golden = (control_goldens() / "expected.safetensors").string();
    return cat(
        R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "flux.safetensors", "weight_dtype": "default"}},
      "net": {"class_type": "ControlNetLoader", "inputs": {"control_net_name": "union.safetensors"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}},
      "hint": {"class_type": "LoadImage", "inputs": {"image": "hint.png"}},
      "text": {"class_type": "test.conditioning", "inputs": {"path": ")",
        golden, R"(", "prefix": "in.flux", "option": ""}},
      "by": {"class_type": "ControlNetApplySD3", "inputs": {"positive": ["text", 0], "negative": ["text", 0],
        "control_net": ["net", 0], "vae": ["vae", 0], "image": ["hint", 0], "strength": 0.05,
        "start_percent": 0, "end_percent": 1}},
      "empty": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 48, "height": 32, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["by", 0],
        "negative": ["text", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
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
    options.input_dir = control_goldens();
    options.output_dir = folder / "placed";
    return options;
  }
  std::vector<float> draw(EngineOptions options, const std::string& hints = "") const {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow(hints)), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  static bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(control_placed, PlacedControl)

BOOST_AUTO_TEST_CASE(dividing_denoiser_and_control_net_keeps_their_bytes_or_nearly_their_numbers) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}));
  BOOST_TEST(alone.size() == 2u * 16 * 4 * 6);
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"));
  };
  for (const char* mode : {"layers", "data", "cfg"})
    BOOST_TEST(are_equal(alone, divided(mode)), mode);
  for (const char* mode : {"sequence", "tensor"}) {
    const double error = heddle::test::relative_error(divided(mode), alone);
    BOOST_TEST(error < heddle::test::NodeFixture::kTolerance, mode << ": relative error " << error);
  }
  // The two models are some 2 MB, and take turns.
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, 1000 << 10))), "little memory");
}

BOOST_AUTO_TEST_SUITE_END()
