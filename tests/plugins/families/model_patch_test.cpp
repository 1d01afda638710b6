// Model patches in the graphs of tiny denoisers whose weights follow from their names, through the
// engine, against PyTorch (make_patch_goldens.py). Model and patches stand in one file here, as
// they do when a node has joined theirs.
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in random_models_test.cpp, the sines of a high timestep are short of digits.
constexpr double kPatchTolerance = 1e-4;
constexpr int kPatchSteps = 3;

struct PatchFixture {
  struct Applied {
    std::vector<FileTensor> tensors;
    double strength;
  };
  ModelProbe probe;
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/patches/expected.safetensors";
  TensorFile expected{golden};

  static std::vector<FileTensor> patch(const std::string& name) {
    return seeded_model(name, false, "patches");
  }
  heddle::Results call(const std::string& name, std::vector<FileTensor> model,
                       const std::vector<Applied>& patches) {
    std::string config;
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const std::string prefix = heddle::engine::cat("model_patch.", i, ".");
      for (FileTensor tensor : patches[i].tensors) {
        tensor.name = prefix + tensor.name;
        model.push_back(std::move(tensor));
      }
      config += heddle::engine::cat(config.empty() ? "" : ", ", R"({"prefix": ")", prefix,
                                    R"(", "file": "patch.safetensors", "strength": )",
                                    patches[i].strength, "}");
    }
    const std::filesystem::path path = folder / "joined.safetensors";
    write_safetensors(path, model);
    return probe.call({path, "diffusion_model",
                       heddle::engine::cat(R"({"model_patches": [)", config, "]}"), golden,
                       name + "."});
  }
  heddle::Results call_zimage(const std::string& name, const std::vector<Applied>& patches) {
    return call(name, patch("z_image"), patches);
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kPatchSteps);
    for (int step = 0; step < kPatchSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kPatchTolerance, name << ": relative error " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(model_patches, PatchFixture)

BOOST_AUTO_TEST_CASE(three_kinds_of_patches_of_z_image_equal_the_layers_of_diffusers) {
  compare(call_zimage("alone", {{patch("alone"), 0.7}}), "alone");
  compare(call_zimage("beside", {{patch("beside"), 0.8}}), "beside");
  compare(call_zimage("repeated", {{patch("repeated"), 0.6}}), "repeated");
}

BOOST_AUTO_TEST_CASE(two_patches_run_beside_each_other) {
  compare(call_zimage("both", {{patch("alone"), 0.4}, {patch("beside"), -0.5}}), "both");
}

BOOST_AUTO_TEST_CASE(refiners_that_were_never_trained_are_those_that_are_not_there) {
  std::vector<FileTensor> untrained = patch("repeated");
  for (FileTensor tensor : patch("beside"))
    if (tensor.name.starts_with("control_noise_refiner.")) {
      if (tensor.name.find("_proj.") != tensor.name.npos)
        tensor.bytes.assign(tensor.bytes.size(), '\0');
      untrained.push_back(std::move(tensor));
    }
  compare(call_zimage("repeated", {{untrained, 0.6}}), "repeated");
}

BOOST_AUTO_TEST_CASE(queries_keys_and_values_in_one_matrix_give_the_same_bytes) {
  std::vector<FileTensor> fused;
  for (FileTensor tensor : patch("alone")) {
    const std::size_t at = tensor.name.find("to_q.");
    if (at != tensor.name.npos) {
      tensor.name.replace(at, 5, "qkv.");
      tensor.shape[0] *= 3;
    } else if (tensor.name.find("to_k.") != tensor.name.npos ||
               tensor.name.find("to_v.") != tensor.name.npos) {
      FileTensor& whole = *std::ranges::find_if(fused, [&](const FileTensor& one) {
        return one.name.ends_with("qkv.weight") &&
               one.name.substr(0, one.name.find("qkv.")) ==
                   tensor.name.substr(0, tensor.name.find("to_"));
      });
      whole.bytes += tensor.bytes;
      continue;
    }
    const std::pair<const char*, const char*> names[] = {
        {"to_out.0.", "out."}, {"norm_q.", "q_norm."}, {"norm_k.", "k_norm."}};
    for (const auto& [from, to] : names)
      if (const std::size_t place = tensor.name.find(from); place != tensor.name.npos)
        tensor.name.replace(place, std::string(from).size(), to);
    fused.push_back(std::move(tensor));
  }
  // Thirds follow each other: queries, keys, values.
  compare(call_zimage("alone", {{fused, 0.7}}), "alone");
}

BOOST_AUTO_TEST_CASE(patches_of_qwen_image_equal_pytorch) {
  compare(call("qwen", seeded_model("qwen_image.transformer"), {{patch("qwen_edges"), 0.7}}),
          "qwen");
}

BOOST_AUTO_TEST_CASE(what_a_patch_lacks_is_named_with_its_file) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  std::vector<FileTensor> tensors = patch("beside");
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name == "control_layers.2.feed_forward.w2.weight";
  });
  says(engine_refusal([&] {
         call_zimage("beside", {{tensors, 1.0}});
       }),
       {"patch.safetensors does not fit", "'model_patch.0.control_layers.2.feed_forward.w2.weight'",
        "patch.0.layer.2.block"});
  // A layer of no numbers is not taken for an untrained one.
  tensors = patch("beside");
  const auto bias =
      std::ranges::find(tensors, "control_noise_refiner.0.after_proj.bias", &FileTensor::name);
  BOOST_TEST_REQUIRE((bias != tensors.end()));
  *bias = {bias->name, bias->dtype, {0}, ""};
  says(engine_refusal([&] {
         call_zimage("beside", {{tensors, 1.0}});
       }),
       {"'model_patch.0.control_noise_refiner.0.after_proj.bias'", "has shape (0)"});
  tensors = patch("qwen_edges");
  std::erase_if(tensors, [](const FileTensor& tensor) {
    return tensor.name == "controlnet_blocks.1.y_rms.weight";
  });
  says(engine_refusal([&] {
         call("qwen", seeded_model("qwen_image.transformer"), {{tensors, 1.0}});
       }),
       {"patch.safetensors does not fit", "'model_patch.0.controlnet_blocks.1.y_rms.weight'"});
}

BOOST_AUTO_TEST_SUITE_END()
