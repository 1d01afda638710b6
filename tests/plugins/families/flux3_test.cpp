// FLUX 3 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_flux3_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in flux2_test.cpp: the sines of a high timestep are short of digits.
constexpr double kFlux3Tolerance = 2e-5;
constexpr int kFlux3Steps = 3;

struct Flux3Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/flux3/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const char* model, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, false, "flux3");
    change(tensors);
    const std::filesystem::path path = temporary / "flux3.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const char* model) const {
    return file(model, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& config = "") {
    return probe.call({model, "diffusion_model", config, golden, prefix + "."});
  }
  void compare(const char* model, const std::string& shape) {
    const heddle::Results results = call(file(model), shape);
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kFlux3Steps);
    for (int step = 0; step < kFlux3Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kFlux3Tolerance, shape << ", step " << step << ": " << error);
    }
  }
};

// The tensors under diffusers' names; the halves of the last modulation are the other way round.
void name_flux3_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> names[] = {
      {"emb_in.", "x_embedders."},
      {"txt_in.", "context_embedder."},
      {"ref_time_in.in_layer.", "target_timestep_embedder.linear_1."},
      {"ref_time_in.out_layer.", "target_timestep_embedder.linear_2."},
      {"time_in.in_layer.", "timestep_embedder.linear_1."},
      {"time_in.out_layer.", "timestep_embedder.linear_2."},
      {"final_layer.image.linear.", "proj_out."},
      {"final_layer.image.adaLN_modulation.1.", "norm_out.linear."},
      {"content_mode_blocks.", "mode_blocks."},
      {"single_blocks.", "single_transformer_blocks."},
      {".q_proj.", ".attn.to_q."},
      {".k_proj.", ".attn.to_k."},
      {".v_proj.", ".attn.to_v."},
      {".attn_out.", ".attn.to_out.0."},
      {".mlp_in.", ".ff.linear_in."},
      {".mlp_out.", ".ff.linear_out."},
      {".norm.query_norm.scale", ".attn.norm_q.weight"},
      {".norm.key_norm.scale", ".attn.norm_k.weight"},
      {".lin.weight", ".linear.weight"}};
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : names)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::string(from).size(), to);
    const std::size_t half = tensor.bytes.size() / 2;
    if (tensor.name == "norm_out.linear.weight")
      tensor.bytes = tensor.bytes.substr(half) + tensor.bytes.substr(0, half);
  }
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux3, Flux3Fixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers_of_texts_and_of_pictures_shown) {
  compare("base", "base_square");
  compare("base", "base_wide");
  compare("base", "base_shown");
}

BOOST_AUTO_TEST_CASE(a_distilled_model_is_told_the_level_that_a_step_goes_to) {
  compare("distilled", "distilled_odd");
  compare("distilled", "distilled_shown");
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("distilled", change), "distilled_shown").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_flux3_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(file("base"), "base_square").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"flux3\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_downscale") == "16");
  BOOST_TEST(written("context_width") == "192");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("reference_step") == "-1");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](const std::filesystem::path& model, const std::string& config = "") {
    return engine_refusal([&] { call(model, "base_square", config); });
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
  says(refusal(file("base", without("single_blocks.1.mlp_out.weight"))),
       {"flux3.safetensors", "'single_blocks.1.mlp_out.weight'", "single.1.block", "missing"});
  says(refusal(file("base", without("content_mode_blocks.image_cond.0.v_proj.weight"))),
       {"'content_mode_blocks.image_cond.0.v_proj.weight'", "reference.0.block"});
  says(refusal(file("base",
                    [](std::vector<FileTensor>& tensors) {
                      for (FileTensor& tensor : tensors)
                        if (tensor.name == "early_stream_modulations.txt.lin.weight") {
                          tensor.shape[0] -= 2;
                          tensor.bytes.resize(tensor.bytes.size() - 4 * 2 * 48);
                        }
                    })),
       {"'early_stream_modulations.txt.lin.weight'", "modulation.early.text", "(142, 48)",
        "(144, 48)"});
  says(refusal(file("base"), R"({"axes_dims_rope": [4, 6, 6]})"), {"head of size 16", "4 even"});
}

BOOST_AUTO_TEST_SUITE_END()
