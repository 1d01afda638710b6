// MiniMaxH3FunControlNetApply: videos by the Fun ControlNet of MiniMax H3 with ComfyUI's nodes,
// over models whose weights follow from their names, against PyTorch
// (../goldens/make_minimax_fun_goldens.py); divided over devices, the same bytes.
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {
namespace {

using engine::cat;

// Of a device that does not hold all weights.
constexpr std::uint64_t kFunBudget = 28 << 20;

struct FunWorkflow : PlacedFixture {
  const std::filesystem::path goldens = tests_folder() / "plugins/goldens/minimax_fun",
                              golden = goldens / "expected.safetensors";
  TensorFile expected{golden};

  FunWorkflow() {
    input_dir = goldens;
    add("diffusion_models/whole", seeded_model("whole", false, "minimax"));
    add("vae/h3", h3_video_tensors(false));
    const FileMetadata places{{"control_blocks_places", "[0, 1]"}};
    FileMetadata later = places;
    later.push_back({"inpaint_masked_pixel_mode", "post_norm"});
    add_patch("fun", places);
    add_patch("later", later);
  }
  void add_patch(const std::string& name, const FileMetadata& metadata,
                 const std::string& model = "fun") const {
    const std::filesystem::path path = folder / "models/model_patches" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, seeded_model(model, false, "minimax_fun"), metadata);
  }

  // The model "to" with a patch, of the model "from". more: what is given.
  static std::string applied(const std::string& patch, const std::string& more,
                             const std::string& from = "model", const std::string& to = "applied") {
    return cat("\"", to, R"(_file": {"class_type": "ModelPatchLoader", "inputs": {"name": ")",
               patch, R"(.safetensors"}}, ")", to,
               R"(": {"class_type": "MiniMaxH3FunControlNetApply", "inputs": {"model": [")", from,
               R"(", 0], "model_patch": [")", to, R"(_file", 0], "vae": ["vae", 0], )", more, "}}");
  }
  // hints: of the sampler. text: of the node "one".
  std::string flow(const std::string& nodes, const std::string& hints = "",
                   const std::string& told = "", const std::string& model = "applied") const {
    return cat("{", loaded("whole"), ", ", nodes, R"(, "one": )",
               told.empty() ? text("one", golden) : told,
               R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
      "a": {"class_type": "LoadImage", "inputs": {"image": "one.png"}},
      "b": {"class_type": "LoadImage", "inputs": {"image": "two.png"}},
      "video": {"class_type": "ImageBatch", "inputs": {"image1": ["a", 0], "image2": ["b", 0]}},
      "turned": {"class_type": "ImageBatch", "inputs": {"image1": ["b", 0], "image2": ["a", 0]}},
      "mask": {"class_type": "ImageToMask", "inputs": {"image": ["video", 0], "channel": "red"}},
      "both": {"class_type": "EmptyMiniMaxH3LatentAV", "inputs": {"width": 96, "height": 64, "length": 22}},
      "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": [")",
               model, R"(", 0], "conditioning": ["one", 0]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.95, 0.7, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "drawn": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0])",
               hints, R"(}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 0], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  }
  static constexpr const char* kFollowed =
      R"("strength": 0.8, "start_percent": 0.0, "end_percent": 1.0, "control_video": ["video", 0])";
  static constexpr const char* kKept =
      R"("strength": 1.2, "start_percent": 0.0, "end_percent": 0.5, "control_video": ["video", 0],
         "mask": ["mask", 0], "source_video": ["turned", 0])";
  static constexpr const char* kSmall =
      R"("strength": 1.2, "start_percent": 0.0, "end_percent": 0.5, "mask": ["mask", 0],
         "source_video": ["video", 0])";
  static constexpr const char* kHoles =
      R"("strength": 1.0, "start_percent": 0.0, "end_percent": 1.0, "mask": ["mask", 0])";

  // By the fast kernels: the autoencoder sees many pictures.
  EngineOptions fast() const {
    EngineOptions options = options_for({"cpu:0"});
    options.reference_kernels = false;
    return options;
  }
  std::vector<float> video(const std::string& nodes) const { return draw(fast(), flow(nodes)); }
  void equals_pytorch(const std::string& nodes, const std::string& wanted) const {
    Engine engine(fast());
    const Results results =
        engine.start(engine.parse(flow(nodes)), {{}, {"out.LATENT", "parts.audio_latent"}}).wait();
    for (const auto& [part, node] :
         {std::pair("video", "out.LATENT"), std::pair("audio", "parts.audio_latent")}) {
      const double decibels =
          -20 * std::log10(relative_error(results.floats(node, "samples"),
                                          expected.floats(cat(wanted, ".", part))));
      BOOST_TEST_MESSAGE(wanted << "." << part << ": " << decibels << " dB");
      BOOST_TEST(decibels >= 70, wanted << "." << part << ": " << decibels << " dB");
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_fun_workflows, FunWorkflow)

BOOST_AUTO_TEST_CASE(a_video_that_is_followed_equals_pytorch) {
  equals_pytorch(applied("fun", kFollowed), "followed");
}

BOOST_AUTO_TEST_CASE(a_video_that_stays_but_for_a_mask_half_the_way_equals_pytorch) {
  equals_pytorch(applied("fun", kKept), "kept");
}

BOOST_AUTO_TEST_CASE(holes_are_the_mean_of_pictures_where_the_file_says_so) {
  equals_pytorch(applied("later", kHoles), "holes");
  BOOST_TEST(relative_error(video(applied("fun", kHoles)), expected.floats("holes.video")) > 1e-3);
}

BOOST_AUTO_TEST_CASE(nothing_given_or_no_strength_is_the_model_alone) {
  const std::vector<float> plain = video(
      R"("applied": {"class_type": "MiniMaxH3SigmaShift", "inputs": {"model": ["model", 0], "shift_video": 12.0, "shift_audio": 3.0}})");
  constexpr const char* kRange = R"("start_percent": 0.0, "end_percent": 1.0)";
  BOOST_TEST(video(applied("fun", cat(R"("strength": 1.0, "source_video": ["video", 0], )",
                                      kRange))) == plain);
  BOOST_TEST(video(applied("fun", cat(R"("strength": 0.0, "mask": ["mask", 0], )", kRange))) ==
             plain);
  // At rest in all steps.
  BOOST_TEST(video(applied("fun",
                           R"("strength": 1.0, "control_video": ["video", 0],
                              "start_percent": 0.99, "end_percent": 1.0)")) == plain);
  BOOST_TEST(relative_error(video(applied("fun", kFollowed)), plain) > 0.01);
}

// Where there is no mask nobody looks at a video behind it.
BOOST_AUTO_TEST_CASE(a_video_behind_no_mask_is_not_seen) {
  BOOST_TEST(video(applied("fun", cat(kFollowed, R"(, "source_video": ["turned", 0])"))) ==
             video(applied("fun", kFollowed)));
}

// Of two with ranges of their own, each is at work in its part.
BOOST_AUTO_TEST_CASE(control_nets_rest_one_by_one) {
  const auto ranged = [](const char* range) {
    return cat(R"("strength": 0.8, "control_video": ["video", 0], )", range);
  };
  const std::string first = R"("start_percent": 0.0, "end_percent": 0.5)",
                    second = R"("start_percent": 0.51, "end_percent": 1.0)";
  equals_pytorch(cat(applied("fun", ranged(first.c_str()), "model", "begun"), ", ",
                     applied("fun", ranged(second.c_str()), "begun")),
                 "followed");
}

// A small video: plain kernels see it.
BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes, *boost::unit_test::label("long")) {
  const auto small = [&](const std::string& hints) {
    std::string whole = flow(applied("fun", kSmall), hints);
    const std::string canvas = R"("width": 96, "height": 64, "length": 22)";
    return whole.replace(whole.find(canvas), canvas.size(),
                         R"("width": 64, "height": 32, "length": 5)");
  };
  hold(small, {"layers"}, {"sequence", "tensor"}, kFunBudget, 24 * 2 * 2 * 4);
}

BOOST_AUTO_TEST_CASE(calls_are_told_before_a_run) {
  constexpr const char* kText =
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})";
  Engine::Data told(fast());
  check_inference(told, flow(applied("fun", kKept), "", kText));
}

// Sparse attention and a ControlNet go into one model in either order.
BOOST_AUTO_TEST_CASE(a_control_net_and_sparse_attention_take_either_order) {
  const auto sparse = [](const char* from, const char* to) {
    return cat("\"", to, R"(": {"class_type": "BlockSparseAttention", "inputs": {"model": [")",
               from,
               R"(", 0], "selection": "vsa", "selection.keep_percent": 30.0, "start_percent": 0.0,
               "end_percent": 1.0, "min_tokens": 0}})");
  };
  const std::vector<float> before =
      video(cat(sparse("model", "begun"), ", ", applied("fun", kFollowed, "begun")));
  const std::vector<float> behind =
      video(cat(applied("fun", kFollowed, "model", "begun"), ", ", sparse("begun", "applied")));
  BOOST_TEST(before == behind);
  BOOST_TEST(relative_error(behind, video(sparse("model", "applied"))) > 0.01);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_before_it_runs) {
  Engine engine(fast());
  const auto refusal = [&](const std::string& flow) {
    return engine_refusal([&] { engine.plan(engine.parse(flow)); });
  };
  add("vae/other", seeded_model("qwen_image.vae"));
  std::string other = flow(applied("fun", kFollowed));
  other.replace(other.find("h3.safetensors"), 14, "other.safetensors");
  says(refusal(other), {"own video autoencoder", "minimax_h3_video_vae"});
  add_patch("unmarked", {}, "alone");
  says(refusal(flow(applied("unmarked", kKept))), {"minimax-h3-fun", "24", "no room for a mask"});
  add_patch("spread", {});
  says(refusal(flow(applied("spread", kFollowed))),
       {"spread.safetensors does not fit", "behind layer 25", "which has 2"});
  add_patch("pruned", {{"control_blocks_places", "[0, 1]"}}, "fun_curve");
  says(refusal(flow(applied("pruned", kFollowed))), {"pruned.safetensors", "times of 8 numbers"});
  add("diffusion_models/whole", seeded_model("flow", false, "ltx2"));
  says(refusal(flow(applied("fun", kFollowed))), {"'minimax-h3'", "'ltx2'"});
  // A model is no patch.
  write_safetensors(folder / "models/model_patches/model.safetensors",
                    seeded_model("whole", false, "minimax"));
  says(refusal(flow(applied("model", kFollowed))), {"minimax-h3", "not a model patch"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
