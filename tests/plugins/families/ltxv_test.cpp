// LTX-Video with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_ltxv_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// diffusers computes the angles of the rotary table, up to 15708, in f32.
constexpr double kLtxvTolerance = 2e-5;
constexpr int kLtxvSteps = 3;

void name_ltxv_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> parts[] = {{"patchify_proj.", "proj_in."},
                                                       {"adaln_single.", "time_embed."},
                                                       {".q_norm.", ".norm_q."},
                                                       {".k_norm.", ".norm_k."}};
  for (FileTensor& tensor : tensors)
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::string(from).size(), to);
}

struct LtxvFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/ltxv/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change,
                             const std::string& metadata = "") const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "ltxv");
    change(tensors);
    const std::filesystem::path path = temporary / "ltxv.safetensors";
    std::string escaped;
    for (const char c : metadata) escaped += c == '"' ? "\\\"" : std::string(1, c);
    write_safetensors(path, tensors,
                      metadata.empty() ? FileMetadata{} : FileMetadata{{"config", escaped}});
    return path;
  }
  std::filesystem::path file(const std::string& kind = "four") const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  static std::string config_of(const std::string& kind, bool is_causal = false) {
    return std::string(R"({"num_attention_heads": )") + (kind == "four" ? "4" : "3") +
           R"(, "causal_temporal_positioning": )" + (is_causal ? "true}" : "false}");
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& config) {
    return probe.call({model, "diffusion_model", config, golden, prefix + "."});
  }
  std::vector<float> step_of(const std::string& prefix, int step) const {
    const std::vector<float> all = expected.floats(prefix + ".out");
    const auto row = std::ptrdiff_t(all.size() / kLtxvSteps);
    return {all.begin() + row * step, all.begin() + row * (step + 1)};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv, LtxvFixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  for (const std::string kind : {"four", "three"}) {
    const std::filesystem::path model = file(kind);
    for (const std::string clip : {".short", ".long", ".odd", ".guided", ".causal"}) {
      const heddle::Results results = call(model, kind + clip, config_of(kind, clip == ".causal"));
      for (int step = 0; step < kLtxvSteps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                           step_of(kind + clip, step));
        BOOST_TEST_MESSAGE(kind << clip << ", step " << step << ": relative error " << error);
        BOOST_TEST(error < kLtxvTolerance, kind << clip << ", step " << step << ": " << error);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("four", change), "four.odd", config_of("four"))
        .floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_ltxv_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

// As the files from 0.9.5 on have it.
BOOST_AUTO_TEST_CASE(the_files_metadata_say_how_it_was_trained) {
  const std::filesystem::path model = file(
      "three", [](std::vector<FileTensor>&) {},
      R"({"vae": {}, "transformer": )" + config_of("three", true) + "}");
  const double error = relative_error(
      call(model, "three.causal", "").floats("model.outputs", "out.0"), step_of("three.causal", 0));
  BOOST_TEST(error < kLtxvTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file(), "four.short", config_of("four")).text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"ltxv\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_downscale") == "32");
  BOOST_TEST(written("latent_frames") == "true");
  BOOST_TEST(written("latent_scale") == "1.0");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("noise_mu") == "2.37");
  BOOST_TEST(written("context_width") == "40");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change, const std::string& config) {
    return engine_refusal([&] { call(file("four", change), "four.short", config); });
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
  const auto as_it_is = [](std::vector<FileTensor>&) {};
  const std::string config = config_of("four");
  says(refusal(without("transformer_blocks.1.ff.net.2.weight"), config),
       {"ltxv.safetensors", "'transformer_blocks.1.ff.net.2.weight'", "layer.1.block", "missing"});
  says(refusal(without("transformer_blocks.1.attn2.to_k.bias"), config),
       {"'transformer_blocks.1.attn2.to_k.bias'", "layer.1.text"});
  says(refusal(without("caption_projection.linear_1.weight"), config),
       {"later model of LTX", "not supported"});
  says(refusal(as_it_is, R"({"num_attention_heads": 5})"), {"a width of 64", "5 heads"});
  says(refusal(as_it_is, R"({"num_attention_heads": 4, "positional_embedding_theta": 0.0})"),
       {"positional_embedding_theta", "above 0"});
}

BOOST_AUTO_TEST_SUITE_END()
