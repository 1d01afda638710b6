// TomePatchModel, against PyTorch (../goldens/make_tome_goldens.py).
#include "tests/plugins/nodes/unet_patch_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct TokenMerging : PatchedUnet {
  const TensorFile made{tests_folder() / "plugins/goldens/unet/tome.safetensors"};

  static std::string merging(double ratio, const char* from = "loaded", const char* to = "model") {
    return patch("TomePatchModel", cat(R"("ratio": )", ratio), from, to);
  }
  void is(const std::vector<float>& latent, const char* name) {
    const double error = relative_error(latent, made.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(token_merging, TokenMerging)

BOOST_AUTO_TEST_CASE(merged_tokens_equal_pytorch) {
  const std::vector<float> plain = wanted.floats("sd1.plain");
  is(draw("sd1", merging(0.3)), "sd1.0.3");
  is(draw("sd1", merging(1)), "sd1.1.0");
  for (const char* name : {"sd1.0.3", "sd1.1.0"})
    BOOST_TEST(relative_error(made.floats(name), plain) > 100 * kTolerance, name);
  BOOST_TEST(relative_error(draw("sd1", merging(0)), plain) < kTolerance);
}

BOOST_AUTO_TEST_CASE(odd_sides_equal_pytorch) {
  std::string text = flow("sd1", merging(0.5));
  const std::string even = R"("width": 128, "height": 64)";
  text.replace(text.find(even), even.size(), R"("width": 72, "height": 40)");
  is(run_whole(text, {"drawn.LATENT"}).floats("drawn.LATENT", "samples"), "sd1.odd");
}

BOOST_AUTO_TEST_CASE(dividing_keeps_the_bytes, *boost::unit_test::label("long")) {
  hold("sd1", merging(0.5), 2 << 20);
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  const auto refusal = [&](const std::string& patches) {
    return engine_refusal([&] { draw("sd1", patches); });
  };
  const auto has = [](const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  has(refusal(merging(0.5, "loaded", "once") + merging(0.5, "once")), "merged already");
  has(refusal(merging(0.5, "loaded", "once") + patch("HyperTile", "", "once")), "HyperTile");
}

BOOST_AUTO_TEST_SUITE_END()
