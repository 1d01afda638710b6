// HunyuanVideo 1.5 and 1.0 with weights that follow from their names, whole and through the engine,
// against what diffusers makes of the same ones (make_hunyuan_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kHunyuanTolerance = 1e-5;
constexpr int kHunyuanSteps = 3;

using Tensors = std::vector<FileTensor>;

// Rows [begin, end) of `count` equal parts of a tensor.
FileTensor rows_of(const FileTensor& tensor, std::int64_t begin, std::int64_t end,
                   std::int64_t count, const std::string& name) {
  FileTensor part{name, tensor.dtype, tensor.shape, {}};
  part.shape[0] = tensor.shape[0] * (end - begin) / count;
  const std::size_t size = tensor.bytes.size() / std::size_t(count);
  part.bytes = tensor.bytes.substr(size * std::size_t(begin), size * std::size_t(end - begin));
  return part;
}

using Spellings = std::vector<std::pair<const char*, const char*>>;
std::string respelled(std::string name, const Spellings& spellings) {
  for (const auto& [here, there] : spellings)
    if (const std::size_t at = name.find(here); at != std::string::npos)
      return name.replace(at, std::string(here).size(), there);
  return name;
}

// As the publisher's files of 1.5 call them.
void name_as_publisher(Tensors& tensors) {
  const Spellings spellings{{"c_embedder.in_layer.", "c_embedder.linear_1."},
                            {"c_embedder.out_layer.", "c_embedder.linear_2."},
                            {".in_layer.", ".mlp.0."},
                            {".out_layer.", ".mlp.2."},
                            {"mod.lin.", "mod.linear."},
                            {"_attn.norm.query_norm.", "_attn_q_norm."},
                            {"_attn.norm.key_norm.", "_attn_k_norm."},
                            {"_attn.proj.", "_attn_proj."},
                            {"mlp.0.", "mlp.fc1."},
                            {"mlp.2.", "mlp.fc2."}};
  Tensors out;
  for (const FileTensor& tensor : tensors) {
    const std::size_t at = tensor.name.find("_attn.qkv.");
    const bool is_fused = at != std::string::npos;
    if (is_fused && tensor.name.starts_with("double_blocks.")) {
      for (int i = 0; i < 3; ++i)
        out.push_back(rows_of(
            tensor, i, i + 1, 3,
            std::string(tensor.name).replace(at, 10, std::string("_attn_") + "qkv"[i] + ".")));
      continue;
    }
    FileTensor renamed = tensor;
    renamed.name = is_fused ? std::string(tensor.name).replace(at, 10, "_attn_qkv.")
                            : respelled(tensor.name, spellings);
    out.push_back(renamed);
  }
  tensors = out;
}

// As diffusers calls those of 1.5.
void name_as_diffusers(Tensors& tensors) {
  const Spellings top{
      {"img_in.proj.", "x_embedder.proj."},
      {"txt_in.t_embedder.in_layer.",
       "context_embedder.time_text_embed.timestep_embedder.linear_1."},
      {"txt_in.t_embedder.out_layer.",
       "context_embedder.time_text_embed.timestep_embedder.linear_2."},
      {"txt_in.c_embedder.in_layer.", "context_embedder.time_text_embed.text_embedder.linear_1."},
      {"txt_in.c_embedder.out_layer.", "context_embedder.time_text_embed.text_embedder.linear_2."},
      {"time_r_in.in_layer.", "time_embed.timestep_embedder_r.linear_1."},
      {"time_r_in.out_layer.", "time_embed.timestep_embedder_r.linear_2."},
      {"time_in.in_layer.", "time_embed.timestep_embedder.linear_1."},
      {"time_in.out_layer.", "time_embed.timestep_embedder.linear_2."},
      {"txt_in.input_embedder.", "context_embedder.proj_in."},
      {"txt_in.individual_token_refiner.blocks.", "context_embedder.token_refiner.refiner_blocks."},
      {"byt5_in.layernorm.", "context_embedder_2.norm."},
      {"byt5_in.fc", "context_embedder_2.linear_"},
      {"vision_in.proj.0.", "image_embedder.norm_in."},
      {"vision_in.proj.1.", "image_embedder.linear_1."},
      {"vision_in.proj.3.", "image_embedder.linear_2."},
      {"vision_in.proj.4.", "image_embedder.norm_out."},
      {"cond_type_embedding.", "cond_type_embed."},
      {"final_layer.adaLN_modulation.1.", "norm_out.linear."},
      {"final_layer.linear.", "proj_out."},
      {"double_blocks.", "transformer_blocks."}};
  const Spellings refiner{{".self_attn.proj.", ".attn.to_out.0."},
                          {".mlp.0.", ".ff.net.0.proj."},
                          {".mlp.2.", ".ff.net.2."},
                          {".adaLN_modulation.1.", ".norm_out.linear."}};
  const Spellings blocks{{".img_mod.lin.", ".norm1.linear."},
                         {".txt_mod.lin.", ".norm1_context.linear."},
                         {".img_attn.norm.query_norm.", ".attn.norm_q."},
                         {".img_attn.norm.key_norm.", ".attn.norm_k."},
                         {".txt_attn.norm.query_norm.", ".attn.norm_added_q."},
                         {".txt_attn.norm.key_norm.", ".attn.norm_added_k."},
                         {".img_attn.proj.", ".attn.to_out.0."},
                         {".txt_attn.proj.", ".attn.to_add_out."},
                         {".img_mlp.0.", ".ff.net.0.proj."},
                         {".img_mlp.2.", ".ff.net.2."},
                         {".txt_mlp.0.", ".ff_context.net.0.proj."},
                         {".txt_mlp.2.", ".ff_context.net.2."}};
  Tensors out;
  for (const FileTensor& tensor : tensors) {
    const std::string name = respelled(tensor.name, top);
    if (name.starts_with("norm_out.")) {
      FileTensor swapped = rows_of(tensor, 1, 2, 2, name);
      swapped.shape = tensor.shape;
      swapped.bytes += rows_of(tensor, 0, 1, 2, name).bytes;
      out.push_back(swapped);
      continue;
    }
    const bool is_refiner = name.find("refiner_blocks.") != std::string::npos;
    const char* const fused = is_refiner                                         ? ".self_attn.qkv."
                              : name.find(".img_attn.qkv.") != std::string::npos ? ".img_attn.qkv."
                                                                                 : ".txt_attn.qkv.";
    if (const std::size_t at = name.find(fused); at != std::string::npos) {
      const bool is_text = std::string(fused) == ".txt_attn.qkv.";
      for (int i = 0; i < 3; ++i) {
        const std::string letter(1, "qkv"[i]);
        out.push_back(rows_of(tensor, i, i + 1, 3,
                              std::string(name).replace(at, std::string(fused).size(),
                                                        is_text ? ".attn.add_" + letter + "_proj."
                                                                : ".attn.to_" + letter + ".")));
      }
      continue;
    }
    FileTensor renamed = tensor;
    renamed.name = is_refiner                                ? respelled(name, refiner)
                   : name.starts_with("transformer_blocks.") ? respelled(name, blocks)
                                                             : name;
    out.push_back(renamed);
  }
  tensors = out;
}

struct HunyuanFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    Tensors tensors = seeded_model(kind, false, "hunyuan");
    change(tensors);
    const std::filesystem::path path = temporary / "hunyuan.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](Tensors&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", "", golden, prefix + ".", without});
  }
  void compare(const std::string& kind, const std::string& clip) {
    const heddle::Results results = call(file(kind), kind + clip);
    const std::vector<float> all = expected.floats(kind + clip + ".out");
    const auto row = std::ptrdiff_t(all.size() / kHunyuanSteps);
    for (int step = 0; step < kHunyuanSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(kind << clip << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kHunyuanTolerance, kind << clip << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan, HunyuanFixture)

BOOST_AUTO_TEST_CASE(the_velocity_of_a_text_equals_diffusers) { compare("later", ".text"); }
BOOST_AUTO_TEST_CASE(the_velocity_of_words_to_be_written_equals_diffusers) {
  compare("later", ".words");
}
BOOST_AUTO_TEST_CASE(the_velocity_of_a_picture_equals_diffusers) { compare("later", ".picture"); }
BOOST_AUTO_TEST_CASE(the_first_version_equals_diffusers) {
  for (const char* clip : {".short", ".long"}) compare("first", clip);
}

// It is told two timesteps, and two latents beside the point.
BOOST_AUTO_TEST_CASE(super_resolution_equals_diffusers_by_all_names) {
  compare("sharpened", "");
  const auto bytes = [&](auto&& change) {
    return call(file("sharpened", change), "sharpened").floats("model.outputs", "out.0");
  };
  const std::vector<float> original = bytes([](Tensors&) {});
  BOOST_TEST(original == bytes(name_as_publisher));
  BOOST_TEST(original == bytes(name_as_diffusers));
}

BOOST_AUTO_TEST_CASE(other_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file("later", change), "later.picture").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](Tensors&) {});
  BOOST_TEST(original == bytes(name_as_publisher));
  BOOST_TEST(original == bytes(name_as_diffusers));
  BOOST_TEST(original == bytes([](Tensors& tensors) {
               for (FileTensor& tensor : tensors)
                 tensor.name = "model.diffusion_model." + tensor.name;
             }));
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const auto settings_of = [&](const char* kind, const char* clip) {
    return heddle::engine::parse_json(call(file(kind), clip).text("model.settings"), "settings");
  };
  const heddle::engine::Json later = settings_of("later", "later.text"),
                             first = settings_of("first", "first.short");
  const auto written = [](const heddle::engine::Json& settings, const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written(later, "family") == "\"hunyuan-video\"");
  BOOST_TEST(written(later, "latent_channels") == "8");
  BOOST_TEST(written(later, "latent_downscale") == "16");
  BOOST_TEST(written(later, "latent_scale") == "1.03682");
  BOOST_TEST(written(later, "concat_channels") == "9");
  BOOST_TEST(written(later, "noise_shift") == "7.0");
  BOOST_TEST(written(later, "vision_width") == "20");
  BOOST_TEST(written(later, "byt5_width") == "24");
  BOOST_TEST(written(first, "latent_downscale") == "8");
  BOOST_TEST(written(first, "guidance_embedded") == "true");
  BOOST_TEST(written(first, "pooled_width") == "12");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("later", change), "later.text"); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  says(refusal([](Tensors& tensors) {
         std::erase_if(tensors, [](const FileTensor& tensor) {
           return tensor.name == "double_blocks.1.txt_mlp.2.weight";
         });
       }),
       {"hunyuan.safetensors", "'double_blocks.1.txt_mlp.2.weight'", "double.1.block", "missing"});
  // Of 1.0 nobody has such a model.
  const auto has_target = [](Tensors& tensors) {
    tensors.push_back(seeded_tensor("time_r_in.in_layer.weight", {4, 4}));
  };
  says(engine_refusal([&] { call(file("first", has_target), "first.short"); }),
       {"MeanFlow", "not supported"});
}

BOOST_AUTO_TEST_SUITE_END()
