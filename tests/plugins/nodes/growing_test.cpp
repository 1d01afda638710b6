// SamplerLCMUpscale: runs in which the picture grows, against PyTorch (make_growing_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

struct GrowingFixture : NodeFixture {
  TensorFile grown{here() / "growing_goldens.safetensors"};

  struct Case {
    const char* name;
    int steps;
    double scale;
    int scale_steps;
    const char *method, *latent, *levels;
  };
  static std::string nodes(const Case& c) {
    const auto text = [](auto value) { return heddle::engine::cat(value); };
    return R"("all": {"class_type": "BasicScheduler", "inputs": {"model": ["model", 0], "scheduler": "simple",
             "steps": )" +
           text(c.steps) + R"(, "denoise": 1.0}},
           "cut": {"class_type": "SplitSigmas", "inputs": {"sigmas": ["all", 0], "step": 3}},
           "pick": {"class_type": "SamplerLCMUpscale", "inputs": {"scale_ratio": )" +
           text(c.scale) + R"(, "scale_steps": )" + text(c.scale_steps) +
           R"(, "upscale_method": ")" + c.method + R"("}},
           "out": {"class_type": "SamplerCustom", "inputs": {"model": ["model", 0], "add_noise": true, "noise_seed": 7,
             "cfg": 3.0, "positive": ["one", 0], "negative": ["two", 0], "sampler": ["pick", 0], "sigmas": )" +
           c.levels + R"(, "latent_image": [")" + c.latent + R"(", 0]}}, )" + kLook;
  }
  void compare_run(const Case& c) {
    const Results results = run(nodes(c), {"out.output", "out.denoised_output"});
    for (const auto& [output, golden] :
         {std::pair("out.output", "grown."), {"out.denoised_output", "denoised."}}) {
      const std::string name = std::string(golden) + c.name;
      BOOST_TEST((results.shape(output, "samples") == grown.entries().at(name).shape), name);
      const double error = relative_error(results.floats(output, "samples"), grown.floats(name));
      BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(growing_runs, GrowingFixture)

BOOST_AUTO_TEST_CASE(pictures_grow_as_in_pytorch) {
  for (const Case& c : {Case{"half", 2, 2.0, -1, "bicubic", "empty", R"(["all", 0])"},
                        {"twice", 4, 3.0, 2, "nearest-exact", "empty", R"(["all", 0])"},
                        {"smaller", 6, 0.3, 1, "area", "latent", R"(["cut", 1])"},
                        {"never", 3, 2.0, 0, "bilinear", "empty", R"(["all", 0])"},
                        {"unfinished", 4, 2.0, 1, "bilinear", "empty", R"(["cut", 0])"}})
    compare_run(c);
}

BOOST_AUTO_TEST_CASE(bislerp_grows_them_too_and_repeats_itself) {
  const Case c{"", 2, 1.5, 1, "bislerp", "empty", R"(["all", 0])"};
  const Results once = run(nodes(c), {"out.output"}), again = run(nodes(c), {"out.output"});
  BOOST_TEST((once.shape("out.output", "samples") == std::vector<std::int64_t>{1, 4, 9, 12}));
  BOOST_TEST(once.floats("out.output", "samples") == again.floats("out.output", "samples"));
}

BOOST_AUTO_TEST_CASE(a_noise_mask_is_refused) {
  const Case c{"", 2, 2.0, -1, "bilinear", "masked", R"(["all", 0])"};
  const std::string masked =
      R"("masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["latent", 0], "mask": ["mask", 0]}}, )";
  BOOST_TEST(engine_refusal([&] {
               run(masked + nodes(c), {});
             }).find("it has a noise mask, which cannot grow with the picture") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
