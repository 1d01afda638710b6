// Latents of pictures and their sound: put together, taken apart, and sound in another's place.
#include "engine/base/text.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

using Shape = std::vector<std::int64_t>;

struct PairFixture : NodeFixture {
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  static std::string look(const std::string& name, const std::string& of, int output) {
    return cat("\"", name, R"(": {"class_type": "test.look", "inputs": {"value": [")", of, "\", ",
               output, "]}}");
  }
  static std::string joined(const std::string& name, const std::string& video,
                            const std::string& audio) {
    return node(
        name, "LTXVConcatAVLatent",
        cat(R"("video_latent": [")", video, R"(", 0], "audio_latent": [")", audio, "\", 0]"));
  }
  // The two latents that `nodes` call "both", taken apart.
  heddle::Results apart(const std::string& nodes) {
    return run(nodes + node("out", "LTXVSeparateAVLatent", R"("av_latent": ["both", 0])") +
                   look("look0", "out", 0) + ", " + look("look1", "out", 1),
               {"out.video_latent", "out.audio_latent"});
  }
  // "latent" is (2, 4, 6, 8): as sound, 6 wide and 8 long.
  static std::string cut(const std::string& name, int index, int amount) {
    return node(name, "LatentCut",
                cat(R"("samples": ["latent", 0], "dim": "x", "index": )", index, R"(, "amount": )",
                    amount));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pair_latents, PairFixture)

BOOST_AUTO_TEST_CASE(two_latents_are_one_and_two_again) {
  const std::string masked =
      node("drawn", "SetLatentNoiseMask", R"("samples": ["latent", 0], "mask": ["mask", 0])");
  const heddle::Results results = apart(masked + joined("both", "empty", "drawn"));
  BOOST_TEST(results.shape("out.video_latent", "samples") == (Shape{1, 4, 6, 8}));
  BOOST_TEST(results.floats("out.audio_latent", "samples") == goldens.floats("in.latent"));
  BOOST_TEST(results.floats("out.audio_latent", "noise_mask") == goldens.floats("in.mask"));
  // What has no mask is drawn anew.
  BOOST_TEST(results.floats("out.video_latent", "noise_mask") ==
             std::vector<float>(4 * 6 * 8, 1.0f));
}

BOOST_AUTO_TEST_CASE(other_sound_is_fitted_to_that_in_its_place) {
  const std::vector<float> all = goldens.floats("in.latent");
  const std::string pair = joined("first", "empty", "five") + cut("five", 0, 5);
  const heddle::Results longer = apart(pair + joined("both", "first", "latent"));
  BOOST_TEST(longer.shape("out.audio_latent", "samples") == (Shape{2, 4, 6, 5}));
  const heddle::Results shorter =
      apart(pair + cut("short", 0, 3) + joined("both", "first", "short"));
  std::vector<float> cut_off, padded;
  for (std::size_t row = 0; row < all.size() / 8; ++row)
    for (std::size_t x = 0; x < 5; ++x) {
      cut_off.push_back(all[row * 8 + x]);
      padded.push_back(x < 3 ? all[row * 8 + x] : 0.0f);
    }
  BOOST_TEST(longer.floats("out.audio_latent", "samples") == cut_off);
  BOOST_TEST(shorter.floats("out.audio_latent", "samples") == padded);
  const std::string other =
      node("other", "LatentCut", R"("samples": ["short", 0], "dim": "y", "index": 0, "amount": 2)");
  const std::string text = heddle::test::engine_refusal(
      [&] { apart(pair + cut("short", 0, 3) + other + joined("both", "first", "other")); });
  BOOST_TEST(text.find("audio_latent is (2, 4, 2, 3), that of the video (2, 4, 6, 5)") !=
                 std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(a_latent_is_as_large_as_its_pictures) {
  // Width, height, frames and count, as PreviewAny shows them.
  const auto size_of = [&](const std::string& type, const std::string& inputs) {
    std::string nodes =
        node("made", type, inputs) + node("size", "GetLatentSize", R"("latent": ["made", 0])");
    for (int i = 0; i < 4; ++i)
      nodes += cat(i > 0 ? ", " : "", "\"s", i,
                   R"(": {"class_type": "PreviewAny", "inputs": {"source": ["size", )", i, "]}}");
    const heddle::engine::Json shown = heddle::engine::parse_json(run(nodes, {}).ui(), "ui");
    std::vector<std::string> sides;
    for (int i = 0; i < 4; ++i)
      sides.push_back(shown.at(cat("s", i)).at("text").at(std::size_t{0}).as_string());
    return sides;
  };
  using Sides = std::vector<std::string>;
  BOOST_TEST((size_of("EmptyLatentImage", R"("width": 64, "height": 48, "batch_size": 3)") ==
              Sides{"8", "6", "1", "3"}));
  BOOST_TEST((size_of("EmptyMiniMaxH3LatentAV", R"("width": 64, "height": 96, "length": 6)") ==
              Sides{"4", "6", "7", "1"}));
}

BOOST_AUTO_TEST_CASE(a_clip_of_zeros_has_the_models_frames) {
  const auto sizes = [&](int length) {
    const heddle::Results results = apart(node(
        "both", "EmptyMiniMaxH3LatentAV", cat(R"("width": 64, "height": 96, "length": )", length)));
    return std::pair(results.shape("out.video_latent", "samples"),
                     results.shape("out.audio_latent", "samples"));
  };
  BOOST_TEST((sizes(5) == std::pair(Shape{1, 24, 2, 6, 4}, Shape{1, 32, 2, 8})));
  BOOST_TEST((sizes(6) == std::pair(Shape{1, 24, 7, 6, 4}, Shape{1, 32, 2, 37})));
  BOOST_TEST((sizes(124) == std::pair(Shape{1, 24, 37, 6, 4}, Shape{1, 32, 2, 207})));
}

BOOST_AUTO_TEST_CASE(what_is_no_pair_is_not_taken_apart_nor_drawn) {
  const std::string text = heddle::test::engine_refusal([&] {
    apart(joined("unused", "empty", "latent") +
          node("both", "LatentMultiply", R"("samples": ["latent", 0], "multiplier": 1)"));
  });
  BOOST_TEST(text.find("nothing to separate") != std::string::npos, text);
  const std::string drawn = heddle::test::engine_refusal([&] {
    run(joined("both", "empty", "latent") +
            "\"out\": " + ksampler(R"("latent_image": ["both", 0])") + ", " + kLook,
        {"out.LATENT"});
  });
  BOOST_TEST(drawn.find("pictures and sound") != std::string::npos, drawn);
}

BOOST_AUTO_TEST_SUITE_END()
