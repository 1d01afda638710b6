// MiniMax H3 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_minimax_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kMinimaxTolerance = 1e-4;
constexpr int kMinimaxSteps = 3;
constexpr const char* kMinimaxConfig = R"({"rope_freq_dim": 2})";

// Rows [begin, end) of a tensor, by another name.
FileTensor minimax_rows(const FileTensor& tensor, const std::string& name, std::int64_t begin,
                        std::int64_t end) {
  FileTensor part = tensor;
  const std::size_t row = tensor.bytes.size() / std::size_t(tensor.shape[0]);
  part.name = name;
  part.shape[0] = end - begin;
  part.bytes.assign(tensor.bytes.begin() + std::ptrdiff_t(row) * begin,
                    tensor.bytes.begin() + std::ptrdiff_t(row) * end);
  return part;
}

void name_minimax_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<std::string, std::string> beginnings[] = {
      {"token_refiner.blocks.", "token_refiner.refiner_blocks."},
      {"blocks.", "transformer_blocks."},
      {"time_embedder.proj_in.", "time_embedder.linear_1."},
      {"time_embedder.proj_out.", "time_embedder.linear_2."},
      {"video_patch_proj.", "proj_in."},
      {"audio_patch_proj.", "audio_proj_in."},
      {"condition_proj.", "context_embedder."},
      {"final_layer.norm.", "norm_out.norm."},
      {"final_layer.adaln_proj.linear.", "norm_out.linear."},
      {"final_layer.video_out.", "proj_out."},
      {"final_layer.audio_out.", "audio_proj_out."}};
  const std::pair<std::string, std::string> parts[] = {{".q_norm.", ".norm_q."},
                                                       {".k_norm.", ".norm_k."},
                                                       {".out_proj.", ".to_out.0."},
                                                       {".mlp.fc1.", ".ff.net.0.proj."},
                                                       {".mlp.fc2.", ".ff.net.2."}};
  std::vector<FileTensor> named;
  for (FileTensor tensor : tensors) {
    for (const auto& [from, to] : beginnings)
      if (tensor.name.starts_with(from)) {
        tensor.name.replace(0, from.size(), to);
        break;
      }
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
    const std::size_t fused = tensor.name.find("qkv_proj");
    const std::int64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
    if (fused != std::string::npos) {
      int third = 0;
      for (const char* name : {"to_q", "to_k", "to_v"}) {
        std::string own = tensor.name;
        own.replace(fused, 8, name);
        named.push_back(minimax_rows(tensor, own, third * rows / 3, (third + 1) * rows / 3));
        ++third;
      }
    } else if (tensor.name.find(".ff.net.0.proj.") != std::string::npos) {
      FileTensor whole = minimax_rows(tensor, tensor.name, rows / 2, rows);
      const FileTensor gate = minimax_rows(tensor, tensor.name, 0, rows / 2);
      whole.bytes.insert(whole.bytes.end(), gate.bytes.begin(), gate.bytes.end());
      whole.shape[0] = rows;
      named.push_back(whole);
    } else {
      named.push_back(tensor);
    }
  }
  tensors = std::move(named);
}

struct MinimaxFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/minimax/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "minimax");
    change(tensors);
    const std::filesystem::path path = temporary / "minimax.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", kMinimaxConfig, golden, prefix + ".", without});
  }
  std::vector<float> step_of(const std::string& name, int step) const {
    const std::vector<float> all = expected.floats(name);
    const auto row = std::ptrdiff_t(all.size() / kMinimaxSteps);
    return {all.begin() + row * step, all.begin() + row * (step + 1)};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(minimax, MinimaxFixture)

// "keyed": two keyframes that the text shows, too; "shown": a video and sound as references.
// "curve" has a table of times, as files with less weights.
BOOST_AUTO_TEST_CASE(both_velocities_equal_diffusers) {
  for (const std::string kind : {"whole", "curve"}) {
    const std::filesystem::path model = file(kind);
    for (const std::string clip : {".short", ".long", ".keyed", ".shown"}) {
      const heddle::Results results = call(model, kind + clip);
      for (const std::string out : {"out", "audio_out"})
        for (int step = 0; step < kMinimaxSteps; ++step) {
          const double error =
              relative_error(results.floats("model.outputs", out + "." + std::to_string(step)),
                             step_of(kind + clip + "." + out, step));
          BOOST_TEST_MESSAGE(kind << clip << "." << out << ", step " << step << ": " << error);
          BOOST_TEST(error < kMinimaxTolerance,
                     kind << clip << "." << out << ", step " << step << ": " << error);
        }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_of_pictures_count_as_the_video) {
  const heddle::Results results = call(file("whole"), "whole.keyed", "picture_rows");
  BOOST_TEST(relative_error(results.floats("model.outputs", "out.0"),
                            step_of("whole.keyed.out", 0)) > 10 * kMinimaxTolerance);
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("whole", change), "whole.keyed").floats("model.outputs", "audio_out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_minimax_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file("whole"), "whole.short").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"minimax-h3\"");
  BOOST_TEST(written("latent_channels") == "24");
  BOOST_TEST(written("latent_sound") == "true");
  BOOST_TEST(written("noise_shift") == "12.0");
  BOOST_TEST(written("sound_shift") == "3.0");
  BOOST_TEST(written("context_width") == "40");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("whole", change), "whole.short"); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    };
  };
  const auto cut = [](const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors)
        if (tensor.name == name) tensor = minimax_rows(tensor, name, 0, tensor.shape[0] - 3);
    };
  };
  says(refusal(without("blocks.1.mlp.fc2.weight")),
       {"minimax.safetensors", "'blocks.1.mlp.fc2.weight'", "layer.1.block", "missing"});
  says(refusal(without("time_embedder.proj_out.bias")), {"'time_embedder.proj_out.bias'"});
  says(refusal(cut("blocks.1.attn.qkv_proj.weight")),
       {"'blocks.1.attn.qkv_proj.weight'", "177 rows", "180 are needed"});
  says(refusal(cut("blocks.1.adaln_proj.linear.weight")), {"861 rows", "864 are needed"});
}

BOOST_AUTO_TEST_SUITE_END()
