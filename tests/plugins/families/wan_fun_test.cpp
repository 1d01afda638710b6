// Wan Fun, which reads a camera or a picture before the video, with weights that follow from their
// names, whole and through the engine, against PyTorch (make_wan_fun_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kFunTolerance = 1e-5;
constexpr int kFunSteps = 3;

struct WanFunFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_fun/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file(const std::string& kind, const std::string& lacking = "") const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "wan_fun");
    std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == lacking; });
    const std::filesystem::path path = temporary / "fun.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call(
        {model, "diffusion_model", R"({"attention_head_dim": 16})", golden, clip + ".", without});
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kFunSteps);
    for (int step = 0; step < kFunSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kFunTolerance, name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_fun, WanFunFixture)

// Of one camera or picture for two items, and of one for each.
BOOST_AUTO_TEST_CASE(the_velocity_by_a_camera_or_a_picture_equals_pytorch) {
  for (const std::string kind : {"camera", "reference"}) {
    const std::filesystem::path model = file(kind);
    for (const char* clip : {".short", ".long", ".odd"})
      compare(call(model, kind + clip), kind + clip);
  }
}

BOOST_AUTO_TEST_CASE(a_camera_or_a_picture_need_not_be_given) {
  for (const std::string kind : {"camera", "reference"})
    compare(call(file(kind), kind + ".long", kind), kind + ".without");
}

BOOST_AUTO_TEST_CASE(what_a_file_of_fun_lacks_is_said) {
  const std::pair<const char*, const char*> lacking[] = {
      {"camera", "control_adapter.residual_blocks.0.conv2.weight"},
      {"camera", "control_adapter.conv.bias"},
      {"reference", "ref_conv.bias"}};
  for (const auto& [kind, name] : lacking) {
    const std::string text = engine_refusal(
        [&, kind = kind, name = name] { call(file(kind, name), kind + std::string(".short")); });
    BOOST_TEST(text.find(name) != std::string::npos, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
