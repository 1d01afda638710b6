// VAELoader's "pixel_space", which is no file: latents that are pictures from -1 to 1.
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct PixelSpace : NodeFixture {
  static constexpr int kRows = 7, kColumns = 9, kColours = 3;

  // A picture of one colour within a grey frame, through the autoencoder and back.
  static std::string flow(const std::string& encode, const std::string& decode,
                          const std::string& more) {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "pixel_space"}},
      "flat": {"class_type": "EmptyImage", "inputs": {"width": 6, "height": 5, "batch_size": 2, "color": 3368601}},
      "pic": {"class_type": "ImagePadForOutpaint", "inputs": {"image": ["flat", 0], "left": 3, "top": 2,
        "right": 0, "bottom": 0, "feathering": 0}},
      "in": {"class_type": ")",
               encode, R"(", "inputs": {"pixels": ["pic", 0], "vae": ["vae", 0])", more, R"(}},
      "out": {"class_type": ")",
               decode, R"(", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])", more, R"(}},
      "show": {"class_type": "PreviewImage", "inputs": {"images": ["out", 0]}}})");
  }
  void check(const std::string& encode, const std::string& decode, const std::string& more = "") {
    const heddle::Results results =
        run_whole(flow(encode, decode, more), {"pic.IMAGE", "in.LATENT", "out.IMAGE"});
    const std::vector<float> picture = results.floats("pic.IMAGE");
    const std::vector<float> latent = results.floats("in.LATENT", "samples");
    BOOST_TEST(results.shape("in.LATENT", "samples") ==
                   (std::vector<std::int64_t>{2, kColours, kRows, kColumns}),
               boost::test_tools::per_element());
    BOOST_REQUIRE(latent.size() == picture.size());
    double most = 0;
    for (int b = 0; b < 2; ++b)
      for (int y = 0; y < kRows; ++y)
        for (int x = 0; x < kColumns; ++x)
          for (int c = 0; c < kColours; ++c) {
            const float of_picture =
                picture[std::size_t(((b * kRows + y) * kColumns + x) * kColours + c)];
            const float of_latent =
                latent[std::size_t(((b * kColours + c) * kRows + y) * kColumns + x)];
            most = std::max(most, std::abs(double(of_latent) - (2.0 * of_picture - 1.0)));
          }
    BOOST_TEST(most < 1e-6);
    const std::vector<float> back = results.floats("out.IMAGE");
    BOOST_REQUIRE(back.size() == picture.size());
    for (std::size_t i = 0; i < back.size(); ++i) BOOST_TEST(std::abs(back[i] - picture[i]) < 1e-6);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pixel_space, PixelSpace)

BOOST_AUTO_TEST_CASE(pictures_are_latents) { check("VAEEncode", "VAEDecode"); }

BOOST_AUTO_TEST_CASE(tiles_make_no_difference) {
  check("VAEEncodeTiled", "VAEDecodeTiled",
        R"(, "tile_size": 64, "overlap": 0, "temporal_size": 64, "temporal_overlap": 8)");
}

BOOST_AUTO_TEST_CASE(it_is_a_choice_without_any_file_and_others_are_not) {
  const auto problems = [&](const std::string& name) {
    std::string text = flow("VAEEncode", "VAEDecode", "");
    text.replace(text.find("pixel_space"), 11, name);
    return engine.check(engine.parse(text)).errors;
  };
  BOOST_TEST(problems("pixel_space").empty());
  BOOST_REQUIRE(problems("pixel_spaces").size() == 1u);
  BOOST_TEST(problems("pixel_spaces")[0].find("Did you mean 'pixel_space'") != std::string::npos,
             problems("pixel_spaces")[0]);
}

BOOST_AUTO_TEST_SUITE_END()
