// LTX 2 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_ltx2_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLtx2Tolerance = 1e-4;
constexpr int kLtx2Steps = 3;

void name_ltx2_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<std::string, std::string> beginnings[] = {
      {"patchify_proj.", "proj_in."},
      {"audio_patchify_proj.", "audio_proj_in."},
      {"adaln_single.", "time_embed."},
      {"audio_adaln_single.", "audio_time_embed."},
      {"prompt_adaln_single.", "prompt_adaln."},
      {"audio_prompt_adaln_single.", "audio_prompt_adaln."},
      {"av_ca_video_scale_shift_adaln_single.", "av_cross_attn_video_scale_shift."},
      {"av_ca_audio_scale_shift_adaln_single.", "av_cross_attn_audio_scale_shift."},
      {"av_ca_a2v_gate_adaln_single.", "av_cross_attn_video_a2v_gate."},
      {"av_ca_v2a_gate_adaln_single.", "av_cross_attn_audio_v2a_gate."}};
  const std::pair<std::string, std::string> parts[] = {
      {".q_norm.", ".norm_q."},
      {".k_norm.", ".norm_k."},
      {".scale_shift_table_a2v_ca_video", ".video_a2v_cross_attn_scale_shift_table"},
      {".scale_shift_table_a2v_ca_audio", ".audio_a2v_cross_attn_scale_shift_table"}};
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : beginnings)
      if (tensor.name.starts_with(from)) {
        tensor.name.replace(0, from.size(), to);
        break;
      }
    for (const auto& [from, to] : parts)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
  }
}

struct Ltx2Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/ltx2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change,
                             const std::string& metadata = "") const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "ltx2");
    change(tensors);
    const std::filesystem::path path = temporary / "ltx2.safetensors";
    std::string escaped;
    for (const char c : metadata) escaped += c == '"' ? "\\\"" : std::string(1, c);
    write_safetensors(path, tensors,
                      metadata.empty() ? FileMetadata{} : FileMetadata{{"config", escaped}});
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  static std::string config_of(const std::string& kind) {
    return kind == "three" ? R"({"num_attention_heads": 2, "audio_num_attention_heads": 2,
                                 "rope_type": "interleaved"})"
                           : R"({"num_attention_heads": 4, "audio_num_attention_heads": 4})";
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& config) {
    return probe.call({model, "diffusion_model", config, golden, prefix + "."});
  }
  std::vector<float> step_of(const std::string& name, int step) const {
    const std::vector<float> all = expected.floats(name);
    const auto row = std::ptrdiff_t(all.size() / kLtx2Steps);
    return {all.begin() + row * step, all.begin() + row * (step + 1)};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx2, Ltx2Fixture)

// "told": each frame of both has a noise level of its own; "guided": so have guides, too.
BOOST_AUTO_TEST_CASE(both_velocities_equal_diffusers) {
  for (const std::string kind : {"two", "three"}) {
    const std::filesystem::path model = file(kind);
    for (const std::string clip : {".short", ".long", ".told", ".guided"}) {
      const heddle::Results results = call(model, kind + clip, config_of(kind));
      for (const std::string out : {"out", "audio_out"})
        for (int step = 0; step < kLtx2Steps; ++step) {
          const double error =
              relative_error(results.floats("model.outputs", out + "." + std::to_string(step)),
                             step_of(kind + clip + "." + out, step));
          BOOST_TEST_MESSAGE(kind << clip << "." << out << ", step " << step << ": " << error);
          BOOST_TEST(error < kLtx2Tolerance,
                     kind << clip << "." << out << ", step " << step << ": " << error);
        }
    }
  }
}

// As the publishers' files are: the connectors stand between the projected text and the layers.
BOOST_AUTO_TEST_CASE(texts_go_through_the_connectors_of_the_file) {
  for (const std::string kind : {"two", "three"}) {
    const std::filesystem::path model = file(kind, [&](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
      for (FileTensor& tensor : seeded_model(kind + "_text", false, "ltx2"))
        tensors.push_back(std::move(tensor));
    });
    std::string config = config_of(kind);
    config.insert(1, R"("connector_num_attention_heads": 2, )"
                     R"("audio_connector_num_attention_heads": 2, )");
    const heddle::Results results = call(model, kind + ".connected", config);
    for (const std::string out : {"out", "audio_out"})
      for (int step = 0; step < kLtx2Steps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", out + "." + std::to_string(step)),
                           step_of(kind + ".connected." + out, step));
        BOOST_TEST(error < kLtx2Tolerance,
                   kind << "." << out << ", step " << step << ": " << error);
      }
    const heddle::engine::Json settings =
        heddle::engine::parse_json(results.text("model.settings"), "settings");
    BOOST_TEST(heddle::engine::write_json(*settings.find("context_width")) ==
               (kind == "two" ? "40" : "64"));
  }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  for (const std::string kind : {"two", "three"}) {
    const auto bytes = [&](auto&& change) {
      return call(file(kind, change), kind + ".long", config_of(kind))
          .floats("model.outputs", "audio_out.1");
    };
    const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                             diffusers = bytes(name_ltx2_as_diffusers),
                             prefixed = bytes([](std::vector<FileTensor>&tensors) {
                               for (FileTensor& tensor : tensors)
                                 tensor.name = "model.diffusion_model." + tensor.name;
                             });
    BOOST_TEST(original == diffusers, kind);
    BOOST_TEST(original == prefixed, kind);
  }
}

// As the publishers' files have it.
BOOST_AUTO_TEST_CASE(the_files_metadata_say_how_it_was_trained) {
  const auto made = [&](const std::string& more) {
    const std::filesystem::path model = file(
        "three", [](std::vector<FileTensor>&) {},
        R"({"transformer": {"num_attention_heads": 2, "audio_num_attention_heads": 2)" + more +
            R"(, "positional_embedding_max_pos": [20, 2048, 2048]}})");
    return relative_error(call(model, "three.long", "").floats("model.outputs", "out.0"),
                          step_of("three.long.out", 0));
  };
  BOOST_TEST(made(R"(, "rope_type": "interleaved")") < kLtx2Tolerance);
  BOOST_TEST(made("") > 10 * kLtx2Tolerance);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file("three"), "three.short", config_of("three")).text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"ltx2\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_sound") == "true");
  BOOST_TEST(written("noise_mu") == "2.37");
  BOOST_TEST(written("context_width") == "64");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change, const std::string& config) {
    return engine_refusal([&] { call(file("two", change), "two.short", config); });
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
  const std::string config = config_of("two");
  says(refusal(without("transformer_blocks.1.audio_ff.net.2.weight"), config),
       {"ltx2.safetensors", "'transformer_blocks.1.audio_ff.net.2.weight'", "layer.1.audio.mlp"});
  says(refusal(without("transformer_blocks.1.video_to_audio_attn.to_k.bias"), config),
       {"'transformer_blocks.1.video_to_audio_attn.to_k.bias'", "layer.1.audio.cross"});
  says(refusal(as_it_is, R"({"num_attention_heads": 5})"), {"a width of 64", "5 heads"});
  says(refusal(as_it_is, R"({"rope_type": "spiral"})"), {"'spiral'", "split and interleaved"});
  says(refusal(as_it_is, R"({"rope_theta": 0})"), {"positional_embedding_theta", "above 0"});
}

BOOST_AUTO_TEST_SUITE_END()
