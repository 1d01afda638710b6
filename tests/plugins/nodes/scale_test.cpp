// Pictures and latents in other sizes, against PyTorch's interpolate() and Pillow's Lanczos
// (make_scale_goldens.py).
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "engine/base/json.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kTolerance = 1e-6;  // a few roundings in f32; a wrong weight gives 1e-2 or more

struct Scale {
  std::filesystem::path path = tests_folder() / "plugins/nodes/scale_goldens.safetensors";
  TensorFile goldens{path};
  TemporaryFolder folder;
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.output_dir = folder.path();
    return options;
  }

  std::string given(const std::string& type, const std::string& name) const {
    return R"({"class_type": ")" + type + R"(", "inputs": {"path": ")" + path.string() +
           R"(", "name": "in.)" + name + "\"}}";
  }
  std::string flow(const std::string& node) const {
    return R"({"image": )" + given("test.image", "image") + R"(, "small": )" +
           given("test.image", "small") + R"(, "latent": )" + given("test.latent", "latent") +
           R"(, "out": )" + node +
           R"(, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})";
  }
  heddle::Results run(const std::string& node, std::vector<std::string> keep) {
    return engine.start(engine.parse(flow(node)), {{}, std::move(keep)}).wait();
  }
  std::string refusal(const std::string& node) {
    return engine_refusal([&] { run(node, {}); });
  }

  void compare(const heddle::Results& results, const std::string& output, const std::string& field,
               const std::string& golden) const {
    const auto shape = results.shape(output, field);
    BOOST_TEST((shape == goldens.at(golden).shape), golden << ": another shape");
    const double error = relative_error(results.floats(output, field), goldens.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
};

// "5x13.disabled" and "by 1.5" as inputs of the nodes.
std::string size_inputs(const std::string& text) {
  if (text.starts_with("by ")) return "\"scale_by\": " + text.substr(3);
  std::istringstream stream(text);
  int width = 0, height = 0;
  char letter = 0;
  std::string crop;
  stream >> width >> letter >> height >> letter >> crop;
  return "\"width\": " + std::to_string(width) + ", \"height\": " + std::to_string(height) +
         ", \"crop\": \"" + crop + "\"";
}

std::string node(const std::string& type, const std::string& inputs) {
  return R"({"class_type": ")" + type + R"(", "inputs": {)" + inputs + "}}";
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(scale, Scale)

BOOST_AUTO_TEST_CASE(pictures_and_latents_of_every_method_and_size_equal_pytorch_and_pillow) {
  int count = 0;
  for (const auto& [golden, entry] : goldens.entries()) {
    const bool picture = golden.starts_with("image."), latent = golden.starts_with("latent.");
    if (!picture && !latent) continue;
    const std::size_t first = golden.find('.'), second = golden.find('.', first + 1);
    const std::string method = golden.substr(first + 1, second - first - 1);
    const std::string size = golden.substr(second + 1);
    const std::string by = size.starts_with("by ") ? "By" : "";
    const std::string link = picture ? R"("image": ["image", 0])" : R"("samples": ["latent", 0])";
    const std::string type = picture ? "ImageScale" + by : "LatentUpscale" + by;
    const std::string output = picture ? "out.IMAGE" : "out.LATENT";
    const heddle::Results results =
        run(node(type, link + R"(, "upscale_method": ")" + method + "\", " + size_inputs(size)),
            {output});
    compare(results, output, picture ? "" : "samples", golden);
    ++count;
  }
  BOOST_TEST(count == 40);
}

BOOST_AUTO_TEST_CASE(lanczos_gives_pillows_very_bytes) {
  for (const char* size : {"5x13.disabled", "17x9.center", "by 1.5"}) {
    const std::string type = size[0] == 'b' ? "ImageScaleBy" : "ImageScale";
    const heddle::Results results = run(
        node(type, R"("image": ["image", 0], "upscale_method": "lanczos", )" + size_inputs(size)),
        {"out.IMAGE"});
    BOOST_TEST(results.floats("out.IMAGE") == goldens.floats(std::string("image.lanczos.") + size));
  }
}

BOOST_AUTO_TEST_CASE(no_size_leaves_the_bytes_as_they_are) {
  const std::string sizes =
      R"(, "width": 0, "height": 0, "crop": "center", "upscale_method": "area")";
  BOOST_TEST(run(node("ImageScale", R"("image": ["image", 0])" + sizes), {"out.IMAGE"})
                 .floats("out.IMAGE") == goldens.floats("in.image"));
  BOOST_TEST(run(node("LatentUpscale", R"("samples": ["latent", 0])" + sizes), {"out.LATENT"})
                 .floats("out.LATENT", "samples") == goldens.floats("in.latent"));
}

BOOST_AUTO_TEST_CASE(a_number_of_pixels_keeps_the_aspect) {
  // 0.01 x 1024 x 1024 = 10486 pixels; sides of 10 and 7 grow by sqrt(10485 / 70) = 12.24.
  const heddle::Results results =
      run(node("ImageScaleToTotalPixels",
               R"("image": ["image", 0], "upscale_method": "nearest-exact", "megapixels": 0.01)"),
          {"out.IMAGE"});
  BOOST_TEST(results.shape("out.IMAGE") == (std::vector<std::int64_t>{2, 86, 122, 3}));
  const heddle::Results in_steps = run(
      node(
          "ImageScaleToTotalPixels",
          R"("image": ["image", 0], "upscale_method": "area", "megapixels": 0.01, "resolution_steps": 16)"),
      {"out.IMAGE"});
  BOOST_TEST(in_steps.shape("out.IMAGE") == (std::vector<std::int64_t>{2, 80, 128, 3}));
}

BOOST_AUTO_TEST_CASE(a_batch_takes_the_size_of_its_first_picture) {
  const heddle::Results results =
      run(node("ImageBatch", R"("image1": ["image", 0], "image2": ["small", 0])"), {"out.IMAGE"});
  compare(results, "out.IMAGE", "", "batch");
}

BOOST_AUTO_TEST_CASE(padding_is_grey_and_its_mask_fades_into_the_picture) {
  const auto pad = [](int left, int top, int right, int bottom, int feathering) {
    return node("ImagePadForOutpaint", R"("image": ["image", 0], "left": )" + std::to_string(left) +
                                           ", \"top\": " + std::to_string(top) +
                                           ", \"right\": " + std::to_string(right) +
                                           ", \"bottom\": " + std::to_string(bottom) +
                                           ", \"feathering\": " + std::to_string(feathering));
  };
  const std::pair<std::string, std::string> cases[] = {
      {"all", pad(8, 16, 8, 8, 3)}, {"two", pad(0, 8, 16, 0, 2)}, {"hard", pad(8, 0, 0, 0, 4)}};
  for (const auto& [name, text] : cases) {
    const heddle::Results results = run(text, {"out.IMAGE", "out.MASK"});
    compare(results, "out.IMAGE", "", "padded." + name);
    compare(results, "out.MASK", "", "mask." + name);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_is_refused_with_what_can) {
  const std::string size = refusal(
      node("ImageScaleBy", R"("image": ["image", 0], "upscale_method": "area", "scale_by": 0.01)"));
  BOOST_TEST(size.find("10 x 7 pixels would become 0 x 0") != std::string::npos, size);
  const std::string choice = refusal(
      node("ImageScaleBy", R"("image": ["image", 0], "upscale_method": "bicubi", "scale_by": 2)"));
  BOOST_TEST(choice.find("Did you mean 'bicubic'?") != std::string::npos, choice);
}

BOOST_AUTO_TEST_SUITE_END()
