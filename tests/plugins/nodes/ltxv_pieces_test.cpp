// Videos by pieces through tiny autoencoders of LTX-Video 0.9 and LTX 2: the numbers are those of
// the video as a whole, and a longer one takes no more of a device.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/model_probe.h"

namespace heddle::test {
namespace {

using engine::cat;

// 90 dB below what is there.
constexpr double kPiecesTolerance = 3.16e-5;
// "0.9.0" halves sizes by strides, "0.9.1" and "0.9.5" are told a noise level, the first draws in
// its residual blocks, too; the decoder of "2.3" is causal, the others look ahead.
constexpr const char* kPieceVersions[] = {"0.9.0", "0.9.1", "0.9.5", "2", "2.3"};
constexpr const char* kCausalConfig =
    R"({\"vae\": {\"causal_decoder\": true, \"decoder_spatial_padding_mode\": \"zeros\"}})";

struct LtxvPieces : PlacedFixture {
  const std::filesystem::path given = folder / "given.safetensors";

  LtxvPieces() {
    for (const std::string version : kPieceVersions) {
      const bool is_first = version == "0.9.0";
      std::vector<FileTensor> tensors = seeded_model(is_first ? "flow" : version, false,
                                                     is_first ? "ltxv_vae" : "ltxv_later_vae");
      for (FileTensor& tensor : tensors)
        if (tensor.name.ends_with("std-of-means"))
          tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      if (version == "0.9.1" || version == "0.9.5")
        tensors.push_back(
            {"decoder.timestep_scale_multiplier", "F32", {}, bytes_of_floats({1000.0f})});
      FileMetadata metadata;
      if (version == "2.3") metadata.push_back({"config", kCausalConfig});
      std::filesystem::create_directories(folder / "models/vae");
      write_safetensors(file(version), tensors, metadata);
    }
    std::vector<FileTensor> tensors;
    for (const std::int64_t frames : {2, 14})
      for (const std::int64_t channels : {8, 128})
        tensors.push_back(numbers(cat("z.", channels, ".", frames), {1, channels, frames, 2, 2}));
    tensors.push_back(numbers("pictures", {42, 64, 32, 3}, 0.5f, 0.5f));
    tensors.push_back(numbers("clip.image", {42, 64, 32, 3}, 1.0f, 0.0f, "pictures"));
    write_safetensors(given, tensors);
  }

  std::filesystem::path file(const std::string& version) const {
    return folder / "models/vae" / (version + ".safetensors");
  }
  static FileTensor numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                            float factor = 1.0f, float offset = 0.0f,
                            const std::string& seed = "") {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    const std::uint32_t start = seeded::hash_of(seed.empty() ? name : seed);
    return {name, "F32", shape, seeded::number_bytes(start, std::size_t(count), factor, offset)};
  }
  std::string input(const char* type, const std::string& name) const {
    return cat(R"({"class_type": ")", type, R"(", "inputs": {"path": ")", given.string(),
               R"(", "name": ")", name, R"("}})");
  }
  static std::string flow(const std::string& version, const std::string& type,
                          const std::string& in, const std::string& more,
                          const std::string& hints = "") {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", version,
               R"(.safetensors"}}, "in": )", in, R"(, "out": {"class_type": ")", type,
               R"(", "inputs": {"vae": ["vae", 0], )", more, "}", hints, "}, ", kLook, "}");
  }
  std::string decode(const std::string& version, int frames, bool whole = false,
                     const std::string& hints = "") const {
    // A tile that holds all of a video is decoded at once.
    const char* more =
        whole
            ? R"("samples": ["in", 0], "tile_size": 512, "overlap": 64, "temporal_size": 4096, "temporal_overlap": 8)"
            : R"("samples": ["in", 0])";
    return flow(version, whole ? "VAEDecodeTiled" : "VAEDecode",
                input("test.latent", cat("z.", version == "0.9.0" ? 128 : 8, ".", frames)), more,
                hints);
  }
  std::string encode(const std::string& version, const std::string& hints = "") const {
    return flow(version, "VAEEncode", input("test.image", "pictures"), R"("pixels": ["in", 0])",
                hints);
  }
  static double worst(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      most = std::max(most, std::abs(double(a[i]) - b[i]));
    return most;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_pieces, LtxvPieces)

// Two frames of the latent are less than a stage looks ahead, 14 are several pieces.
BOOST_AUTO_TEST_CASE(decoding_by_pieces_equals_decoding_as_a_whole) {
  for (const std::string version : kPieceVersions)
    for (const int frames : {2, 14}) {
      const Results made = run_whole(decode(version, frames), {"out.IMAGE"});
      const std::vector<float> pieces = made.floats("out.IMAGE"),
                               whole = run_whole(decode(version, frames, true), {"out.IMAGE"})
                                           .floats("out.IMAGE");
      BOOST_TEST(made.shape("out.IMAGE") == (std::vector<std::int64_t>{8 * frames - 7, 64, 64, 3}),
                 boost::test_tools::per_element());
      const double error = relative_error(pieces, whole);
      BOOST_TEST_MESSAGE(version << ", " << frames << " frames: relative error " << error
                                 << ", at most " << worst(pieces, whole));
      BOOST_TEST(error < kPiecesTolerance, version << ": relative error " << error);
      BOOST_TEST(worst(pieces, whole) < kPiecesTolerance, version << ", the worst number");
    }
}

// 42 pictures are six frames of the latent, and one too many.
BOOST_AUTO_TEST_CASE(encoding_by_pieces_equals_encoding_as_a_whole) {
  ModelProbe probe;
  for (const std::string version : kPieceVersions) {
    const Results made = run_whole(encode(version), {"out.LATENT"});
    const std::vector<float> pieces = made.floats("out.LATENT", "samples"),
                             whole = probe.call({file(version), "vae.encoder", "", given, "clip."})
                                         .floats("model.outputs", "mean.0");
    BOOST_TEST(made.shape("out.LATENT", "samples").at(2) == 6);
    // What the whole makes of the picture too many, where it makes something, is left out.
    const std::size_t channels = version == "0.9.0" ? 128 : 8, cell = 2, kept = 6 * cell,
                      all = whole.size() / channels;
    std::vector<float> wanted;
    for (std::size_t c = 0; c < channels; ++c)
      wanted.insert(wanted.end(), whole.begin() + std::ptrdiff_t(c * all),
                    whole.begin() + std::ptrdiff_t(c * all + kept));
    const double error = relative_error(pieces, wanted);
    BOOST_TEST_MESSAGE(version << ": relative error " << error);
    BOOST_TEST(error < kPiecesTolerance, version << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes) {
  for (const bool is_latent : {false, true}) {
    const auto made = [&](EngineOptions options, const std::string& hints) {
      Engine engine(std::move(options));
      const std::string output = is_latent ? "out.LATENT" : "out.IMAGE";
      return engine
          .start(engine.parse(is_latent ? encode("2", hints) : decode("2", 14, false, hints)),
                 {{}, {output}})
          .wait()
          .floats(output, is_latent ? "samples" : "");
    };
    const std::vector<float> alone = made(options_for({"cpu:0"}), "");
    BOOST_TEST(!alone.empty());
    BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}), "")), "fake");
    BOOST_TEST(are_equal(alone, made(options_for({"fake:0", "fake:1"}),
                                     R"(, "parallel": "layers", "device": "fake:0,fake:1")")),
               "layers");
  }
}

BOOST_AUTO_TEST_CASE(pieces_are_told_as_they_are_run, *boost::unit_test::label("long")) {
  Engine::Data checked{options_for({"cpu:0"})};
  for (const char* version : {"0.9.1", "2", "2.3"}) {
    for (const int cells : {1, 2, 12})
      check_inference(
          checked,
          flow(
              version, "VAEDecode",
              cat(R"({"class_type": "RandomLatent", "inputs": {"width": 16, "height": 16, "channels": 8, "length": )",
                  1 + 4 * (cells - 1), R"(, "seed": 3}})"),
              R"("samples": ["in", 0])"));
    for (const int count : {1, 9, 42})
      check_inference(
          checked,
          flow(
              version, "VAEEncode",
              cat(R"({"class_type": "EmptyImage", "inputs": {"width": 64, "height": 32, "color": 255, "batch_size": )",
                  count, "}}"),
              R"("pixels": ["in", 0])"));
  }
}

BOOST_AUTO_TEST_CASE(progress_is_told_piece_by_piece) {
  Engine engine(options_for({"cpu:0"}));
  std::atomic<int> told = 0;
  const auto observe = [&](const Event& event) {
    if (event.kind == Event::Kind::node_progress && event.node == "out") ++told;
  };
  engine.start(engine.parse(decode("2", 14)), {.observer = observe, .fetch = {"out.IMAGE"}}).wait();
  BOOST_TEST(told >= 8);
}

// But for the frames themselves and the latent, which grow, a longer video takes no more.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_number_of_frames,
                     *boost::unit_test::label("long")) {
  Engine fake(options_for({"fake:0"}));
  const auto need = [&](const char* version, int cells) {
    const std::string text = flow(
        version, "VAEDecode",
        cat(R"({"class_type": "RandomLatent", "inputs": {"width": 32, "height": 16, "channels": 8, "length": )",
            1 + 4 * (cells - 1), R"(, "seed": 3}})"),
        R"("samples": ["in", 0])");
    const engine::Json told =
        engine::parse_json(fake.plan_min_memory(fake.parse(text), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        for (const engine::Json& node : told.at(i).at("nodes").as_array())
          if (node.at("node").as_string() == "out")
            return std::int64_t(node.at("all_bytes").as_uint64());
    throw std::logic_error("nothing is told of fake:0");
  };
  for (const char* version : {"2", "2.3"}) {
    const std::int64_t frame = 4 * 128 * 64 * 3, cell = 4 * 8 * 4 * 2,
                       growth = need(version, 45) - need(version, 30);
    BOOST_TEST_MESSAGE(version << ", 30 of the latent: " << need(version, 30)
                               << ", 15 more: " << growth);
    // Of what is given out in small pieces a 31st more is counted.
    BOOST_TEST(31 * growth <= 32 * 15 * (8 * frame + 2 * cell), growth << " bytes");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
