// Upscalers with weights that follow from their names, through the engine, against what spandrel
// makes of the same ones (../goldens/make_upscaler_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kUpscalerTolerance = 2e-6;

struct UpscalerFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/upscalers/expected.safetensors";
  TensorFile expected{golden};

  void compare(const std::filesystem::path& file, const std::string& name) {
    const heddle::Results results = probe.call({file, "upscaler", "", golden, name + "."});
    const double error =
        relative_error(results.floats("model.outputs", "image.0"), expected.floats(name + ".out"));
    BOOST_TEST_MESSAGE(file.filename() << ": relative error " << error);
    BOOST_TEST(error < kUpscalerTolerance, file.filename() << ": relative error " << error);
  }
  std::string refusal(const std::vector<FileTensor>& tensors) {
    const std::filesystem::path file = temporary / "model.safetensors";
    write_safetensors(file, tensors);
    return engine_refusal([&] { probe.call({file, "upscaler", "", golden, "real_x4."}); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(upscalers, UpscalerFixture)

BOOST_AUTO_TEST_CASE(pictures_become_what_spandrel_makes_of_them) {
  for (const char* name :
       {"old_x4", "trunk_x2", "real_x4", "real_x2", "compact_x4", "compact_x2", "compact_x1"}) {
    const std::vector<FileTensor> tensors = seeded_model(name, false, "upscalers");
    const std::filesystem::path safe = temporary / (std::string(name) + ".safetensors"),
                                torch = temporary / (std::string(name) + ".pth");
    write_safetensors(safe, tensors);
    compare(safe, name);
    write_pytorch(torch, tensors, "params_ema");
    compare(torch, name);
  }
}

BOOST_AUTO_TEST_CASE(files_of_other_kinds_are_refused) {
  std::vector<FileTensor> plus = seeded_model("real_x4", false, "upscalers");
  plus.push_back(seeded_tensor("body.0.rdb1.conv1x1.weight", {32, 8, 1, 1}));
  BOOST_TEST(refusal(plus).find("this is an ESRGAN+ ('body.0.rdb1.conv1x1.weight')") !=
             std::string::npos);
  std::vector<FileTensor> lacking = seeded_model("real_x4", false, "upscalers");
  std::erase_if(lacking, [](const FileTensor& t) { return t.name == "body.1.rdb2.conv3.bias"; });
  BOOST_TEST(refusal(lacking).find("'body.1.rdb2.conv3.bias'") != std::string::npos);
  std::vector<FileTensor> uneven = seeded_model("compact_x2", false, "upscalers");
  for (FileTensor& tensor : uneven)
    if (tensor.name.starts_with("body.8.")) tensor = seeded_tensor(tensor.name, {15, 8, 3, 3});
  BOOST_TEST(refusal(uneven).find("'body.8' makes 15 channels") != std::string::npos);
  const std::vector<FileTensor> colourless{seeded_tensor("body.0.weight", {8, 0, 3, 3}),
                                           seeded_tensor("body.1.weight", {8}),
                                           seeded_tensor("body.2.weight", {12, 8, 3, 3})};
  BOOST_TEST(refusal(colourless).find("no squares of pixels of 0 channels") != std::string::npos);
  std::vector<FileTensor> larger = seeded_model("real_x4", false, "upscalers");
  const auto first = std::ranges::find(larger, "conv_up1.weight", &FileTensor::name);
  BOOST_TEST_REQUIRE((first != larger.end()));
  const std::vector<std::int64_t> shape = first->shape;
  for (int i = 3; i < 70; ++i) {
    const std::string module = "conv_up" + std::to_string(i);
    larger.push_back(seeded_tensor(module + ".weight", shape));
    larger.push_back(seeded_tensor(module + ".bias", {shape[0]}));
  }
  BOOST_TEST(refusal(larger).find("enlarge a picture by 65536 times 2 or more") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
