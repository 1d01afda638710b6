// BlockSparseAttention: FastH3 from a text to latents, with steps of sparse attention between two
// levels, over a model whose weights follow from their names, against PyTorch
// (../goldens/make_minimax_sparse_goldens.py).
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

// Of a device that has room for little beside a step's activations.
constexpr std::uint64_t kSparseBudget = std::uint64_t{9} << 19;

struct SparseWorkflow : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/minimax_sparse/expected.safetensors";
  TensorFile expected{golden};

  SparseWorkflow() {
    constexpr std::int64_t kInner = 60, kWidth = 48;
    std::vector<FileTensor> tensors = seeded_model("whole", false, "minimax");
    add("diffusion_models/ungated", tensors);
    for (const int layer : {0, 1})
      tensors.push_back(
          seeded_tensor(heddle::engine::cat("blocks.", layer, ".attn.to_gate_compress.weight"),
                        {kInner, kWidth}));
    add("diffusion_models/gated", tensors);
  }

  // Sparse at the levels from 0.98 to 0.57.
  static constexpr const char* kVsa =
      R"("selection": "vsa", "selection.keep_percent": 30.0, "start_percent": 0.2, "end_percent": 0.9, "min_tokens": 0)";
  static constexpr const char* kBoth =
      R"("both": {"class_type": "EmptyMiniMaxH3LatentAV", "inputs": {"width": 288, "height": 192, "length": 22}})";
  static std::string sparse(const std::string& told, const std::string& model = "model") {
    return heddle::engine::cat(
        R"("sparse": {"class_type": "BlockSparseAttention", "inputs": {"model": [")", model,
        R"(", 0], )", told, "}}");
  }
  std::string flow(const std::string& nodes, const std::string& model = "gated",
                   const std::string& last = "sparse") const {
    return heddle::engine::cat(
        "{", loaded(model), ", ", nodes, R"(, "one": )", text("one", golden), ", ", kBoth,
        R"(, "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 7}},
      "guider": {"class_type": "BasicGuider", "inputs": {"model": [")",
        last, R"(", 0], "conditioning": ["one", 0]}},
      "sigmas": {"class_type": "ManualSigmas", "inputs": {"sigmas": "1.0, 0.95, 0.7, 0.2, 0.0"}},
      "euler": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
      "out": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0], "guider": ["guider", 0],
        "sampler": ["euler", 0], "sigmas": ["sigmas", 0], "latent_image": ["both", 0]}},
      "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["out", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["parts", 0]}},
      "listen": {"class_type": "test.look", "inputs": {"value": ["parts", 1]}}})");
  }
  heddle::Results made(const std::string& whole) {
    return run_whole(whole, {"parts.video_latent", "parts.audio_latent"});
  }
  std::vector<float> video(const std::string& told, const std::string& model = "gated") {
    return made(flow(sparse(told), model)).floats("parts.video_latent", "samples");
  }
  // By KSampler, to the node "out".
  std::string drawn(const std::string& hints) const {
    return heddle::engine::cat(
        "{", loaded("gated"), ", ", sparse(kVsa), R"(, "one": )", text("one", golden), ", ", kBoth,
        R"(, "drawn": {"class_type": "KSampler", "inputs": {"model": ["sparse", 0], "seed": 1, "steps": 2,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["one", 0], "latent_image": ["both", 0], "denoise": 1.0})",
        hints,
        R"(}, "parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["drawn", 0]}},
      "out": {"class_type": "LatentFromBatch", "inputs": {"samples": ["parts", 0], "batch_index": 0, "length": 1}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sparse_attention, SparseWorkflow)

BOOST_AUTO_TEST_CASE(steps_between_two_levels_are_sparse_and_equal_pytorch) {
  const heddle::Results results = made(flow(sparse(kVsa)));
  BOOST_TEST(warnings.empty());
  for (const std::string part : {"video", "audio"}) {
    const std::vector<float> here = results.floats("parts." + part + "_latent", "samples"),
                             there = expected.floats("flow." + part);
    const double error = relative_error(here, there), decibels = -20 * std::log10(error);
    BOOST_TEST_MESSAGE(part << ": " << decibels << " dB");
    BOOST_TEST(decibels >= 70, part << ": " << decibels << " dB");
  }
}

// The range is that of the levels which the model had at the node, as in ComfyUI.
BOOST_AUTO_TEST_CASE(levels_are_those_of_the_model_at_the_node) {
  const auto shifted = [&](const std::string& model) {
    return heddle::engine::cat(
        R"("shifts": {"class_type": "MiniMaxH3SigmaShift", "inputs": {"model": [")", model,
        R"(", 0], "shift_video": 1.0, "shift_audio": 3.0}})");
  };
  const auto drawn_by = [&](const std::string& nodes, const std::string& last) {
    return made(flow(nodes, "gated", last)).floats("parts.video_latent", "samples");
  };
  const std::vector<float> dense = drawn_by(shifted("model"), "shifts"),
                           before = drawn_by(
                               heddle::engine::cat(shifted("model"), ", ", sparse(kVsa, "shifts")),
                               "sparse"),
                           behind =
                               drawn_by(heddle::engine::cat(sparse(kVsa), ", ", shifted("sparse")),
                                        "shifts");
  // 0.95 lies above a start of 0.8, below one of 0.98.
  BOOST_TEST(!are_equal(before, dense));
  BOOST_TEST(!are_equal(before, behind));
}

BOOST_AUTO_TEST_CASE(what_leaves_nothing_sparse_keeps_the_bytes) {
  const std::vector<float> dense =
      made(
          flow(
              R"("same": {"class_type": "ModelAttentionBackend", "inputs": {"model": ["model", 0], "attention": "pytorch attention"}})",
              "gated", "same"))
          .floats("parts.video_latent", "samples");
  const std::string vsa = R"("selection": "vsa", "selection.keep_percent": 30.0, )";
  BOOST_TEST(are_equal(video(vsa + R"("start_percent": 1.0, "min_tokens": 0)"), dense));
  BOOST_TEST(are_equal(video(vsa + R"("start_percent": 0.0)"), dense));  // 12288 tokens at least
  BOOST_TEST(are_equal(video(vsa + R"("min_tokens": 0, "dense_blocks": "1 - 0")"), dense));
  BOOST_TEST(are_equal(
      video(vsa + R"("min_tokens": 0, "dense_blocks": "7, 0-99999999999999999999")"), dense));
  const std::vector<float> second = video(vsa + R"("min_tokens": 0, "dense_blocks": "x0 -, 5")");
  BOOST_TEST(!are_equal(second, dense));
  BOOST_TEST(!are_equal(second, video(vsa + R"("min_tokens": 0)")));
  // Of two such nodes the last one counts.
  const std::string twice = heddle::engine::cat(
      R"("first": {"class_type": "BlockSparseAttention", "inputs": {"model": ["model", 0], )", kVsa,
      "}}, ", sparse(vsa + R"("start_percent": 1.0)", "first"));
  BOOST_TEST(are_equal(made(flow(twice)).floats("parts.video_latent", "samples"), dense));
}

BOOST_AUTO_TEST_CASE(a_model_without_gates_has_no_coarse_part_and_a_warning) {
  const std::vector<float> plain = video(kVsa, "ungated");
  BOOST_TEST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(warnings[0].find("to_gate_compress") != std::string::npos, warnings[0]);
  BOOST_TEST(!are_equal(plain, video(kVsa)));
}

BOOST_AUTO_TEST_CASE(other_methods_are_dense_and_say_so) {
  const std::vector<float> dense =
      video(R"("selection": "sla", "selection.keep_percent": 10.0, "min_tokens": 0)");
  BOOST_TEST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(warnings[0].find("'sla'") != std::string::npos, warnings[0]);
  BOOST_TEST(are_equal(dense, video(R"("selection": "sol-attn", "selection.tau": 1.3)")));
  // Behind vsa, too, which rests then.
  const std::string behind = heddle::engine::cat(
      R"("first": {"class_type": "BlockSparseAttention", "inputs": {"model": ["model", 0], )", kVsa,
      "}}, ", sparse(R"("selection": "sla", "selection.keep_percent": 10.0)", "first"));
  BOOST_TEST(are_equal(made(flow(behind)).floats("parts.video_latent", "samples"), dense));
}

BOOST_AUTO_TEST_CASE(other_models_are_refused) {
  add("diffusion_models/flow", seeded_model("flow", false, "ltx2"));
  const std::string refusal = engine_refusal([&] { video(kVsa, "flow"); });
  for (const char* words : {"vsa", "MiniMax H3 and FastH3", "'ltx2'"})
    BOOST_TEST(refusal.find(words) != std::string::npos, refusal);
}

// Sums over heads and tokens of a group come in another order than those of one device.
BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes) {
  hold([&](const std::string& hints) { return drawn(hints); }, {"layers"}, {"sequence", "tensor"},
       kSparseBudget, 24 * 7 * 12 * 18);
}

BOOST_AUTO_TEST_CASE(calls_and_tensors_are_told_before_a_run) {
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  options.output_dir = folder / "told";
  std::string whole = drawn("");
  const std::string node = text("one", golden);
  const std::size_t at = whole.find(node);
  BOOST_TEST_REQUIRE((at != std::string::npos));
  whole.replace(
      at, node.size(),
      R"({"class_type": "RandomConditioning", "inputs": {"tokens": 9, "width": 40, "pooled_width": 0, "seed": 1}})");
  heddle::Engine::Data told(options);  // a node that is cached makes no calls
  check_inference(told, whole);
}

BOOST_AUTO_TEST_SUITE_END()
