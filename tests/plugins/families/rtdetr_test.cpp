// RT-DETR 4 with weights that follow from their names, against PyTorch (make_rtdetr_goldens.py):
// what is found in pictures of two sizes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/rtdetr_model.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

using RtdetrTensors = std::vector<FileTensor>;
constexpr double kRtdetrTolerance = 1e-4;
constexpr const char* kRtdetrConfig = R"({"num_queries": 20})";

FileTensor floats_tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {name, "F32", shape, bytes};
}

struct RtdetrFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/rtdetr/expected.safetensors";
  TensorFile expected{golden};

  heddle::Results call(const RtdetrTensors& tensors, const std::string& prefix,
                       const char* config = kRtdetrConfig) {
    return call_by(probe, tensors, prefix, config);
  }
  heddle::Results call_by(ModelProbe& by, const RtdetrTensors& tensors, const std::string& prefix,
                          const char* config = kRtdetrConfig) {
    const std::filesystem::path path = temporary / "rtdetr.safetensors";
    write_safetensors(path, tensors);
    return by.call({path, "diffusion_model", config, golden, prefix});
  }
  static std::vector<float> made(const heddle::Results& results, const std::string& name) {
    return results.floats("model.outputs", name + ".0");
  }
  void compare(const heddle::Results& results, const std::string& prefix) {
    for (const char* name : {"logits", "boxes"}) {
      const double error = relative_error(made(results, name), expected.floats(prefix + name));
      BOOST_TEST_MESSAGE(prefix << name << ": relative error " << error);
      BOOST_TEST(error < kRtdetrTolerance, prefix << name << ": relative error " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(rtdetr, RtdetrFixture)

constexpr const char* kRtdetrSizes[] = {"64.160.", "96.96."};
BOOST_DATA_TEST_CASE_F(RtdetrFixture, what_is_found_equals_pytorch,
                       boost::unit_test::data::make(kRtdetrSizes), prefix) {
  compare(call(rtdetr_tensors(), prefix), prefix);
}

// Twice the distances in twice as large a scale are the same, and so is all behind a prefix, with
// the three matrices of an attention in one.
BOOST_AUTO_TEST_CASE(tensors_that_a_file_may_have_count) {
  const std::string prefix = "64.160.";
  RtdetrTensors tensors = rtdetr_tensors();
  std::vector<float> distances;
  for (int i = -16; i <= 16; ++i) {
    const int away = std::abs(i);
    const double far = away == 16 ? 8 : std::pow(5.0, away / 15.0) - 1;
    distances.push_back(float(2 * (i < 0 ? -far : far)));
  }
  tensors.push_back(floats_tensor("decoder.decoder.project", {33}, distances));
  tensors.push_back(floats_tensor("decoder.reg_scale", {1}, {16}));
  std::vector<float> anchors = expected.floats(prefix + "anchors");
  tensors.push_back(
      floats_tensor("decoder.anchors", {1, std::int64_t(anchors.size()) / 4, 4}, anchors));
  const std::string at = "encoder.encoder.0.layers.0.self_attn.";
  FileTensor joined{at + "in_proj_weight", "F32", {96, 32}, ""},
      added{at + "in_proj_bias", "F32", {96}, ""};
  for (const char* part : {"q", "k", "v"})
    std::erase_if(tensors, [&](const FileTensor& tensor) {
      if (!tensor.name.starts_with(cat(at, part, "_proj."))) return false;
      (tensor.name.ends_with("weight") ? joined : added).bytes += tensor.bytes;
      return true;
    });
  tensors.insert(tensors.end(), {joined, added});
  for (FileTensor& tensor : tensors) tensor.name = "model." + tensor.name;
  compare(call(tensors, prefix), prefix);
  for (FileTensor& tensor : tensors)
    if (tensor.name == "model.decoder.anchors") {
      for (float& number : anchors) number = 0;
      tensor = floats_tensor(tensor.name, tensor.shape, anchors);
    }
  BOOST_TEST(relative_error(made(call(tensors, prefix), "boxes"),
                            expected.floats(prefix + "boxes")) > 0.01);
}

// Roundings choose other cells, so that what is found stands in another order.
BOOST_AUTO_TEST_CASE(in_16_bits_what_is_found_is_near) {
  constexpr double kNear = 0.1;
  const auto best = [](const std::vector<float>& logits) {
    std::vector<float> made;
    for (std::size_t at = 0; at < logits.size(); at += 80)
      made.push_back(*std::max_element(logits.begin() + std::ptrdiff_t(at),
                                       logits.begin() + std::ptrdiff_t(at) + 80));
    std::ranges::sort(made);
    return made;
  };
  ModelProbe narrow("bf16");
  const double error =
      relative_error(best(made(call_by(narrow, rtdetr_tensors(), "96.96."), "logits")),
                     best(expected.floats("96.96.logits")));
  BOOST_TEST_MESSAGE("bf16: relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > 1e-5, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(what_a_file_lacks_is_said) {
  for (const char* name : {"backbone.stem.stem2b.bn.running_mean",
                           "backbone.stages.2.blocks.0.layers.1.conv2.conv.weight",
                           "encoder.fpn_blocks.1.cv3.0.bottlenecks.0.conv.bias",
                           "decoder.decoder.layers.1.cross_attn.sampling_offsets.weight",
                           "decoder.decoder.lqe_layers.2.reg_conf.layers.1.weight"}) {
    RtdetrTensors tensors = rtdetr_tensors();
    BOOST_TEST(std::erase_if(tensors,
                             [&](const FileTensor& tensor) { return tensor.name == name; }) == 1u);
    const std::string text = engine_refusal([&] { call(tensors, "96.96."); });
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
  }
}

BOOST_AUTO_TEST_CASE(damaged_files_and_configs_are_refused) {
  const auto says = [&](const RtdetrTensors& tensors, const char* config, const char* words) {
    const std::string text = engine_refusal([&] { call(tensors, "96.96.", config); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  says(rtdetr_tensors(), R"({"num_queries": 0})", "expected 1 or more of each");
  says(rtdetr_tensors(), R"({"num_attention_heads": 5})", "do not divide into 5 heads");
  RtdetrTensors tensors = rtdetr_tensors();
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.starts_with("backbone.stages.3.");
  });
  says(tensors, kRtdetrConfig, "has 3 stages, expected 4");
  tensors = rtdetr_tensors();
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name.find(".cv2.0.bottlenecks.") != std::string::npos;
  });
  says(tensors, kRtdetrConfig, "bottlenecks' has no layers");
}

BOOST_AUTO_TEST_SUITE_END()
