// ImageUpscaleWithModel over small models, against what ComfyUI's tiles make of them in PyTorch
// (../goldens/make_upscaler_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <mutex>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using namespace heddle::test;

namespace {

constexpr double kLeastLikeness = 100;  // dB

struct UpscaleFixture {
  TemporaryFolder folder;
  std::filesystem::path goldens = tests_folder() / "plugins/goldens/upscalers";
  TensorFile expected{goldens / "expected.safetensors"};

  UpscaleFixture() {
    std::filesystem::create_directories(folder / "models/upscale_models");
    for (const char* name : {"compact_x2", "real_x2"}) add_model(name, "upscalers");
  }
  void add_model(const std::string& name, const char* of) const {
    write_pytorch(folder / "models/upscale_models" / (name + ".pth"), seeded_model(name, false, of),
                  "params");
  }
  EngineOptions options(std::uint64_t budget = 0) const {
    EngineOptions options = fake_engine_options({"fake:0"});
    options.compute = {{"fake:0", "f32"}};
    options.model_dirs = {folder / "models"};
    options.input_dir = goldens;
    options.output_dir = folder / "output";
    if (budget > 0) options.budgets = {{"fake:0", budget}};
    return options;
  }
  static std::string flow(const std::string& model, const std::string& picture) {
    return cat(
        R"({"load": {"class_type": "UpscaleModelLoader", "inputs": {"model_name": ")", model,
        R"(.pth"}}, "picture": {"class_type": "LoadImage", "inputs": {"image": ")", picture,
        R"("}}, "out": {"class_type": "ImageUpscaleWithModel", "inputs": {"upscale_model": ["load", 0],
      "image": ["picture", 0]}}, "end": {"class_type": "Discard", "inputs": {"value": ["out", 0]}}})");
  }
  struct Made {
    heddle::Image image;        // the first one
    std::vector<float> pixels;  // of all
    std::vector<std::string> warnings;
  };
  Made run(const std::string& text, std::uint64_t budget = 0) const {
    Engine engine(options(budget));
    Made made;
    std::mutex mutex;
    const auto observe = [&](const heddle::Event& event) {
      const std::lock_guard lock(mutex);
      if (event.kind == heddle::Event::Kind::warning) made.warnings.emplace_back(event.text);
    };
    const heddle::Results results =
        engine.start(engine.parse(text), {.observer = observe, .fetch = {"out.IMAGE"}}).wait();
    made.image = results.image("out.IMAGE");
    made.pixels = results.floats("out.IMAGE");
    return made;
  }
  // Pixels of a part, one of `step` along both sides.
  static std::vector<float> part(const heddle::Image& image, int begin, int rows, int columns,
                                 int step) {
    std::vector<float> numbers;
    for (int y = begin; y < rows; y += step)
      for (int x = begin; x < columns; x += step)
        for (int c = 0; c < 3; ++c)
          numbers.push_back(image.pixels[std::size_t((y * int(image.width) + x) * 3 + c)]);
    return numbers;
  }
  void compare(const std::vector<float>& got, const std::string& golden,
               double least = kLeastLikeness) const {
    compare(got, expected.floats(golden), golden, least);
  }
  static void compare(const std::vector<float>& got, const std::vector<float>& want,
                      const std::string& golden, double least) {
    BOOST_TEST_REQUIRE(got.size() == want.size());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i) sum += std::pow(double(got[i]) - want[i], 2);
    const double likeness = -10 * std::log10(sum / double(got.size()));
    BOOST_TEST_MESSAGE(golden << ": " << likeness << " dB");
    BOOST_TEST(likeness >= least, golden << ": " << likeness << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(upscaled_tiles, UpscaleFixture)

BOOST_AUTO_TEST_CASE(tiles_are_put_together_as_comfyui_does) {
  const Made made = run(flow("compact_x2", "wide.png"));
  BOOST_TEST(made.image.height == 1040);
  BOOST_TEST(made.image.width == 1200);
  BOOST_TEST(made.warnings.empty());
  compare(part(made.image, 0, 1040, 1200, 40), "tiles.lattice");
  compare(part(made.image, 940, 1040, 1040, 2), "tiles.crossing");
}

BOOST_AUTO_TEST_CASE(sides_that_a_model_does_not_take_are_mirrored) {
  const Made made = run(flow("real_x2", "odd.png"));
  compare(part(made.image, 0, 10, 14, 1), "odd.out");
}

BOOST_AUTO_TEST_CASE(transformers_take_pictures_smaller_than_they_were_made_for) {
  for (const auto& [name, family] :
       {std::pair{"swin_unshuffled_x2", "swinir"}, std::pair{"hat_x2", "hat"}}) {
    add_model(name, "window_upscalers");
    const TensorFile golden{tests_folder() / "plugins/goldens/window_upscalers" /
                            (std::string(family) + ".safetensors")};
    const Made made = run(flow(name, "odd.png"));
    compare(made.pixels, golden.floats(std::string(name) + ".odd.out"), name, kLeastLikeness);
    heddle::Engine::Data whole(options());
    check_inference(whole, flow(name, "odd.png"));
  }
}

// Files of SPAN have room for what its four convolutions make together, in which may stand what
// they made at some time in the training.
BOOST_AUTO_TEST_CASE(convolutions_that_were_trained_as_four_are_made_one) {
  add_model("span_plain_x4", "window_upscalers");
  std::vector<FileTensor> tensors = seeded_model("span_plain_x4", false, "window_upscalers"), old;
  constexpr std::string_view kAround = ".sk.weight";
  for (const FileTensor& tensor : tensors) {
    if (!tensor.name.ends_with(kAround)) continue;
    const std::string joined =
        tensor.name.substr(0, tensor.name.size() - kAround.size()) + ".eval_conv.";
    old.push_back(seeded_tensor(joined + "weight", {tensor.shape.at(0), tensor.shape.at(1), 3, 3}));
    old.push_back(seeded_tensor(joined + "bias", {tensor.shape.at(0)}));
  }
  BOOST_TEST(old.size() == 2u * 20);
  tensors.insert(tensors.end(), old.begin(), old.end());
  write_pytorch(folder / "models/upscale_models/joined.pth", tensors, "params");
  const std::vector<float> four = run(flow("span_plain_x4", "odd.png")).pixels,
                           one = run(flow("joined", "odd.png")).pixels;
  const TensorFile golden{tests_folder() / "plugins/goldens/window_upscalers/span.safetensors"};
  const double error = relative_error(one, golden.floats("span_plain_x4.odd.out"));
  BOOST_TEST_MESSAGE("joined: relative error " << error);
  BOOST_TEST(error < 1e-6, "joined: relative error " << error);
  BOOST_TEST((one != four));  // summed in another order
}

BOOST_AUTO_TEST_CASE(calls_and_shapes_are_told_before_a_run) {
  heddle::Engine::Data wide(options());
  check_inference(wide, flow("compact_x2", "wide.png"));
  heddle::Engine::Data odd(options());
  check_inference(odd, flow("real_x2", "odd.png"));
}

BOOST_AUTO_TEST_CASE(pictures_of_a_batch_are_upscaled_one_by_one) {
  std::string text = flow("real_x2", "odd.png");
  text.insert(
      1,
      R"("two": {"class_type": "RepeatImageBatch", "inputs": {"image": ["picture", 0], "amount": 2}},)");
  const std::string link = R"("image": ["picture", 0]}}, "end")";
  text.replace(text.find(link), link.size(), R"("image": ["two", 0]}}, "end")");
  const Made made = run(text), one = run(flow("real_x2", "odd.png"));
  std::vector<float> twice = one.pixels;
  twice.insert(twice.end(), one.pixels.begin(), one.pixels.end());
  BOOST_TEST((made.pixels == twice));
}

BOOST_AUTO_TEST_CASE(smaller_tiles_are_made_where_there_is_no_room) {
  const FakeControl control;
  const std::uint64_t budget = 44 << 20;
  const Made made = run(flow("compact_x2", "wide.png"), budget);
  BOOST_TEST_REQUIRE(made.warnings.size() == 1u);
  BOOST_TEST(made.warnings.front().find("so they are made of 256") != std::string::npos,
             made.warnings.front());
  compare(part(made.image, 0, 1040, 1200, 40), "tiles.lattice", 70);
}

BOOST_AUTO_TEST_CASE(other_models_are_refused_before_anything_runs) {
  std::filesystem::create_directories(folder / "models/upscale_models");
  write_safetensors(folder / "models/upscale_models/vae.safetensors",
                    seeded_model("vae", false, "flux2"));
  std::string text = flow("vae", "odd.png");
  text.replace(text.find(".pth"), 4, ".safetensors");
  Engine engine(options());
  const std::string why = engine_refusal([&] { engine.plan(engine.parse(text)); });
  BOOST_TEST(why.find("this is an autoencoder (autoencoder_kl), not an upscaler. Load it with "
                      "VAELoader.") != std::string::npos,
             why);
}

BOOST_AUTO_TEST_SUITE_END()
