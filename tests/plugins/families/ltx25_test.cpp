// LTX 2.5 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_ltx25_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

struct Ltx25Fixture {
  static constexpr double kLeast = 1e-4;
  static constexpr int kSteps = 3;
  static constexpr const char* kHeads = R"("num_attention_heads": 2, "audio_num_attention_heads": 2,
      "connector_num_attention_heads": 2, "audio_connector_num_attention_heads": 2)";

  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx25/expected.safetensors";
  TensorFile expected{golden};

  // As published: behind a prefix, with connectors, told by its metadata.
  std::filesystem::path file(const std::string& kind, bool connected) const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "ltx25");
    for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
    if (connected)
      for (FileTensor& tensor : seeded_model("five_text", false, "ltx25"))
        tensors.push_back(std::move(tensor));
    const std::string told = R"({"transformer": {)" + std::string(kHeads) +
                             R"(, "rope_type": "split", "ff_bias": false,
      "use_keyframes_abs_pos_embedding": true}})";
    std::string escaped;
    for (const char c : told)
      if (c != '\n') escaped += c == '"' ? "\\\"" : std::string(1, c);
    const std::filesystem::path path = temporary / "ltx25.safetensors";
    write_safetensors(path, tensors, FileMetadata{{"config", escaped}});
    return path;
  }
  void compare(const std::string& clip, bool connected = false) {
    const std::string kind = clip.substr(0, clip.find('.'));
    const heddle::Results results =
        probe.call({file(kind, connected), "diffusion_model", "", golden, (clip + ".").c_str()});
    for (const std::string out : {"out", "audio_out"}) {
      const std::vector<float> all = expected.floats(clip + "." + out);
      const auto row = std::ptrdiff_t(all.size() / kSteps);
      for (int step = 0; step < kSteps; ++step) {
        const double error = relative_error(
            results.floats("model.outputs", out + "." + std::to_string(step)),
            std::vector<float>(all.begin() + row * step, all.begin() + row * (step + 1)));
        BOOST_TEST_MESSAGE(clip << "." << out << ", step " << step << ": " << error);
        BOOST_TEST(error < kLeast, clip << "." << out << ", step " << step << ": " << error);
      }
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx25, Ltx25Fixture)

// "told": each frame of both has a noise level of its own; "guided": so have guides, too.
BOOST_AUTO_TEST_CASE(both_velocities_equal_diffusers) {
  for (const char* clip : {"five.short", "five.long", "five.told", "five.guided"}) compare(clip);
}

BOOST_AUTO_TEST_CASE(texts_that_are_modulated_by_tables_alone_are_looked_at) {
  compare("fixed.long");
}

BOOST_AUTO_TEST_CASE(texts_go_through_connectors_whose_mlps_add_nothing) {
  compare("five.connected", true);
}

BOOST_AUTO_TEST_SUITE_END()
