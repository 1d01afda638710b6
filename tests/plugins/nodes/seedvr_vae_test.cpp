// Pictures and videos through a tiny autoencoder of SeedVR2 whose weights follow from
// their names, against what a PyTorch module of our own makes of the same ones
// (../goldens/make_seedvr_vae_goldens.py). It codes a video at once, so these hold the chunks as
// well.
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/model_probe.h"

namespace heddle::test {
namespace {

using engine::cat;

// Some thirty convolutions in f32.
constexpr double kSeedvrVaeTolerance = 5e-6;

struct SeedvrVaeFixture : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/seedvr_vae/expected.safetensors";
  TensorFile expected{golden};

  SeedvrVaeFixture() { add("vae/seedvr2_ema_vae_fp16", seeded_model("vae", false, "seedvr_vae")); }

  std::string flow(const std::string& type, const char* in, const std::string& name,
                   const char* port, const char* more = "") const {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": )",
               R"("seedvr2_ema_vae_fp16.safetensors"}}, "in": {"class_type": ")", in,
               R"(", "inputs": {"path": ")", golden.string(), R"(", "name": ")", name,
               R"("}}, "out": {"class_type": ")", type, R"(", "inputs": {"vae": ["vae", 0], ")",
               port, R"(": ["in", 0])", more, "}}, ", kLook, "}");
  }
  std::vector<float> in_latent_units(const std::string& name, double factor) const {
    std::vector<float> numbers = expected.floats(name);
    for (float& number : numbers) number = float(number * factor);
    return numbers;
  }
  static void hold(const std::vector<float>& made, const std::vector<float>& wanted,
                   const std::string& what) {
    const double error = relative_error(made, wanted);
    double squares = 0;
    for (std::size_t i = 0; i < std::min(made.size(), wanted.size()); ++i)
      squares += std::pow(double(made[i]) - wanted[i], 2);
    const double decibels = -10 * std::log10(squares / double(made.size()));
    BOOST_TEST_MESSAGE(what << ": relative error " << error << ", " << decibels << " dB");
    BOOST_TEST(error < kSeedvrVaeTolerance, what << ": relative error " << error);
    BOOST_TEST(decibels > 90, what << ": " << decibels << " dB");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(seedvr_vae, SeedvrVaeFixture)

BOOST_AUTO_TEST_CASE(pictures_equal_those_of_pytorch) {
  ModelProbe probe;
  const std::filesystem::path model = folder / "models/vae/seedvr2_ema_vae_fp16.safetensors";
  hold(
      probe.call({model, "vae.decoder", "", golden, "picture."}).floats("model.outputs", "image.0"),
      expected.floats("picture.image"), "image");
  const heddle::Results encoded =
      probe.call({model, "vae.encoder", "", golden, "picture_encoder."});
  for (const std::string name : {"mean", "logvar"})
    hold(encoded.floats("model.outputs", name + ".0"), expected.floats("picture_encoder." + name),
         name);
}

BOOST_AUTO_TEST_CASE(frames_of_latents_by_chunks_equal_whole_videos_of_pytorch) {
  for (const std::string clip : {"1.", "5.", "13."}) {
    const heddle::Results results =
        run_whole(flow("VAEDecode", "test.latent", clip + "latent", "samples"), {"out.IMAGE"});
    std::vector<float> wanted = expected.floats(clip + "decoded");
    for (float& number : wanted) number = std::clamp(number, 0.0f, 1.0f);
    hold(results.floats("out.IMAGE"), wanted, clip);
    const std::vector<std::int64_t> shape = results.shape("out.IMAGE");
    BOOST_TEST(shape == expected.at(clip + "decoded").shape, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_latent_of_a_video_by_chunks_equals_that_of_pytorch) {
  for (const std::string clip : {"1.", "5.", "13."}) {
    const heddle::Results results =
        run_whole(flow("VAEEncode", "test.image", clip + "frames", "pixels"), {"out.LATENT"});
    hold(results.floats("out.LATENT", "samples"), in_latent_units(clip + "mean", 0.9152), clip);
  }
}

// As in ComfyUI tiles are of all frames, whatever length is asked for.
BOOST_AUTO_TEST_CASE(tiles_are_not_cut_along_the_frames) {
  constexpr const char* kShort =
      R"(, "tile_size": 512, "overlap": 64, "temporal_size": 8, "temporal_overlap": 4)";
  const heddle::Results decoded = run_whole(
      flow("VAEDecodeTiled", "test.latent", "13.latent", "samples", kShort), {"out.IMAGE"});
  std::vector<float> wanted = expected.floats("13.decoded");
  for (float& number : wanted) number = std::clamp(number, 0.0f, 1.0f);
  hold(decoded.floats("out.IMAGE"), wanted, "decoded");
  const heddle::Results encoded = run_whole(
      flow("VAEEncodeTiled", "test.image", "13.frames", "pixels", kShort), {"out.LATENT"});
  hold(encoded.floats("out.LATENT", "samples"), in_latent_units("13.mean", 0.9152), "encoded");
}

// A level that the file's names tell of and that has nothing else.
BOOST_AUTO_TEST_CASE(a_file_with_an_empty_level_is_refused) {
  std::vector<FileTensor> damaged = seeded_model("vae", false, "seedvr_vae");
  damaged.push_back({"decoder.up_blocks.9.some.weight", "F32", {1}, bytes_of_floats({0})});
  add("vae/seedvr2_ema_vae_fp16", damaged);
  const std::string said = engine_refusal(
      [&] { run_whole(flow("VAEDecode", "test.latent", "5.latent", "samples"), {"out.IMAGE"}); });
  BOOST_TEST(said.find("has no blocks") != std::string::npos, said);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
