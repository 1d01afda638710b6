// Wan with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_wan_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wan_names.h"

using namespace heddle::test;

namespace {

constexpr double kWanTolerance = 1e-5;
constexpr int kWanSteps = 3;

struct WanFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/wan/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(kind, false, "wan");
    change(tensors);
    const std::filesystem::path path = temporary / "wan.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind = "text") const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& without = "") {
    return probe.call(
        {model, "diffusion_model", R"({"attention_head_dim": 16})", golden, prefix + ".", without});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan, WanFixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  for (const std::string kind : {"text", "picture", "frames"}) {
    const std::filesystem::path model = file(kind);
    for (const std::string clip : {".short", ".long", ".odd"}) {
      const heddle::Results results = call(model, kind + clip);
      const std::vector<float> all = expected.floats(kind + clip + ".out");
      const auto row = std::ptrdiff_t(all.size() / kWanSteps);
      for (int step = 0; step < kWanSteps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                           {all.begin() + row * step, all.begin() + row * (step + 1)});
        BOOST_TEST_MESSAGE(kind << clip << ", step " << step << ": relative error " << error);
        BOOST_TEST(error < kWanTolerance, kind << clip << ", step " << step << ": " << error);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("frames", change), "frames.odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_wan_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

// A model that is shown pictures does without the vision model's states, as ComfyUI's does.
BOOST_AUTO_TEST_CASE(a_picture_need_not_be_looked_at) {
  const std::filesystem::path model = file("picture");
  const auto out = [&](const std::string& without) {
    return call(model, "picture.long", without).floats("model.outputs", "out.0");
  };
  const std::vector<float> with = out(""), blind = out("vision");
  BOOST_TEST(with.size() == blind.size());
  BOOST_TEST(with != blind);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "text.short").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"wan\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_frames") == "true");
  BOOST_TEST(written("noise_table") == "\"discrete_flow\"");
  BOOST_TEST(written("noise_shift") == "8.0");
  BOOST_TEST(written("context_width") == "40");
  BOOST_TEST(settings.find("latent_means")->as_array().size() == 16);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](const std::string& kind, auto&& change) {
    return engine_refusal([&] { call(file(kind, change), kind + ".short"); });
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
  says(refusal("text", without("blocks.1.ffn.2.weight")),
       {"wan.safetensors", "'blocks.1.ffn.2.weight'", "layer.1.block", "missing"});
  says(refusal("picture", without("blocks.1.cross_attn.k_img.weight")),
       {"'blocks.1.cross_attn.k_img.weight'", "layer.1.vision"});
  const std::string lacking =
      engine_refusal([&] { call(file("picture"), "picture.short", "concat"); });
  says(lacking, {"concat"});
}

BOOST_AUTO_TEST_SUITE_END()
