// Previews of a sampler's steps: the map of the autoencoder's configuration, over what the model
// sees.
#include <cmath>

#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Event;
using heddle::engine::Json;

namespace {

constexpr int kWidth = 8, kHeight = 6, kSteps = 3;

struct Seen {
  unsigned step = 0;
  std::vector<std::uint8_t> pixels;
};

struct PreviewsFixture : heddle::test::NodeFixture {
  int scale = 1;  // sides of a preview, in those of the latent

  // The pipeline's autoencoder with these factors, as JSON; none when empty.
  void set_factors(const std::string& factors) {
    const Json configs = heddle::engine::parse_json(
        heddle::test::read_text(random() / "configs.json"), "configs.json");
    Json config = *configs.find("vae");
    if (!factors.empty())
      config.set("preview_factors", heddle::engine::parse_json(factors, "factors"));
    folder.write("models/diffusers/random/vae/config.json", heddle::engine::write_json(config));
  }

  // The latent at the end; `seen` gets every preview.
  std::vector<float> draw(std::vector<Seen>& seen) {
    const heddle::Workflow flow = engine.parse(heddle::engine::cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
            "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["loader", 1]}},
            "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": )",
        8 * kWidth, R"(, "height": )", 8 * kHeight, R"(, "batch_size": 2}},
            "drawn": {"class_type": "KSampler", "inputs": {"model": ["loader", 0], "cfg": 1.0, "sampler_name": "euler",
             "scheduler": "simple", "positive": ["text", 0], "negative": ["text", 0], "seed": 5, "steps": )",
        kSteps, R"(, "latent_image": ["empty", 0], "denoise": 1.0}},
            "end": {"class_type": "test.keep", "inputs": {"value": ["drawn", 0]}}})"));
    heddle::StartOptions options;
    options.fetch = {"drawn.LATENT"};
    options.previews = heddle::PreviewMethod::linear;
    options.observer = [&](const Event& e) {
      if (e.kind != Event::Kind::preview) return;
      BOOST_TEST(e.node == "drawn");
      BOOST_TEST(e.preview->width == unsigned(scale * kWidth));
      BOOST_TEST(e.preview->height == unsigned(scale * kHeight));
      BOOST_TEST(e.preview->step_count == unsigned{kSteps});
      const std::uint8_t* const pixels = e.preview->pixels;
      seen.push_back({e.preview->step, {pixels, pixels + 3 * scale * scale * kWidth * kHeight}});
    };
    return engine.start(flow, std::move(options)).wait().floats("drawn.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(previews, PreviewsFixture)

BOOST_AUTO_TEST_CASE(every_step_is_shown_and_the_last_one_shows_what_was_drawn) {
  // Red goes up with the first channel, green down with the second, blue is the third alone.
  set_factors("[[0.2, 0, 0], [0, -0.3, 0], [0, 0, 1], [0, 0, 0], [0.5, 0.4, 0]]");
  std::vector<Seen> seen;
  const std::vector<float> latent = draw(seen);
  BOOST_TEST_REQUIRE(seen.size() == std::size_t{kSteps});
  for (int step = 0; step < kSteps; ++step) BOOST_TEST(seen[step].step == unsigned(step + 1));
  BOOST_TEST((seen[0].pixels != seen[2].pixels));
  constexpr int kPositions = kWidth * kHeight;
  for (int p = 0; p < kPositions; ++p) {
    const float colours[] = {0.5f + 0.2f * latent[p], 0.4f - 0.3f * latent[kPositions + p],
                             latent[2 * kPositions + p]};
    for (int c = 0; c < 3; ++c) {
      const float wanted = 255 * std::min(1.0f, std::max(0.0f, colours[c]));
      BOOST_TEST(std::abs(wanted - float(seen[2].pixels[3 * p + c])) <= 0.51f);
    }
  }
}

// As FLUX.2's.
BOOST_AUTO_TEST_CASE(four_channels_of_a_packed_latent_are_four_places) {
  set_factors("[[0.3, -0.2, 1], [0.5, 0.4, 0]]");
  scale = 2;
  std::vector<Seen> seen;
  const std::vector<float> latent = draw(seen);
  BOOST_TEST_REQUIRE(seen.size() == std::size_t{kSteps});
  for (int y = 0; y < 2 * kHeight; ++y)
    for (int x = 0; x < 2 * kWidth; ++x) {
      const int channel = y % 2 * 2 + x % 2;
      const float number = latent[(channel * kHeight + y / 2) * kWidth + x / 2];
      const float colours[] = {0.5f + 0.3f * number, 0.4f - 0.2f * number, number};
      for (int c = 0; c < 3; ++c) {
        const float wanted = 255 * std::min(1.0f, std::max(0.0f, colours[c]));
        const int at = 3 * (y * 2 * kWidth + x) + c;
        BOOST_TEST(std::abs(wanted - float(seen.back().pixels[at])) <= 0.51f);
      }
    }
}

BOOST_AUTO_TEST_CASE(
    without_a_map_or_with_one_that_is_none_nothing_is_shown_and_all_else_is_the_same) {
  set_factors("[[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]]");
  std::vector<Seen> seen;
  const std::vector<float> latent = draw(seen);
  BOOST_TEST_REQUIRE(seen.size() == std::size_t{kSteps});
  seen.clear();
  for (const char* factors : {"", "5", "[]", "[[1, 2, 3]]", "[[1, 2], [3, 4]]",
                              "[[1, 2, 3], [1, 2, \"x\"]]", "[[1, 1, 1], [1, 1, 1], [1, 1, 1]]"}) {
    set_factors(factors);
    BOOST_TEST((draw(seen) == latent), factors);
    BOOST_TEST(seen.empty(), factors);
  }
}

BOOST_AUTO_TEST_SUITE_END()
