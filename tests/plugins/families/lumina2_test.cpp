// Lumina 2 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_lumina2_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLumina2Tolerance = 1e-5;
constexpr int kLumina2Steps = 3;

struct Lumina2Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/lumina2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("transformer", false, "lumina2");
    change(tensors);
    const std::filesystem::path path = temporary / "lumina2.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix) {
    return probe.call({model, "diffusion_model", "", golden, prefix + "."});
  }
};

// The tensors under diffusers' names, queries, keys and values apart.
void name_lumina2_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> names[] = {
      {"attention.out.", "attn.to_out.0."},
      {"attention.q_norm.", "attn.norm_q."},
      {"attention.k_norm.", "attn.norm_k."},
      {"t_embedder.mlp.0.", "time_caption_embed.timestep_embedder.linear_1."},
      {"t_embedder.mlp.2.", "time_caption_embed.timestep_embedder.linear_2."},
      {"cap_embedder.", "time_caption_embed.caption_embedder."},
      {"final_layer.adaLN_modulation.1.", "norm_out.linear_1."},
      {"final_layer.linear.", "norm_out.linear_2."},
      {"feed_forward.w", "feed_forward.linear_"},
      {"adaLN_modulation.1.", "norm1.linear."},
      {"attention_norm2.", "norm2."}};
  std::vector<FileTensor> renamed;
  for (FileTensor& tensor : tensors) {
    const bool is_plain = tensor.name.starts_with("context_refiner.");
    const auto replace = [&](const std::string& from, const std::string& to) {
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
    };
    replace("attention_norm1.", is_plain ? "norm1." : "norm1.norm.");
    for (const auto& [from, to] : names) replace(from, to);
    const std::size_t fused = tensor.name.find("attention.qkv.");
    if (fused == std::string::npos) {
      renamed.push_back(tensor);
      continue;
    }
    // Four heads of queries, two of keys, two of values, of 12 rows each.
    const std::pair<const char*, std::int64_t> parts[] = {
        {"attn.to_q.", 48}, {"attn.to_k.", 24}, {"attn.to_v.", 24}};
    std::size_t begin = 0;
    for (const auto& [part, rows] : parts) {
      const std::size_t size = std::size_t(rows * tensor.shape[1]) * 4;
      renamed.push_back({std::string(tensor.name).replace(fused, 14, part),
                         tensor.dtype,
                         {rows, tensor.shape[1]},
                         tensor.bytes.substr(begin, size)});
      begin += size;
    }
  }
  tensors = std::move(renamed);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lumina2, Lumina2Fixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  for (const std::string shape : {"square", "odd"}) {
    const heddle::Results results = call(file(), shape);
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kLumina2Steps);
    for (int step = 0; step < kLumina2Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kLumina2Tolerance, shape << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_lumina2_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "square").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"lumina2\"");
  BOOST_TEST(written("noise_table") == "\"discrete_flow\"");
  BOOST_TEST(written("noise_shift") == "6.0");
  BOOST_TEST(written("context_width") == "24");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file(change), "square"); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(refusal([](std::vector<FileTensor>& tensors) {
         std::erase_if(tensors, [](const FileTensor& tensor) {
           return tensor.name == "layers.1.feed_forward.w3.weight";
         });
       }),
       {"lumina2.safetensors", "'layers.1.feed_forward.w3.weight'", "layer.1.block", "missing"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "context_refiner.0.attention.qkv.weight") {
             tensor.shape[0] -= 2;
             tensor.bytes.resize(tensor.bytes.size() - 4 * 2 * 48);
           }
       }),
       {"94 rows", "4 heads of 12"});
}

BOOST_AUTO_TEST_SUITE_END()
