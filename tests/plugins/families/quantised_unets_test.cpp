// UNets whose numbers are quantised: in the blocks of a gguf file as converters of UNets write
// them, filters in another shape than their own, and in 8 bits with and without scales; against
// what diffusers makes of the same weights widened (make_quantised_unets.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

namespace {

constexpr double kQuantisedUnetTolerance = 1e-5;  // that of unet_test.cpp
constexpr int kQuantisedUnetSteps = 2;

struct QuantisedUnets {
  ModelProbe probe;
  std::filesystem::path folder = tests_folder() / "plugins/goldens/quantised_unets";
  TensorFile expected{folder / "expected.safetensors"};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quantised_unets, QuantisedUnets)

BOOST_AUTO_TEST_CASE(unets_in_blocks_and_in_8_bits_equal_diffusers_on_their_weights) {
  for (const std::string file : {"blocks.gguf", "scaled.safetensors", "f8_e4m3.safetensors"}) {
    const heddle::Results results = probe.call(
        {folder / file, "diffusion_model", "", folder / "expected.safetensors", "unet."});
    const std::vector<float> all = expected.floats(file.substr(0, file.find('.')) + ".out");
    const auto row = std::ptrdiff_t(all.size() / kQuantisedUnetSteps);
    for (int step = 0; step < kQuantisedUnetSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(file << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kQuantisedUnetTolerance, file << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
