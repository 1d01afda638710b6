// Wan VACE with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_wan_vace_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wan_names.h"

using namespace heddle::test;

namespace {

constexpr double kVaceTolerance = 1e-5;
constexpr int kVaceSteps = 3;

struct WanVaceFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_vace/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("vace", false, "wan_vace");
    change(tensors);
    const std::filesystem::path path = temporary / "vace.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip) {
    return probe.call(
        {model, "diffusion_model", R"({"attention_head_dim": 16})", golden, "vace." + clip + "."});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_vace, WanVaceFixture)

// One context for two items, two that both share, and two for each.
BOOST_AUTO_TEST_CASE(the_velocity_of_a_followed_video_equals_diffusers) {
  const std::filesystem::path model = file([](std::vector<FileTensor>&) {});
  for (const std::string clip : {"short", "long", "odd"}) {
    const heddle::Results results = call(model, clip);
    const std::vector<float> all = expected.floats("vace." + clip + ".out");
    const auto row = std::ptrdiff_t(all.size() / kVaceSteps);
    for (int step = 0; step < kVaceSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(clip << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kVaceTolerance, clip << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(vace_by_the_names_of_diffusers_gives_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "long").floats("model.outputs", "out.1");
  };
  BOOST_TEST(bytes([](std::vector<FileTensor>&) {}) == bytes(name_wan_as_diffusers));
}

BOOST_AUTO_TEST_CASE(what_a_file_of_vace_lacks_is_said) {
  const auto refusal = [&](const std::string& without) {
    return engine_refusal([&] {
      call(file([&](std::vector<FileTensor>& tensors) {
             std::erase_if(tensors,
                           [&](const FileTensor& tensor) { return tensor.name == without; });
           }),
           "short");
    });
  };
  for (const std::string name :
       {"vace_blocks.1.after_proj.weight", "vace_blocks.0.before_proj.bias",
        "vace_patch_embedding.weight", "vace_blocks.1.cross_attn.k.weight"}) {
    const std::string text = refusal(name);
    BOOST_TEST(text.find("'" + name + "'") != std::string::npos, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
