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
