// FastH3 with sparse attention by cubes of the video, with weights that follow from their names,
// against a PyTorch module of our own over diffusers' (make_minimax_sparse_goldens.py).
#include <boost/test/unit_test.hpp>

#include <set>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

constexpr double kSparseTolerance = 1e-4;

struct SparseFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/minimax_sparse/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file(bool has_gates) const {
    constexpr std::int64_t kInner = 60, kWidth = 48;
    std::vector<FileTensor> tensors = seeded_model("whole", false, "minimax");
    for (const int layer : {0, 1})
      if (has_gates)
        tensors.push_back(
            seeded_tensor(heddle::engine::cat("blocks.", layer, ".attn.to_gate_compress.weight"),
                          {kInner, kWidth}));
    const std::filesystem::path path =
        temporary / (has_gates ? "gated.safetensors" : "plain.safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  // sparse: fields behind the share; empty: all is dense.
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& sparse, const std::filesystem::path& from) {
    const std::string config =
        sparse.empty() ? R"({"rope_freq_dim": 2})"
                       : heddle::engine::cat(R"({"rope_freq_dim": 2, "sparse": {"share": 0.3, )",
                                             sparse, "}}");
    return probe.call({model, "diffusion_model", config, from, clip + "."});
  }
  std::vector<float> step_of(const TensorFile& all, const std::string& name, int steps,
                             int step) const {
    const std::vector<float> rows = all.floats(name);
    const auto row = std::ptrdiff_t(rows.size()) / steps;
    return {rows.begin() + row * step, rows.begin() + row * (step + 1)};
  }
  void equals(const heddle::Results& results, const TensorFile& wanted, const std::string& name,
              int steps) const {
    for (const std::string out : {"out", "audio_out"})
      for (int step = 0; step < steps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", out + "." + std::to_string(step)),
                           step_of(wanted, name + "." + out, steps, step));
        BOOST_TEST_MESSAGE(name << "." << out << ", step " << step << ": " << error);
        BOOST_TEST(error < kSparseTolerance,
                   name << "." << out << ", step " << step << ": " << error);
      }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax_sparse, SparseFixture)

// "wide" has cubes over every edge of the video and several tiles before it, "tall" references of
// several pieces, of which each begins a tile.
BOOST_AUTO_TEST_CASE(both_velocities_equal_pytorch) {
  const std::string all = R"("least_tokens": 0, "dense": [])";
  for (const std::string clip : {"wide", "tall"})
    equals(call(file(true), clip, all, golden), expected, clip + ".all", 2);
  equals(call(file(false), "wide", all, golden), expected, "wide.plain", 2);
  equals(call(file(true), "tall", R"("least_tokens": 0, "dense": [0])", golden), expected,
         "tall.second", 2);
}

// Sparse attention is another one than the dense: else the case above would hold nothing.
BOOST_AUTO_TEST_CASE(the_cubes_that_are_left_out_are_missed) {
  const heddle::Results dense = call(file(false), "wide", "", golden);
  BOOST_TEST(relative_error(dense.floats("model.outputs", "out.0"),
                            step_of(expected, "wide.plain.out", 2, 0)) > 10 * kSparseTolerance);
}

// A video of two cubes, which are next to each other.
BOOST_AUTO_TEST_CASE(where_every_cube_is_seen_it_equals_the_dense_attention) {
  const std::filesystem::path dense =
      tests_folder() / "plugins/goldens/minimax/expected.safetensors";
  equals(call(file(false), "whole.long", R"("least_tokens": 0, "dense": [])", dense),
         TensorFile(dense), "whole.long", 3);
}

BOOST_AUTO_TEST_CASE(short_sequences_and_dense_layers_have_the_bytes_of_the_dense_attention) {
  const auto made = [&](const std::string& sparse) {
    return call(file(true), "wide", sparse, golden).floats("model.outputs", "out.1");
  };
  const std::vector<float> dense = made("");
  // 70 of the text, 80 of the sound, 9 x 3 x 9 of the video.
  BOOST_TEST(made(R"("least_tokens": 394, "dense": [])") == dense);
  BOOST_TEST(made(R"("least_tokens": 393, "dense": [])") != dense);
  BOOST_TEST(made(R"("least_tokens": 0, "dense": [0, 1])") == dense);
}

// FastH3 of true size: MiniMax H3's tensors and gates, OmniRef's with 32 output heads.
BOOST_AUTO_TEST_CASE(every_tensor_of_fasth3_is_taken) {
  constexpr std::int64_t kHeads = 32;
  const heddle::engine::LoadedPlugins plugins = heddle::engine::load_plugins({HEDDLE_PLUGINS_DIR});
  const heddle::engine::Json told = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");
  const heddle::engine::Value config = heddle::engine::from_json(
      heddle::engine::parse_json(R"({"sparse": {"share": 0.1, "least_tokens": 0}})", "config"));
  for (const bool is_omni_ref : {false, true}) {
    std::vector<FileTensor> tensors =
        true_tensors(told.at("diffusion_models/minimax_h3_fl2va_pruned_bf16"));
    for (FileTensor& tensor : tensors)
      if (is_omni_ref && tensor.name.find("_out.") != std::string::npos &&
          tensor.name.starts_with("final_layer."))
        tensor.shape[0] *= kHeads;
    for (int layer = 0; layer < 50; ++layer)
      tensors.push_back({heddle::engine::cat("blocks.", layer, ".attn.to_gate_compress.weight"),
                         "BF16",
                         {7168, 5376}});
    const std::filesystem::path path = temporary / "fasth3.safetensors";
    write_header_only(path, tensors);
    const heddle::engine::Value model =
        heddle::engine::build_model(*plugins.catalog, "diffusion_model",
                                    heddle::engine::open_checkpoint(path), config.get(), {});
    std::set<std::string> names;
    for (const auto& node : heddle::engine::get_model(*model)->graph->nodes)
      for (const auto& parts : node.weights)
        for (const auto& part : parts) names.insert(part.tensor);
    for (const FileTensor& tensor : tensors)
      BOOST_TEST(names.count(tensor.name) == 1u, "nobody takes '" << tensor.name << "'");
    BOOST_TEST(names.size() == tensors.size());
  }
}

BOOST_AUTO_TEST_CASE(gates_of_another_size_are_refused) {
  std::vector<FileTensor> tensors = seeded_model("whole", false, "minimax");
  tensors.push_back(seeded_tensor("blocks.1.attn.to_gate_compress.weight", {48, 48}));
  const std::filesystem::path path = temporary / "small.safetensors";
  write_safetensors(path, tensors);
  const std::string refusal =
      engine_refusal([&] { call(path, "wide", R"("least_tokens": 0, "dense": [])", golden); });
  for (const char* word : {"small.safetensors", "'blocks.1.attn.to_gate_compress.weight'"})
    BOOST_TEST(refusal.find(word) != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()
