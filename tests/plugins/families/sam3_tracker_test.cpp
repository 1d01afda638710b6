// SAM 3.1's tracker of videos with weights that follow from their names, part by part against what
// PyTorch makes (make_sam3_tracker_goldens.py).
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

constexpr double kTrackerTolerance = 1e-5;

struct TrackerFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sam3_tracker/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("sam31", false, "sam3_tracker");
    change(tensors);
    const std::filesystem::path path = temporary / "sam31.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  static std::string config(int size, const std::string& part) {
    return R"({"image_size": )" + std::to_string(size) + R"(, "part": ")" + part + R"("})";
  }
  // Without a file that has a `part` of tensors' names.
  std::string refusal(const std::string& part, const std::string& left_out) {
    const std::filesystem::path path = file([&](std::vector<FileTensor>& tensors) {
      BOOST_TEST(std::erase_if(tensors, [&](const FileTensor& tensor) {
                   return tensor.name == left_out;
                 }) == 1u);
    });
    return engine_refusal([&] {
      probe.call({path, "diffusion_model", config(56, part), golden, "56." + part + "."});
    });
  }
};

struct TrackerPart {
  const char* name;
  std::vector<const char*> outputs;
};
std::ostream& operator<<(std::ostream& out, const TrackerPart& part) { return out << part.name; }

const TrackerPart kTrackerParts[] = {
    {"tracker", {"mask.0", "mask.1", "mask.2", "qualities", "objects", "pointers", "absent"}},
    {"memory", {"memory", "cells"}},
    {"pointer", {"object", "pointers", "absent"}},
    {"mask_logits", {"logits"}},
};
constexpr int kTrackerSizes[] = {112, 56};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sam3_tracker, TrackerFixture)

BOOST_DATA_TEST_CASE_F(TrackerFixture, parts_equal_pytorch,
                       boost::unit_test::data::make(kTrackerSizes) *
                           boost::unit_test::data::make(kTrackerParts),
                       size, part) {
  const std::string prefix = std::to_string(size) + "." + part.name + ".";
  const heddle::Results made =
      probe.call({file(), "diffusion_model", config(size, part.name), golden, prefix});
  for (const std::string name : part.outputs) {
    const double error =
        relative_error(made.floats("model.outputs", name + ".0"), expected.floats(prefix + name));
    BOOST_TEST_MESSAGE(prefix << name << ": relative error " << error);
    BOOST_TEST(error < kTrackerTolerance, prefix << name << ": relative error " << error);
  }
}

// What they round is far more than in 32 bits.
BOOST_DATA_TEST_CASE_F(TrackerFixture, in_16_bits_parts_are_near,
                       boost::unit_test::data::make(kTrackerParts), part) {
  constexpr double kNear = 0.05;
  ModelProbe narrow("bf16");
  const std::string prefix = std::string("112.") + part.name + ".";
  const heddle::Results made =
      narrow.call({file(), "diffusion_model", config(112, part.name), golden, prefix});
  for (const std::string name : part.outputs) {
    const double error =
        relative_error(made.floats("model.outputs", name + ".0"), expected.floats(prefix + name));
    BOOST_TEST_MESSAGE("16 bits, " << prefix << name << ": relative error " << error);
    BOOST_TEST(error < kNear, prefix << name << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(what_a_tracker_lacks_is_said) {
  const auto says = [&](const std::string& part, const std::string& name) {
    const std::string text = refusal(part, name);
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
  };
  says("tracker", "tracker.model.transformer.encoder.layers.1.image_cross_attn_k_proj.weight");
  says("tracker", "tracker.model.sam_mask_decoder.transformer.layers.0.mlp.lin1.weight");
  says("tracker", "tracker.model.output_valid_embed");
  says("memory", "tracker.model.maskmem_backbone.fuser.layers.0.gamma");
  says("memory", "tracker.model.no_obj_embed_spatial");
  says("pointer", "tracker.model.interactive_obj_ptr_proj.layers.2.bias");
  says("mask_logits", "tracker.model.interactive_mask_downsample.weight");
}

BOOST_AUTO_TEST_SUITE_END()
