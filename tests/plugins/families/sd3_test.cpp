// Stable Diffusion 3 and 3.5 with weights that follow from their names, whole and through the
// engine, against what diffusers makes of the same ones (make_sd3_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/sd3_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSd3Tolerance = 1e-5;
constexpr int kSd3Steps = 3;

struct Sd3Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/sd3/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = sd3_transformer(kind);
    change(tensors);
    const std::filesystem::path path = temporary / "sd3.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix) {
    return probe.call({model, "diffusion_model", "", golden, prefix + "."});
  }
};

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sd3, Sd3Fixture)

// The constants of ComfyUI's latent formats, from 0 to 1.
BOOST_AUTO_TEST_CASE(its_latents_are_previewed_by_their_factors) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file("first"), "first_odd").text("model.settings"), "settings");
  const std::vector<heddle::engine::Json>& rows = settings.at("preview_factors").as_array();
  BOOST_TEST_REQUIRE(rows.size() == 17u);
  const double first[] = {-0.0922, -0.0175, 0.0749}, last[] = {0.2394, 0.2135, 0.1925};
  for (int c = 0; c < 3; ++c) {
    BOOST_TEST(rows.front().as_array()[c].as_double() == first[c] / 2,
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST(rows.back().as_array()[c].as_double() == (last[c] + 1) / 2,
               boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  for (const std::string kind : {"first", "large", "medium"})
    for (const std::string shape : {"_square", "_odd"}) {
      const heddle::Results results = call(file(kind), kind + shape);
      const std::vector<float> all = expected.floats(kind + shape + ".out");
      const auto row = std::ptrdiff_t(all.size() / kSd3Steps);
      for (int step = 0; step < kSd3Steps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                           {all.begin() + row * step, all.begin() + row * (step + 1)});
        BOOST_TEST_MESSAGE(kind << shape << ", step " << step << ": relative error " << error);
        BOOST_TEST(error < kSd3Tolerance, kind << shape << ", step " << step << ": " << error);
      }
    }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  for (const char* kind : {"first", "medium"}) {
    const std::string golden_of = std::string(kind) + "_odd";
    const auto bytes = [&](auto&& change) {
      return call(file(kind, change), golden_of).floats("model.outputs", "out.1");
    };
    const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                             diffusers = bytes(name_sd3_as_diffusers),
                             prefixed = bytes([](std::vector<FileTensor>&tensors) {
                               for (FileTensor& tensor : tensors)
                                 tensor.name = "model.diffusion_model." + tensor.name;
                             });
    BOOST_TEST(original == diffusers);
    BOOST_TEST(original == prefixed);
  }
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file("large"), "large_square").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"sd3\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_scale") == "1.5305");
  BOOST_TEST(written("latent_shift") == "0.0609");
  BOOST_TEST(written("noise_table") == "\"discrete_flow\"");
  BOOST_TEST(written("noise_shift") == "3.0");
  BOOST_TEST(written("noise_multiplier") == "1000.0");
  BOOST_TEST(written("context_width") == "24");
  BOOST_TEST(written("pooled_width") == "20");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("medium", change), "medium_square"); });
  };
  says(refusal([](std::vector<FileTensor>& tensors) {
         std::erase_if(tensors, [](const FileTensor& tensor) {
           return tensor.name == "joint_blocks.1.x_block.attn2.proj.bias";
         });
       }),
       {"sd3.safetensors", "'joint_blocks.1.x_block.attn2.proj.bias'", "double.1.block"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "pos_embed") {
             tensor.shape[1] -= 1;
             tensor.bytes.resize(tensor.bytes.size() - 4 * 128);
           }
       }),
       {"'pos_embed'", "63 positions", "no square"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "pos_embed") {
             tensor.shape[1] = 4;
             tensor.bytes.resize(4 * 4 * 128);
           }
       }),
       {"up to 2 x 2 tokens", "3 x 3"});
}

BOOST_AUTO_TEST_SUITE_END()
