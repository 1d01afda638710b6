// LTXVAddLatentGuide against LTXVAddGuide, which ltxv_guides_test.cpp holds to PyTorch, with tiny
// models of LTX-Video; LTXVFreezeLatent and GetAudioLatentSize.
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;
using SmallShape = std::vector<std::int64_t>;

struct LatentGuides : PlacedFixture {
  const std::filesystem::path texts = tests_folder() / "plugins/goldens/ltxv/expected.safetensors";

  LatentGuides() {
    add("diffusion_models/flow", seeded_model("flow", false, "ltxv"));
    std::vector<FileTensor> tensors = seeded_model("flow", false, "ltxv_vae");
    for (FileTensor& tensor : tensors)
      if (tensor.name == "per_channel_statistics.std-of-means")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
    add("vae/ltxv", tensors);
  }
  static std::string node(const std::string& name, const std::string& type,
                          const std::string& inputs) {
    return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
  }
  // A latent of three frames, and pictures of its size: "first" and "nine"; "*_latent" of these.
  std::string sources(const std::string& one, const std::string& two) const {
    return cat(
        "{", loaded("flow"), R"(, "one": )", one, R"(, "two": )", two, ", ",
        node("vae", "VAELoader", R"("vae_name": "ltxv.safetensors")"),
        node("empty", "EmptyLTXVLatentVideo",
             R"("width": 128, "height": 64, "length": 17, "batch_size": 1)"),
        node("first", "EmptyImage",
             R"("width": 128, "height": 64, "batch_size": 1, "color": 4227264)"),
        node("nine", "EmptyImage", R"("width": 128, "height": 64, "batch_size": 9, "color": 255)"),
        node("tiny", "EmptyImage",
             R"("width": 64, "height": 32, "batch_size": 1, "color": 4227264)"),
        node("first_latent", "VAEEncode", R"("pixels": ["first", 0], "vae": ["vae", 0])"),
        node("nine_latent", "VAEEncode", R"("pixels": ["nine", 0], "vae": ["vae", 0])"),
        node("tiny_latent", "VAEEncode", R"("pixels": ["tiny", 0], "vae": ["vae", 0])"));
  }
  std::string sources() const { return sources(text("one", texts), text("two", texts)); }
  // "name" adds a guide to what `from` gave; `guide`: its inputs.
  static std::string guided(const std::string& type, const std::string& name,
                            const std::string& from, const std::string& guide) {
    const std::string before =
        from == "empty"
            ? R"("positive": ["one", 0], "negative": ["two", 0], "latent": ["empty", 0])"
            : cat(R"("positive": [")", from, R"(", 0], "negative": [")", from,
                  R"(", 1], "latent": [")", from, R"(", 2])");
    return node(name, type, cat(before, R"(, "vae": ["vae", 0], )", guide));
  }
  static std::string by_latent(const std::string& name, const std::string& from,
                               const std::string& latent, int index, const char* strength) {
    return guided("LTXVAddLatentGuide", name, from,
                  cat(R"("guiding_latent": [")", latent, R"(", 0], "latent_idx": )", index,
                      R"(, "strength": )", strength));
  }
  static std::string by_picture(const std::string& name, const std::string& from,
                                const std::string& image, int frame, const char* strength) {
    return guided("LTXVAddGuide", name, from,
                  cat(R"("image": [")", image, R"(", 0], "frame_idx": )", frame,
                      R"(, "strength": )", strength));
  }
  // Two guided steps of "b" to "out".
  static std::string drawn() {
    return cat(
        node("out", "KSampler",
             R"("model": ["model", 0], "seed": 1, "steps": 2, "cfg": 2.0, "sampler_name": "euler",
             "scheduler": "simple", "positive": ["b", 0], "negative": ["b", 1], "latent_image": ["b", 2], "denoise": 1.0)"),
        R"("look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  std::vector<float> end_of(const std::string& guides) {
    return run_whole(cat(sources(), guides, drawn()), {"out.LATENT"})
        .floats("out.LATENT", "samples");
  }
  static std::string seen(const std::string& name, int output) {
    return cat(R"("look": {"class_type": "test.look", "inputs": {"value": [")", name, "\", ",
               output, "]}}}");
  }
  std::string refusal(const std::string& nodes, int output = 2) {
    return engine_refusal(
        [&] { run_whole(cat(sources(), nodes, seen("out", output)), {"out.latent"}); });
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_latent_guides, LatentGuides)

BOOST_AUTO_TEST_CASE(latents_guide_as_the_pictures_do_that_they_were_made_of) {
  const std::vector<float> by_latents = end_of(by_latent("a", "empty", "first_latent", 2, "0.75") +
                                               by_latent("b", "a", "nine_latent", 0, "1.0"));
  BOOST_TEST((by_latents == end_of(by_picture("a", "empty", "first", 9, "0.75") +
                                   by_picture("b", "a", "nine", 0, "1.0"))));
  // Before the video it is another one.
  const std::vector<float> before = end_of(by_latent("a", "empty", "first_latent", 2, "0.75") +
                                           by_latent("b", "a", "nine_latent", -2, "1.0"));
  BOOST_TEST(relative_error(before, by_latents) > 1e-3);
}

BOOST_AUTO_TEST_CASE(a_smaller_latent_lies_on_every_other_place) {
  const Results results = run_whole(
      cat(sources(), by_latent("out", "empty", "tiny_latent", 0, "0.75"),
          R"("other": {"class_type": "test.look", "inputs": {"value": ["tiny_latent", 0]}}, )",
          seen("out", 2)),
      {"out.latent", "tiny_latent.LATENT"});
  BOOST_TEST((results.shape("out.latent", "samples") == SmallShape{1, 128, 4, 2, 4}));
  BOOST_TEST((results.shape("out.latent", "noise_mask") == SmallShape{1, 1, 4, 2, 4}));
  const std::vector<float> samples = results.floats("out.latent", "samples"),
                           mask = results.floats("out.latent", "noise_mask"),
                           tiny = results.floats("tiny_latent.LATENT", "samples");
  for (std::size_t c = 0; c < 128; ++c)
    for (std::size_t y = 0; y < 2; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        if (const float wanted = y % 2 == 0 && x % 2 == 0 ? tiny[c * 2 + x / 2] : 0.0f;
            samples[(c * 4 + 3) * 8 + y * 4 + x] != wanted)
          BOOST_ERROR("channel " << c << ", row " << y << ", column " << x);
  for (std::size_t i = 0; i < 24; ++i) BOOST_TEST(mask[i] == 1.0f);
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 4; ++x)
      BOOST_TEST(mask[24 + y * 4 + x] == (y % 2 == 0 && x % 2 == 0 ? 0.25f : -1.75f));
}

BOOST_AUTO_TEST_CASE(guides_that_do_not_fit_are_refused) {
  says(refusal(by_latent("out", "empty", "nine_latent", 2, "1.0")),
       {"latent_idx", "2 frames from frame 2", "3"});
  const std::string odd = node("odd", "EmptyLTXVLatentVideo",
                               R"("width": 96, "height": 64, "length": 1, "batch_size": 1)");
  says(refusal(odd + by_latent("out", "empty", "odd", 0, "1.0")),
       {"guiding_latent", "3 x 2", "4 x 2"});
  const std::string narrow = node("narrow", "EmptyLTXVLatentVideo",
                                  R"("width": 64, "height": 64, "length": 1, "batch_size": 1)");
  says(refusal(narrow + by_latent("out", "empty", "narrow", 0, "1.0")),
       {"guiding_latent", "the same whole number"});
  says(
      refusal(node("picture", "EmptyLatentImage", R"("width": 64, "height": 64, "batch_size": 1)") +
              by_latent("out", "empty", "picture", 0, "1.0")),
      {"not (batch, channels, frames, height, width)"});
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  const std::string random =
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})";
  Engine::Data told(options);
  check_inference(told,
                  cat(sources(random, random), by_latent("a", "empty", "first_latent", 2, "0.75"),
                      by_latent("b", "a", "tiny_latent", -1, "1.0"), drawn()));
}

BOOST_AUTO_TEST_CASE(a_frozen_latent_has_a_mask_of_zeros) {
  const Results results =
      run_whole(cat(sources(), node("out", "LTXVFreezeLatent", R"("latent": ["nine_latent", 0])"),
                    seen("out", 0)),
                {"out.latent"});
  BOOST_TEST((results.shape("out.latent", "noise_mask") == SmallShape{1, 1, 2, 1, 1}));
  BOOST_TEST((results.floats("out.latent", "noise_mask") == std::vector<float>{0, 0}));
  BOOST_TEST((results.shape("out.latent", "samples") == SmallShape{1, 128, 2, 2, 4}));
  const std::string flat = node("flat", "EmptyLatentAudio", R"("seconds": 1.0, "batch_size": 1)");
  says(refusal(flat + node("out", "LTXVFreezeLatent", R"("latent": ["flat", 0])"), 0), {"3 axes"});
}

BOOST_AUTO_TEST_CASE(latents_of_sound_have_a_length_and_channels) {
  const auto numbers = [&](const std::string& latent) {
    std::string looks;
    for (int i = 0; i < 3; ++i)
      looks += cat(R"("look)", i,
                   R"(": {"class_type": "PreviewAny", "inputs": {"source": ["size", )", i, "]}}, ");
    const Results results =
        run_whole(cat("{", latent, node("size", "GetAudioLatentSize", R"("latent": ["made", 0])"),
                      looks, R"("end": {"class_type": "PreviewAny", "inputs": {"source": 1}}})"),
                  {});
    const engine::Json ui = engine::parse_json(results.ui(), "ui");
    std::string all;
    for (int i = 0; i < 3; ++i)
      all += ui.at(cat("look", i)).at("text").at(std::size_t{0}).as_string() + " ";
    return all;
  };
  write_safetensors(folder / "sounds.safetensors", {seeded_tensor("waves", {2, 32, 2, 25}),
                                                    seeded_tensor("spectra", {1, 8, 25, 16}),
                                                    seeded_tensor("short", {1, 8, 2, 16})});
  const auto given = [&](const char* name, const char* sound) {
    return node(name, "test.latent",
                cat(R"("path": ")", (folder / "sounds.safetensors").string(), R"(", "name": ")",
                    sound, "\""));
  };
  BOOST_TEST(numbers(given("made", "waves")) == "25 2 2 ");
  BOOST_TEST(numbers(given("made", "spectra")) == "25 1 1 ");
  BOOST_TEST(numbers(given("made", "short")) == "2 1 1 ");
  // 44100 samples a second, 2048 of a cell, an even number of cells.
  BOOST_TEST(numbers(node("made", "EmptyLatentAudio", R"("seconds": 2.0, "batch_size": 3)")) ==
             "44 1 3 ");
  BOOST_TEST(numbers(given("sound", "spectra") +
                     node("video", "EmptyLTXVLatentVideo",
                          R"("width": 64, "height": 64, "length": 9, "batch_size": 1)") +
                     node("made", "LTXVConcatAVLatent",
                          R"("video_latent": ["video", 0], "audio_latent": ["sound", 0])")) ==
             "25 1 1 ");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
