// Models of every family in bf16, through the engine: how far what they make is from the float32
// goldens, beside how far the references' own bf16 is (../goldens/make_bf16_errors.py).
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/plugins/families/bf16_models.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

// An accepted error is at most so many times the reference's own.
constexpr double kMost = 1.5;

std::filesystem::path golden_folder(const std::string& name) {
  return tests_folder() / "plugins/goldens" / name;
}

struct Bf16Fixture {
  ModelProbe probe{"bf16"};
  TemporaryFolder temporary;
  const heddle::engine::Json errors =
      heddle::engine::parse_json(read_text(golden_folder("bf16_errors.json")), "bf16_errors.json");

  std::filesystem::path file(const Bf16Model& model) const {
    if (model.model.ends_with(".safetensors")) return golden_folder(model.folder) / model.model;
    std::vector<FileTensor> tensors =
        model.made ? model.made()
                   : seeded_model(model.model, model.by_other_name,
                                  model.from.empty() ? model.folder : model.from);
    if (!model.beside.empty()) {
      for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
      for (FileTensor& tensor : seeded_model(model.beside, false, model.folder))
        tensors.push_back(std::move(tensor));
    }
    for (std::size_t i = 0; i < model.patches.size(); ++i)
      for (FileTensor& tensor : seeded_model(model.patches[i].name, false, model.folder)) {
        tensor.name = cat("model_patch.", i, ".", tensor.name);
        tensors.push_back(std::move(tensor));
      }
    const std::filesystem::path path = temporary / "model.safetensors";
    write_safetensors(path, tensors, model.metadata);
    return path;
  }
  // With the patches in the model's file, as a plan joins them.
  static std::string config(const Bf16Model& model) {
    if (model.patches.empty()) return model.config;
    std::string joined = model.config.empty() ? "{" : model.config;
    joined.back() = joined.size() > 1 ? ',' : '{';
    joined += R"("model_patches": [)";
    for (std::size_t i = 0; i < model.patches.size(); ++i) {
      const Bf16Patch& patch = model.patches[i];
      joined += cat(i == 0 ? "" : ", ", R"({"prefix": "model_patch.)", i,
                    R"(.", "file": "patch.safetensors", "strength": )", patch.strength,
                    patch.told.empty() ? "" : ", ", patch.told, "}");
    }
    return joined + "]}";
  }
  static std::vector<float> first_of(const Bf16Model& model, const std::vector<float>& all) {
    std::vector<float> kept;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % model.kept[1] < model.kept[0]) kept.push_back(all[i]);
    return kept;
  }
  // The largest error of a step.
  static double largest(const Bf16Model& model, const heddle::Results& results,
                        const std::string& output, const std::vector<float>& all,
                        std::int64_t steps) {
    const auto row = std::ptrdiff_t(all.size()) / steps;
    double most = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::vector<float> wanted(all.begin() + row * step, all.begin() + row * (step + 1));
      const std::vector<float> made =
          first_of(model, results.floats("model.outputs", cat(output, ".", step)));
      most = std::max(most, relative_error(made, wanted));
    }
    return most;
  }
  void compare(const Bf16Model& model, const std::string& name, const TensorFile& golden,
               const heddle::Results& results) {
    const auto* const family = errors.find(model.folder);
    const auto* const known = family == nullptr ? nullptr : family->find(name);
    BOOST_TEST((known != nullptr), model.folder << " " << name << ": not in bf16_errors.json");
    if (known == nullptr) return;
    for (const auto& member : known->members()) {
      if (!model.output.empty() && model.output != member.key) continue;
      const std::string wanted = cat(name, ".", member.key), what = cat(model.folder, " ", wanted);
      const std::int64_t steps = model.output.empty() ? golden.at(wanted).shape[0] : 1;
      const double ours = largest(model, results, model.output.empty() ? member.key : model.made_as,
                                  golden.floats(wanted), steps),
                   ratio = ours / member.value.as_double();
      BOOST_TEST_MESSAGE(what << ": error " << ours << ", of the reference's " << ratio);
      BOOST_TEST(ratio <= kMost, what << ": error " << ours << ", of the reference's " << ratio);
      BOOST_TEST(ours > 1e-4, what << ": error " << ours << ", so this was no bf16");
    }
  }
  void measure(const std::vector<Bf16Model>& models) {
    for (const Bf16Model& model : models) {
      const std::filesystem::path path = file(model),
                                  given = golden_folder(model.folder) / "expected.safetensors";
      const TensorFile golden(given);
      for (const std::string& name : model.cases) {
        const std::string inputs = model.inputs.empty() ? name : model.inputs;
        compare(model, name, golden,
                probe.call(
                    {path, "diffusion_model", config(model), given, inputs + ".", model.without}));
      }
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bf16, Bf16Fixture)

BOOST_AUTO_TEST_CASE(models_of_pictures_are_as_near_to_float32_as_the_references) {
  measure(bf16_image_models());
}

BOOST_AUTO_TEST_CASE(models_of_wan_are_as_near_to_float32_as_the_references) {
  measure(bf16_wan_models());
}

BOOST_AUTO_TEST_CASE(models_of_videos_are_as_near_to_float32_as_the_references) {
  measure(bf16_video_models());
}

BOOST_AUTO_TEST_CASE(every_golden_whose_error_is_known_is_measured) {
  std::set<std::string> rows;
  for (const auto& models : {bf16_image_models(), bf16_wan_models(), bf16_video_models()})
    for (const Bf16Model& model : models)
      for (const std::string& name : model.cases)
        rows.insert(cat(model.folder, " ", name, ".", model.output));
  for (const auto& folder : errors.members())
    for (const auto& golden : folder.value.members())
      for (const auto& output : golden.value.members()) {
        const std::string what = cat(folder.key, " ", golden.key, ".");
        BOOST_TEST((rows.contains(what) || rows.contains(what + output.key)), what + output.key);
      }
}

BOOST_AUTO_TEST_SUITE_END()
