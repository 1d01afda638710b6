// MiniMaxH3ReferenceToVideo, and guides of sound, from pictures, videos and sounds to the latents
// of a video and its sound, over models whose weights follow from their names, against PyTorch
// (../goldens/make_minimax_reference_goldens.py); divided over devices, the same bytes.
#include <cmath>

#include "engine/graph/model.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {
namespace {

using engine::cat;

// Of a device that does not hold all weights.
constexpr std::uint64_t kReferenceBudget = 30 << 20;

struct MinimaxReferences : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens";
  const std::filesystem::path golden = goldens / "minimax_references/expected.safetensors";
  TensorFile expected{golden};

  MinimaxReferences() {
    input_dir = folder / "pictures";
    std::filesystem::create_directories(input_dir);
    for (const char* picture : {"minimax_references/wide.png", "minimax_keyframes/one.png"})
      std::filesystem::copy_file(goldens / picture,
                                 input_dir / std::filesystem::path(picture).filename());
    add("diffusion_models/whole", seeded_model("whole", false, "minimax"));
    add("text_encoders/qwen3vl_32b", seeded_model("text", false, "minimax_keyframes"));
    add("vae/h3", h3_video_tensors(false));
    add("vae/sound", h3_sound_tensors());
  }
  std::string sound(const char* name, int rate) const {
    return cat(R"({"class_type": "test.sound", "inputs": {"name": ")", name, R"(", "rate": )", rate,
               R"(, "path": ")", h3_sound_golden().string(), R"("}})");
  }
  // more: inputs of MiniMaxH3ReferenceToVideo; guide: of MiniMaxH3AddGuide behind it, or nothing;
  // hints: of the sampler.
  std::string flow(const std::string& more, const std::string& guide = "",
                   const std::string& hints = "") const {
    return cat(
        "{", loaded("whole"),
        R"(, "film": {"class_type": "test.image", "inputs": {"name": "frames", "path": ")",
        golden.string(), R"("}},
      "films": {"class_type": "RepeatImageBatch", "inputs": {"image": ["film", 0], "amount": 3}},
      "short": {"class_type": "ImageFromBatch", "inputs": {"image": ["film", 0], "batch_index": 0, "length": 5}},
      "plain": )",
        sound("sound.waveform", 32000), R"(, "fast": )", sound("fast.waveform", 44100),
        R"(, "told": {"class_type": "MiniMaxH3ReferenceToVideo", "inputs": {"clip": ["clip", 0], "vae": ["vae", 0],
        "audio_vae": ["sounds", 0], "prompt": "the fox of <Picture 1> runs as in <Video 1>", "width": 96, "height": 64, "length": 22,
        "ref_image_size": "match")",
        more, "}}, ", drawn(guide, hints));
  }
  // What is behind the node "told", with the loaders and pictures that it links.
  static std::string drawn(const std::string& guide, const std::string& hints) {
    const std::string guided =
        guide.empty()
            ? ""
            : cat(R"("guided": {"class_type": "MiniMaxH3AddGuide", "inputs": {"positive": ["told", 0], "latent": ["told", 1],
        "vae": ["vae", 0], "image": ["one", 0], "frame_idx": 7}}, "heard": {"class_type": "MiniMaxH3AddGuide", "inputs": {
        "positive": ["guided", 0], "latent": ["told", 1], )",
                  guide, "}}, ");
    return cat(
        guided,
        R"("clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "qwen3vl_32b.safetensors", "type": "minimax", "device": "default"}},
      "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
      "sounds": {"class_type": "VAELoader", "inputs": {"vae_name": "sound.safetensors"}},
      "wide": {"class_type": "LoadImage", "inputs": {"image": "wide.png"}},
      "one": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
      "first": {"class_type": "test.first", "inputs": {"list": ["told", 0]}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": ["model", 0], "conditioning": [")",
        guide.empty() ? "told" : "heard", R"(", 0]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.95, 0.7, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["told", 1])",
        hints, R"(}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 0], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}},
      "see": {"class_type": "test.look", "inputs": {"value": ["first", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  }
  // What is known of the node's output "positive" before a run of a workflow with pictures of such
  // sizes, of four videos, and of the sizing.
  engine::ValueSpec told(const std::string& picture, const std::string& video,
                         const char* sizing) const {
    const auto pictures = [](const char* name, const std::string& size) {
      return cat("\"", name, R"(": {"class_type": "EmptyImage", "inputs": {"color": 0, )", size,
                 "}}, ");
    };
    std::string text = flow(
        R"(, "ref_images.ref_image_0": ["pictures", 0], "ref_videos.ref_video_2": ["videos", 0],
        "ref_video_audios.ref_video_audio_2": ["silence", 0])");
    const auto replace = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace(R"("width": 96, "height": 64, "length": 22)",
            R"("width": 1344, "height": 768, "length": 107)");
    replace("match", sizing);
    replace(
        "{",
        cat("{", pictures("pictures", picture), pictures("videos", video),
            R"("silence": {"class_type": "EmptyAudio", "inputs": {"duration": 2.0, "sample_rate": 44100, "channels": 2}}, )"));
    Engine::Data planner(options_for({"cpu:0"}));
    const Workflow::Data workflow{engine::parse_workflow(text, "workflow.json"),
                                  planner.plugins.catalog};
    const Ready ready = planner.prepare(workflow, {Describe::strictly});
    for (const engine::NodeIndex n : ready.graph.order)
      if (ready.graph.nodes[n].id == "told") return ready.inferred.nodes[n].outputs.at(0);
    return {};
  }
  static constexpr const char* kMixed =
      R"(, "ref_images.ref_image_0": ["wide", 0], "ref_images.ref_image_1": ["one", 0], "ref_videos.ref_video_0": ["films", 0],
        "ref_video_audios.ref_video_audio_0": ["fast", 0], "ref_audios.ref_audio_0": ["plain", 0])";
  static constexpr const char* kShort =
      R"(, "ref_images.ref_image_3": ["wide", 0], "ref_videos.ref_video_1": ["short", 0], "ref_audios.ref_audio_2": ["plain", 0])";
  static constexpr const char* kHeard =
      R"("audio_vae": ["sounds", 0], "audio": ["plain", 0], "frame_idx": -1)";

  static Results run(Engine& engine, const std::string& text, std::vector<std::string> keep) {
    return engine.start(engine.parse(text), {{}, std::move(keep)}).wait();
  }
  void equals_pytorch(const std::string& text, const std::string& wanted) {
    Engine engine(options_for({"cpu:0"}));
    const Results results =
        run(engine, text, {"first.value", "parts.video_latent", "parts.audio_latent"});
    const double states = relative_error(results.floats("first.value", "cross_attn"),
                                         expected.floats(wanted + ".states"));
    BOOST_TEST_MESSAGE(wanted << ": states, relative error " << states);
    BOOST_TEST(states < 1e-4, wanted << ": states, relative error " << states);
    for (const auto& [part, least] : {std::pair("video", 70.0), std::pair("audio", 60.0)}) {
      const double error = relative_error(results.floats(cat("parts.", part, "_latent"), "samples"),
                                          expected.floats(cat(wanted, ".", part)));
      BOOST_TEST_MESSAGE(wanted << "." << part << ": " << -20 * std::log10(error) << " dB");
      BOOST_TEST(error < std::pow(10.0, -least / 20), wanted << "." << part << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_references, MinimaxReferences)

BOOST_AUTO_TEST_CASE(pictures_videos_and_sounds_equal_pytorch) {
  equals_pytorch(flow(kMixed), "mixed");
}

BOOST_AUTO_TEST_CASE(guides_behind_references_equal_pytorch, *boost::unit_test::label("long")) {
  equals_pytorch(flow(kShort, kHeard), "guided");
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes, *boost::unit_test::label("long")) {
  hold([&](const std::string& hints) { return flow(kMixed, "", hints); }, {"layers", "sequence"},
       {"tensor"}, kReferenceBudget, 24 * 7 * 4 * 6);
}

BOOST_AUTO_TEST_CASE(calls_with_references_are_told_before_a_run) {
  std::string text =
      flow(R"(, "ref_images.ref_image_0": ["wide", 0], "ref_videos.ref_video_0": ["films", 0],
        "ref_video_audios.ref_video_audio_0": ["fast", 0])",
           R"("audio_vae": ["sounds", 0], "audio": ["plain", 0], "frame_idx": 4)");
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    BOOST_TEST_REQUIRE((at != text.npos), from);
    text.replace(at, from.size(), to);
  };
  const std::string silence =
      R"({"class_type": "EmptyAudio", "inputs": {"duration": 0.1, "sample_rate": 44100, "channels": 1}})";
  replace(sound("sound.waveform", 32000), silence);
  replace(sound("fast.waveform", 44100), silence);
  replace(R"("image": ["film", 0], "amount": 3)", R"("image": ["one", 0], "amount": 23)");
  Engine::Data planner(options_for({"cpu:0"}));
  check_inference(planner, text);
}

BOOST_AUTO_TEST_CASE(sizes_are_those_of_comfyui) {
  using Sides = std::vector<std::int64_t>;
  struct Case {
    const char *picture, *video, *sizing;
    Sides shown, film;
  };
  for (const Case& one : {Case{R"("width": 4000, "height": 3000, "batch_size": 1)",
                               R"("width": 1920, "height": 1080, "batch_size": 200)",
                               "match",
                               {1, 24, 1, 54, 74},
                               {1, 24, 32, 48, 84}},
                          Case{R"("width": 4000, "height": 3000, "batch_size": 2)",
                               R"("width": 640, "height": 360, "batch_size": 38)",
                               "max",
                               {1, 24, 1, 128, 170},
                               {1, 24, 7, 22, 40}},
                          Case{R"("width": 100, "height": 20, "batch_size": 1)",
                               R"("width": 1080, "height": 1920, "batch_size": 5)",
                               "match",
                               {1, 24, 1, 2, 6},
                               {1, 24, 2, 84, 48}}}) {
    const engine::ValueSpec spec = told(one.picture, one.video, one.sizing);
    const auto shape = [&](const char* path) {
      const auto found = spec.tensors.find(path);
      BOOST_TEST_REQUIRE((found != spec.tensors.end()), path);
      return Sides(found->second.shape, found->second.shape + found->second.rank);
    };
    BOOST_TEST(shape("0.reference_latents.0.samples") == one.shown,
               boost::test_tools::per_element());
    BOOST_TEST(shape("0.reference_latents.1.samples") == one.film,
               boost::test_tools::per_element());
    BOOST_TEST((shape("0.reference_sounds.0.samples") == Sides{1, 32, 2, 80}));
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_shown_is_refused) {
  Engine engine(options_for({"cpu:0"}));
  const auto says = [&](const std::string& text, const char* words) {
    const std::string refusal = engine_refusal([&] { run(engine, text, {"told.positive"}); });
    BOOST_TEST(refusal.find(words) != std::string::npos,
               "'" << words << "' is not in: " << refusal);
  };
  std::string brief = flow(R"(, "ref_videos.ref_video_0": ["short", 0])");
  brief.replace(brief.find("\"length\": 5"), 11, "\"length\": 3");
  says(brief, "ref_videos.ref_video_0: the video has 3 pictures");
  says(flow(R"(, "ref_images.ref_image_9": ["one", 0])"), "at most nine pictures");
  says(flow(R"(, "ref_audios.ref_audio_0": ["one", 0])"), "ref_audios.ref_audio_0");
  std::string other = flow(R"(, "ref_audios.ref_audio_0": ["plain", 0])");
  other.replace(other.find("\"audio_vae\": [\"sounds\""), 22, "\"audio_vae\": [\"vae\"");
  says(other, "audio_vae: sounds are shown");
  const std::string guide = flow("", R"("audio": ["plain", 0], "frame_idx": -1)");
  const std::string refusal = engine_refusal([&] { run(engine, guide, {"heard.positive"}); });
  BOOST_TEST(refusal.find("audio_vae: nothing is linked") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_CASE(what_goes_unheard_is_warned_of) {
  std::vector<std::string> told;
  Engine engine(options_for({"cpu:0"}));
  const auto observe = [&](const Event& event) {
    if (event.kind == Event::Kind::warning) told.emplace_back(event.text);
  };
  engine
      .start(engine.parse(flow(R"(, "ref_video_audios.ref_video_audio_1": ["fast", 0],
        "ref_audios.ref_audio_0": ["plain", 0])")),
             {observe, {"told.positive"}})
      .wait();
  BOOST_TEST_REQUIRE(told.size() == 2u);
  BOOST_TEST(told[0].find("no video of this number is linked") != std::string::npos, told[0]);
  BOOST_TEST(told[1].find("only sounds are linked") != std::string::npos, told[1]);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
