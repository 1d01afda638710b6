// FLUX.2 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_flux2_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in qwen_image_test.cpp: the sines of a high timestep are short of digits. A wrong term gives
// 1e-2 or more.
constexpr double kFlux2Tolerance = 2e-5;
constexpr int kFlux2Steps = 3;

struct Flux2Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/flux2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const char* model, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, false, "flux2");
    change(tensors);
    const std::filesystem::path path = temporary / "flux2.safetensors";
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
  void compare(const heddle::Results& results, const std::string& shape) const {
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kFlux2Steps);
    for (int step = 0; step < kFlux2Steps; ++step)
      compare(results.floats("model.outputs", "out." + std::to_string(step)),
              {all.begin() + row * step, all.begin() + row * (step + 1)},
              shape + ".out, step " + std::to_string(step));
  }
  static void compare(const std::vector<float>& got, const std::vector<float>& wanted,
                      const std::string& name) {
    const double error = relative_error(got, wanted);
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kFlux2Tolerance, name << ": relative error " << error);
  }
};

FileTensor rows_of(const FileTensor& tensor, std::string name, std::int64_t begin,
                   std::int64_t end) {
  const std::size_t row = tensor.bytes.size() / std::size_t(tensor.shape[0]);
  return {std::move(name),
          tensor.dtype,
          {end - begin, tensor.shape[1]},
          tensor.bytes.substr(std::size_t(begin) * row, std::size_t(end - begin) * row)};
}

std::string replaced_by(std::string text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  return text;
}

// The tensors under diffusers' names: queries, keys and values of double blocks apart, the halves
// of the last modulation the other way round.
void name_flux2_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> names[] = {
      {"single_blocks.", "single_transformer_blocks."},
      {"double_blocks.", "transformer_blocks."},
      {"linear1.", "attn.to_qkv_mlp_proj."},
      {"linear2.", "attn.to_out."},
      {"img_attn.norm.query_norm.scale", "attn.norm_q.weight"},
      {"img_attn.norm.key_norm.scale", "attn.norm_k.weight"},
      {"txt_attn.norm.query_norm.scale", "attn.norm_added_q.weight"},
      {"txt_attn.norm.key_norm.scale", "attn.norm_added_k.weight"},
      {".norm.query_norm.scale", ".attn.norm_q.weight"},
      {".norm.key_norm.scale", ".attn.norm_k.weight"},
      {"img_attn.proj", "attn.to_out.0"},
      {"txt_attn.proj", "attn.to_add_out"},
      {"img_mlp.0", "ff.linear_in"},
      {"img_mlp.2", "ff.linear_out"},
      {"txt_mlp.0", "ff_context.linear_in"},
      {"txt_mlp.2", "ff_context.linear_out"},
      {"img_in.", "x_embedder."},
      {"txt_in.", "context_embedder."},
      {"time_in.in_layer", "time_guidance_embed.timestep_embedder.linear_1"},
      {"time_in.out_layer", "time_guidance_embed.timestep_embedder.linear_2"},
      {"guidance_in.in_layer", "time_guidance_embed.guidance_embedder.linear_1"},
      {"guidance_in.out_layer", "time_guidance_embed.guidance_embedder.linear_2"},
      {"_modulation_img.lin.", "_modulation_img.linear."},
      {"_modulation_txt.lin.", "_modulation_txt.linear."},
      {"_stream_modulation.lin.", "_stream_modulation.linear."},
      {"final_layer.adaLN_modulation.1", "norm_out.linear"},
      {"final_layer.linear", "proj_out"}};
  std::vector<FileTensor> renamed;
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : names) tensor.name = replaced_by(tensor.name, from, to);
    const std::int64_t rows = tensor.shape[0];
    if (tensor.name.find("attn.qkv.") != std::string::npos) {
      const bool is_text = tensor.name.find("txt_") != std::string::npos;
      const char* const parts[2][3] = {
          {"attn.to_q.", "attn.to_k.", "attn.to_v."},
          {"attn.add_q_proj.", "attn.add_k_proj.", "attn.add_v_proj."}};
      for (int third = 0; third < 3; ++third)
        renamed.push_back(
            rows_of(tensor,
                    replaced_by(tensor.name, is_text ? "txt_attn.qkv." : "img_attn.qkv.",
                                parts[is_text][third]),
                    rows / 3 * third, rows / 3 * (third + 1)));
    } else {
      if (tensor.name == "norm_out.linear.weight")
        tensor.bytes =
            rows_of(tensor, "", rows / 2, rows).bytes + rows_of(tensor, "", 0, rows / 2).bytes;
      renamed.push_back(tensor);
    }
  }
  tensors = std::move(renamed);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux2, Flux2Fixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers_for_several_shapes_texts_and_pictures_shown) {
  const heddle::Results square = call(file("klein"), "klein_square", R"({"expose_blocks": true})");
  compare(square, "klein_square");
  for (const std::string block : {"double.0.img", "double.1.img"})
    compare(square.floats("model.outputs", block + ".2"), expected.floats("klein_square." + block),
            block);
  compare(call(file("klein"), "klein_wide", R"({"least_text_tokens": 2})"), "klein_wide");
  compare(call(file("klein"), "klein_shown"), "klein_shown");
  compare(call(file("dev"), "dev_odd"), "dev_odd");
}

BOOST_AUTO_TEST_CASE(references_have_the_timestep_0_and_what_is_made_of_them_may_be_kept) {
  const std::filesystem::path model = file("klein");
  const std::string plain = R"({"least_text_tokens": 2})",
                    keeps = R"({"least_text_tokens": 2, "keeps_references": true})";
  compare(call(model, "klein_timed", plain), "klein_timed");
  const heddle::Results first = call(model, "klein_timed", keeps);
  compare(first, "klein_timed");
  for (const std::string name :
       {"kept.double.0", "kept.double.1", "kept.single.0", "kept.single.1"})
    compare(first.floats("model.outputs", name + ".0"), expected.floats("klein_kept." + name),
            name);
  compare(call(model, "klein_kept", keeps), "klein_kept");
  BOOST_TEST(relative_error(expected.floats("klein_kept.out"), expected.floats("klein_timed.out")) >
             10 * kFlux2Tolerance);
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("dev", change), "dev_odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_flux2_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const auto settings_of = [&](const char* model, const char* prefix) {
    return heddle::engine::parse_json(call(file(model), prefix).text("model.settings"), "settings");
  };
  const heddle::engine::Json klein = settings_of("klein", "klein_shown");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*klein.find(key));
  };
  BOOST_TEST(written("family") == "\"flux2\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("latent_downscale") == "16");
  BOOST_TEST(written("latent_scale") == "1.0");
  BOOST_TEST(written("context_width") == "72");
  BOOST_TEST(written("guidance_embedded") == "false");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("noise_mu") == "2.02");
  BOOST_TEST(written("reference_step") == "10");
  BOOST_TEST(heddle::engine::write_json(*settings_of("dev", "dev_odd").find("guidance_embedded")) ==
             "true");
}

BOOST_AUTO_TEST_CASE(what_is_missing_wrong_or_not_supported_is_said) {
  const auto refusal = [&](const std::filesystem::path& model, const std::string& config = "") {
    return engine_refusal([&] { call(model, "klein_shown", config); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  using Tensors = std::vector<FileTensor>;
  const auto cut = [](const char* name) {
    return [name](Tensors& tensors) {
      for (FileTensor& tensor : tensors)
        if (tensor.name == name) tensor = rows_of(tensor, name, 0, tensor.shape[0] - 2);
    };
  };
  says(refusal(file("klein",
                    [](Tensors& tensors) {
                      std::erase_if(tensors, [](const FileTensor& tensor) {
                        return tensor.name == "single_blocks.1.linear2.weight";
                      });
                    })),
       {"flux2.safetensors", "'single_blocks.1.linear2.weight'", "single.1.block", "missing"});
  says(
      refusal(file("klein", cut("double_stream_modulation_txt.lin.weight"))),
      {"'double_stream_modulation_txt.lin.weight'", "modulation.double", "(286, 48)", "(288, 48)"});
  says(refusal(file("klein", cut("final_layer.linear.weight"))), {"reads 16", "makes 14"});
  says(refusal(file("klein"), R"({"axes_dims_rope": [4, 6, 6]})"), {"3 axes", "4"});
  says(refusal(file("klein"), R"({"axes_dims_rope": [4, 4, 4, 6]})"),
       {"(4, 4, 4, 6)", "head of size 16"});
}

BOOST_AUTO_TEST_SUITE_END()
