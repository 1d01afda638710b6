// SDPose, a UNet of Lotus whose states a head makes heatmaps of, with weights that follow from
// their names, against diffusers and PyTorch (make_sdpose_goldens.py).
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/sdpose_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSdPoseTolerance = 1e-5;
constexpr std::size_t kSdPoseKept = 6, kSdPosePoints = 133;

struct SdPoseFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sdpose/expected.safetensors";
  TensorFile expected{golden};

  heddle::Results call(const std::vector<FileTensor>& tensors, const std::string& prefix,
                       const char* config = R"({"heatmaps": true})") {
    const std::filesystem::path path = temporary / "sdpose.safetensors";
    write_safetensors(path, tensors);
    return probe.call({path, "diffusion_model", config, golden, prefix});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sdpose, SdPoseFixture)

constexpr const char* kSdPoseSizes[] = {"square.", "odd."};
BOOST_DATA_TEST_CASE_F(SdPoseFixture, heatmaps_equal_pytorch,
                       boost::unit_test::data::make(kSdPoseSizes), prefix) {
  const std::vector<float> all =
      call(sdpose_tensors(), prefix).floats("model.outputs", "heatmaps.0");
  std::vector<float> made;
  for (std::size_t at = 0; at < all.size(); at += kSdPosePoints)
    made.insert(made.end(), all.begin() + std::ptrdiff_t(at),
                all.begin() + std::ptrdiff_t(at + kSdPoseKept));
  const double error = relative_error(made, expected.floats(std::string(prefix) + "heatmaps"));
  BOOST_TEST_MESSAGE(prefix << "heatmaps: relative error " << error);
  BOOST_TEST(error < kSdPoseTolerance, prefix << "heatmaps: relative error " << error);
}

// By diffusers' names of the UNet; and the whole of it, which draws as any Lotus.
BOOST_AUTO_TEST_CASE(by_other_names_the_bytes_are_the_same) {
  const auto maps = [&](const std::vector<FileTensor>& tensors) {
    return call(tensors, "odd.").floats("model.outputs", "heatmaps.0");
  };
  BOOST_TEST((maps(sdpose_tensors()) == maps(sdpose_tensors(false))));
  const heddle::Results whole = call(sdpose_tensors(), "odd.", "");
  BOOST_TEST(whole.shape("model.outputs", "out.0") == (std::vector<std::int64_t>{1, 4, 6, 14}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(damaged_heads_are_refused) {
  const auto says = [&](const char* name, const char* words, bool halves) {
    std::vector<FileTensor> tensors = sdpose_tensors();
    std::erase_if(tensors, [&](FileTensor& tensor) {
      if (tensor.name != name) return false;
      if (halves) {
        tensor.bytes.resize(tensor.bytes.size() / 4);
        tensor.shape[0] /= 4;
      }
      return !halves;
    });
    const std::string text = engine_refusal([&] { call(tensors, "odd."); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  says("heatmap_head.deconv_layers.0.weight", "reads 32 channels", true);
  says("heatmap_head.deconv_layers.0.weight", "heatmap_head.deconv_layers.0.weight", false);
  says("heatmap_head.conv_layers.0.bias", "heatmap_head.conv_layers.0.bias", false);
}

BOOST_AUTO_TEST_SUITE_END()
