// MoGe 1 and 2 with weights that follow from their names, against PyTorch
// (make_moge_goldens.py): what the convolutions make of squares of a picture, in two grids.
#include <cmath>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/moge_model.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kMogeTolerance = 1e-5;
using MogeTensors = std::vector<FileTensor>;

struct MogeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/moge/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file(const std::string& model, const MogeTensors& tensors) const {
    const std::filesystem::path path = temporary / (model + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::filesystem::path& path, const std::string& prefix) {
    return probe.call({path, "geometry_estimator", "", golden, prefix});
  }
  void compare(const heddle::Results& made, const std::string& prefix, const std::string& name) {
    std::vector<float> found = made.floats("model.outputs", name + ".0"),
                       wanted = expected.floats(prefix + name);
    if (name == "scale")  // from logarithms to what they stand for
      for (std::vector<float>* numbers : {&found, &wanted})
        for (float& number : *numbers) number = std::exp(number);
    const double error = relative_error(found, wanted);
    BOOST_TEST_MESSAGE(prefix << name << ": relative error " << error);
    BOOST_TEST(error < kMogeTolerance, prefix << name << ": relative error " << error);
  }
};

std::vector<std::string> moge_outputs(const std::string& model) {
  if (model == "first") return {"points", "mask"};
  if (model == "normed") return {"points", "mask", "scale"};
  return {"points", "mask", "normal", "scale"};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(moge, MogeFixture)

constexpr const char* kMogeModels[] = {"first", "second", "normed"};
constexpr const char* kMogeGrids[] = {"3.5", "4.4"};
BOOST_DATA_TEST_CASE_F(MogeFixture, what_is_made_of_a_picture_equals_pytorch,
                       boost::unit_test::data::make(kMogeModels) *
                           boost::unit_test::data::make(kMogeGrids),
                       model, grid) {
  const std::string prefix = cat(model, ".", grid, ".");
  const heddle::Results made = call(file(model, moge_tensors(model)), prefix);
  for (const std::string& name : moge_outputs(model)) compare(made, prefix, name);
}

// Files by ComfyUI's names of DINOv2, with queries, keys and values apart.
BOOST_AUTO_TEST_CASE(by_other_names_the_bytes_are_the_same) {
  const heddle::Results one = call(file("second", moge_tensors("second")), "second.3.5."),
                        other = call(file("renamed", renamed_moge(moge_tensors("second"))),
                                     "second.3.5.");
  for (const std::string& name : moge_outputs("second"))
    BOOST_TEST(
        one.floats("model.outputs", name + ".0") == other.floats("model.outputs", name + ".0"),
        name);
  const heddle::Results gated =
      call(file("gated", renamed_moge(moge_tensors("normed"))), "normed.3.5.");
  compare(gated, "normed.3.5.", "points");
}

// What they round is far more than in 32 bits.
BOOST_AUTO_TEST_CASE(in_16_bits_what_is_made_is_near) {
  constexpr double kNear = 0.05;
  ModelProbe narrow("bf16");
  const heddle::Results made = narrow.call(
      {file("second", moge_tensors("second")), "geometry_estimator", "", golden, "second.3.5."});
  for (const std::string& name : moge_outputs("second")) {
    if (name == "scale") continue;  // one number
    const double error = relative_error(made.floats("model.outputs", name + ".0"),
                                        expected.floats("second.3.5." + name));
    BOOST_TEST(error < kNear, name << ": relative error " << error);
    BOOST_TEST(error > kMogeTolerance, name << ": nothing was rounded");
  }
}

BOOST_AUTO_TEST_CASE(what_a_file_lacks_is_said) {
  const auto says = [&](const std::string& model, const std::string& name) {
    MogeTensors tensors = moge_tensors(model);
    BOOST_TEST(std::erase_if(tensors,
                             [&](const FileTensor& tensor) { return tensor.name == name; }) == 1u);
    const std::string text = engine_refusal([&] { call(file(model, tensors), model + ".3.5."); });
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
  };
  says("second", "encoder.backbone.blocks.3.ls2.gamma");
  says("second", "neck.resamplers.3.1.weight");
  says("second", "normal_head.output_blocks.4.weight");
  says("second", "scale_head.4.bias");
  says("second", "encoder.image_std");
  says("first", "head.upsample_blocks.1.1.layers.5.weight");
  says("first", "head.output_block.1.2.bias");
}

// Parts that are there, but not as what reads them expects.
BOOST_AUTO_TEST_CASE(damaged_files_are_refused) {
  const auto says = [&](std::vector<FileTensor> tensors, const char* words) {
    const std::string text = engine_refusal([&] { call(file("second", tensors), "second.3.5."); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  std::vector<FileTensor> tensors = moge_tensors("second");
  for (FileTensor& tensor : tensors) {
    if (!tensor.name.starts_with("points_head.output_blocks.")) continue;
    tensor.bytes.resize(tensor.bytes.size() / std::size_t(tensor.shape[0]));
    tensor.shape[0] = 1;
  }
  says(tensors, "has 1 output channels, expected 3");
  tensors = moge_tensors("second");
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.starts_with("neck.input_blocks.");
  });
  says(tensors, "'neck.input_blocks' has 0 levels");
}

BOOST_AUTO_TEST_SUITE_END()
