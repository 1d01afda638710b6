// Videos by pieces through tiny autoencoders of LTX-Video 0.9 and LTX 2: the numbers are those of
// the video as a whole, and a longer one takes no more of a device.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/ltxv_pieces_fixture.h"
#include "tests/support/model_probe.h"

namespace heddle::test {
namespace {

// 90 dB below what is there.
constexpr double kPiecesTolerance = 3.16e-5;
double worst(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_pieces, LtxvPieces)

// Two frames of the latent are less than a stage looks ahead, 14 are several pieces.
BOOST_AUTO_TEST_CASE(decoding_by_pieces_equals_decoding_as_a_whole) {
  for (const std::string version : kVersions)
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
  for (const std::string version : kVersions) {
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
