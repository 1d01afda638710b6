// Files in 4 and 8 bits that ComfyUI's templates ask for, as headers over a hole: which loader and
// family takes each. Names and shapes are those of the same models in 16 bits (true_files.json),
// where each matrix of a numbered layer stands in ComfyUI's form (engine/files/packed_rows.h), with
// all that this form has beside it: no file itself was at hand.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

enum class Packing { nvfp4_awq, fp4_mixed, fp8_mixed, int8_convrot, w4a8 };

struct QuantisedFile {
  const char *name, *base;
  Packing packing;
  std::vector<const char*> roles;
  const char* of_no_use;  // a pattern of names
};
// lm_head writes texts, and spiece_model is a tokenizer.
const QuantisedFile kQuantisedFiles[] = {
    {"text_encoders/gemma_3_12B_it_fp4_mixed",
     "text_encoders/gemma_3_12B_it",
     Packing::fp4_mixed,
     {"text_encoder", "vision_encoder"},
     "spiece_model"},
    {"text_encoders/qwen3vl_32b_minimax_h3_nvfp4_awq",
     "text_encoders/qwen3vl_32b_bf16",
     Packing::nvfp4_awq,
     {"text_encoder", "vision_encoder"},
     R"(lm_head\.weight)"},
    {"text_encoders/gemma4-12b-with-proj-ltx-2.5-comfy-int8-convrot",
     "text_encoders/gemma4-12b-with-proj-ltx-2.5-bf16",
     Packing::int8_convrot,
     {"text_encoder", "vision_encoder"},
     R"(tokenizer_json|hf_asset__.*|audio_projector\..*|text_embedding_projection\..*)"},
    {"text_encoders/gemma4_e2b_it_int8_convrot",
     "text_encoders/gemma4_e2b_it_bf16",
     Packing::int8_convrot,
     {"text_encoder", "vision_encoder"},
     kBesideGemma4},
    {"text_encoders/gemma4_e2b_it_fp8_scaled",
     "text_encoders/gemma4_e2b_it_bf16",
     Packing::fp8_mixed,
     {"text_encoder", "vision_encoder"},
     kBesideGemma4},
    {"diffusion_models/ltx-2.5-22b-distilled-transformer-comfy-int8-convrot",
     "diffusion_models/ltx-2.5-22b-distilled-transformer-bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/minimax_h3_fl2va_pruned_int8_convrot",
     "diffusion_models/minimax_h3_fl2va_pruned_bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/seedvr2_3b_int8_convrot",
     "diffusion_models/seedvr2_3b_fp16",
     Packing::int8_convrot,
     {"diffusion_model"},
     kBesideSeedvr},
    {"diffusion_models/seedvr2_7b_int8_convrot",
     "diffusion_models/seedvr2_7b_fp16",
     Packing::int8_convrot,
     {"diffusion_model"},
     kBesideSeedvr},
    {"text_encoders/qwen3vl_8b_int8_convrot",
     "text_encoders/qwen3vl_8b_bf16",
     Packing::int8_convrot,
     {"text_encoder", "vision_encoder"},
     R"(lm_head\.weight)"},
    {"text_encoders/qwen3vl_4b_int8_convrot",
     "text_encoders/qwen3vl_4b_fp8_scaled",
     Packing::int8_convrot,
     {"text_encoder", "vision_encoder"},
     ""},
    {"text_encoders/qwen3.5_9b_qwen_image_2.1_pe_t2i.int8_convrot",
     "text_encoders/qwen3.5_9b_bf16",
     Packing::int8_convrot,
     {"text_encoder", "vision_encoder"},
     R"(lm_head\.weight)"},
    {"text_encoders/qwen3.5_9b_flux3_prompt_upsampler_w4a8",
     "text_encoders/qwen3.5_9b_bf16",
     Packing::w4a8,
     {"text_encoder", "vision_encoder"},
     R"(lm_head\.weight)"},
    {"diffusion_models/qwen_image_2.1_int8_convrot",
     "diffusion_models/qwen_image_2.1_bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/qwen_image_2.1_turbo_int8_convrot",
     "diffusion_models/qwen_image_2.1_bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/qwen_image_edit_2511_int8_convrot",
     "diffusion_models/qwen_image_fp8_e4m3fn",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/qwen_image_layered_fp8mixed",
     "diffusion_models/qwen_image_layered_bf16",
     Packing::fp8_mixed,
     {"diffusion_model"},
     ""},
    {"diffusion_models/flux3-image-klein-int8-convrot",
     "diffusion_models/flux3-image-klein",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/flux3-image-klein-base-int8-convrot",
     "diffusion_models/flux3-image-klein-base",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/z_image_turbo_int8_convrot",
     "diffusion_models/z_image_turbo_bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/z_image_int8_convrot",
     "diffusion_models/z_image_bf16",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
    {"diffusion_models/krea2_turbo_int8_convrot",
     "diffusion_models/krea2_turbo_fp8_scaled",
     Packing::int8_convrot,
     {"diffusion_model"},
     ""},
};

std::int64_t filled_up_to(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

// What stands in a file for a matrix (rows, columns), with what says how it is read.
std::vector<FileTensor> packed_matrix(const FileTensor& matrix, Packing packing) {
  const std::int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  const std::string module = matrix.name.substr(0, matrix.name.size() - 7);
  const auto beside = [&](const char* name, const char* type, std::vector<std::int64_t> shape) {
    return FileTensor{cat(module, ".", name), type, std::move(shape)};
  };
  const auto told = [&](const std::string& text) {
    return FileTensor{
        cat(module, ".comfy_quant"), "U8", {static_cast<std::int64_t>(text.size())}, text};
  };
  if (packing == Packing::int8_convrot)
    return {{matrix.name, "I8", matrix.shape},
            beside("weight_scale", "F32", {rows, 1}),
            told(R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256})")};
  if (packing == Packing::w4a8)
    return {{matrix.name, "I8", {rows, columns / 2}},
            beside("weight_s_rel", "F8_E4M3", {rows, columns / 16}),
            beside("weight_s_channel", "F32", {rows, 1}),
            beside("weight_codebook", "F32", {16}),
            told(R"({"format": "asym_w4a8_int8", "group_size": 16, "convrot_groupsize": 256})")};
  const bool is_down = matrix.name.ends_with("down_proj.weight");
  if (packing == Packing::fp8_mixed || (packing == Packing::fp4_mixed && is_down))
    return {{matrix.name, "F8_E4M3", matrix.shape},
            beside("weight_scale", "F32", {}),
            told(R"({"format": "float8_e4m3fn"})")};
  std::vector<FileTensor> all{
      {matrix.name, "U8", {rows, columns / 2}},
      beside("weight_scale", "F8_E4M3", {filled_up_to(rows, 128), filled_up_to(columns / 16, 4)}),
      beside("weight_scale_2", "F32", {}),
      told(R"({"format": "nvfp4"})")};
  if (packing == Packing::nvfp4_awq) all.push_back(beside("pre_quant_scale", "BF16", {columns}));
  return all;
}

bool is_packed_there(const FileTensor& tensor) {
  static const std::regex numbered(R"(.*\.\d+\..*\.weight)");
  constexpr std::int64_t kRotated = 256;
  return tensor.shape.size() == 2 && tensor.shape[1] % kRotated == 0 &&
         std::regex_match(tensor.name, numbered);
}

// Writes what tensors say and have, over a hole.
void write_hollow(const std::filesystem::path& path, const std::vector<FileTensor>& tensors) {
  std::filesystem::create_directories(path.parent_path());
  write_header_only(path, tensors);
  std::uint64_t data = 0;
  for (const FileTensor& tensor : tensors) data += bytes_of(tensor);
  std::uint64_t at = std::filesystem::file_size(path) - data;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const FileTensor& tensor : tensors) {
    if (!tensor.bytes.empty())
      file.seekp(std::streamoff(at))
          .write(tensor.bytes.data(), std::streamsize(tensor.bytes.size()));
    at += bytes_of(tensor);
  }
  BOOST_TEST_REQUIRE(file.good(), path);
}

struct QuantisedFilesFixture {
  TemporaryFolder folder;
  heddle::engine::LoadedPlugins plugins = heddle::engine::load_plugins({HEDDLE_PLUGINS_DIR});
  heddle::engine::Json told = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");

  // Those of the file in 16 bits.
  std::vector<FileTensor> plain_tensors(const char* base) const {
    std::vector<FileTensor> tensors = true_tensors(*told.find(base));
    std::erase_if(tensors,
                  [](const FileTensor& tensor) { return tensor.name.ends_with(".weight_scale"); });
    for (FileTensor& tensor : tensors)
      if (tensor.dtype == "F8_E4M3") tensor.dtype = "BF16";
    return tensors;
  }
  std::filesystem::path path_of(const char* name) const {
    return folder / "models" / cat(name, ".safetensors");
  }
  void write(const QuantisedFile& wanted) const {
    std::vector<FileTensor> tensors;
    for (const FileTensor& tensor : plain_tensors(wanted.base)) {
      if (!is_packed_there(tensor)) {
        tensors.push_back(tensor);
        continue;
      }
      for (FileTensor& part : packed_matrix(tensor, wanted.packing))
        tensors.push_back(std::move(part));
    }
    write_hollow(path_of(wanted.name), tensors);
  }
  std::set<std::string> taken(const heddle::engine::Checkpoint& file,
                              const std::vector<const char*>& roles,
                              const heddle_value* config = nullptr) const {
    std::set<std::string> names;
    for (const char* role : roles) {
      const heddle::engine::Value model =
          heddle::engine::build_model(*plugins.catalog, role, file, config, {});
      for (const auto& node : heddle::engine::get_model(*model)->graph->nodes)
        for (const auto& parts : node.weights)
          for (const auto& part : parts) names.insert(part.tensor);
    }
    return names;
  }
  void write_named(const std::string& name) const {
    for (const QuantisedFile& wanted : kQuantisedFiles)
      if (name == wanted.name) write(wanted);
  }
  // Loads a file by a node, and nothing of its weights.
  void load(const std::string& node) const {
    heddle::EngineOptions options = engine_options();
    options.model_dirs = {folder / "models"};
    heddle::Engine engine(options);
    engine
        .start(
            engine.parse(cat(
                "{\"loader\": ", node,
                R"(, "look": {"class_type": "test.look", "inputs": {"value": ["loader", 0]}}})")),
            {{}, {}})
        .wait();
  }
  void load_text_encoder(const std::string& name, const std::string& type) const {
    load(cat(R"({"class_type": "CLIPLoader", "inputs": {"clip_name": ")", name,
             R"(.safetensors", "type": ")", type, R"("}})"));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quantised_files, QuantisedFilesFixture)

BOOST_AUTO_TEST_CASE(families_take_every_matrix_of_quantised_files_and_leave_nothing_over) {
  for (const QuantisedFile& wanted : kQuantisedFiles) {
    write(wanted);
    const heddle::engine::Checkpoint file = heddle::engine::open_checkpoint(path_of(wanted.name));
    const std::set<std::string> names = taken(file, wanted.roles);
    const std::regex of_no_use(wanted.of_no_use);
    std::size_t packed = 0, tensors = 0;
    for (const FileTensor& tensor : plain_tensors(wanted.base)) {
      const auto* found = file.find(tensor.name);
      BOOST_TEST_REQUIRE(found != nullptr, wanted.name << ": '" << tensor.name << "'");
      BOOST_TEST((names.count(tensor.name) > 0) != std::regex_match(tensor.name, of_no_use),
                 wanted.name << ": '" << tensor.name << "'");
      // As numbers it has the shape that it has in 16 bits.
      BOOST_TEST(found->shape == tensor.shape, wanted.name << ": '" << tensor.name << "'");
      ++tensors;
      if (!is_packed_there(tensor)) continue;
      tensors += packed_matrix(tensor, wanted.packing).size() - 1;
      packed += found->packed != nullptr || found->dtype == heddle::engine::DType::f8_e4m3 ? 1 : 0;
      BOOST_TEST((found->packed != nullptr || found->dtype == heddle::engine::DType::f8_e4m3),
                 wanted.name << ": '" << tensor.name << "' is not read as what it is");
    }
    BOOST_TEST_MESSAGE(wanted.name << ": " << packed << " matrices");
    BOOST_TEST(packed > 100u, wanted.name);
    // Beside those nothing but what tells how they are read.
    BOOST_TEST(file.tensors().size() == tensors, wanted.name);
  }
}

// Beside a model in 8 bits, too.
BOOST_AUTO_TEST_CASE(a_model_patch_in_8_bits_joins_its_model_and_leaves_nothing_over) {
  const QuantisedFile wanted{"model_patches/minimax_h3_fun_controlnet_union_pruned_int8_convrot",
                             "model_patches/minimax_h3_fun_controlnet_union_pruned_bf16",
                             Packing::int8_convrot,
                             {},
                             ""};
  const std::string model = "diffusion_models/minimax_h3_fl2va_pruned_int8_convrot",
                    prefix = "model_patch.0.";
  write(wanted);
  write_named(model);
  const heddle::engine::Value config = heddle::engine::from_json(heddle::engine::parse_json(
      R"({"model_patches": [{"prefix": "model_patch.0.", "file": "patch", "strength": 1.0,
          "of_table": true, "places": [0, 10, 20, 30, 40]}]})",
      "config"));
  const heddle::engine::Checkpoint patch = heddle::engine::open_checkpoint(path_of(wanted.name));
  const std::set<std::string> names =
      taken(heddle::engine::open_checkpoint(path_of(model.c_str())).join(patch, prefix),
            {"diffusion_model"}, config.get());
  std::size_t packed = 0;
  for (const FileTensor& tensor : plain_tensors(wanted.base)) {
    BOOST_TEST(names.count(prefix + tensor.name) == 1u, "nobody takes '" << tensor.name << "'");
    const auto* found = patch.find(tensor.name);
    BOOST_TEST_REQUIRE(found != nullptr, tensor.name);
    BOOST_TEST(found->shape == tensor.shape, tensor.name);
    packed += found->packed != nullptr ? 1 : 0;
  }
  // Five of each layer, and one of the first.
  BOOST_TEST(packed == 26u);
  BOOST_CHECK_NO_THROW(load(R"({"class_type": "ModelPatchLoader", "inputs": {"name":
              "minimax_h3_fun_controlnet_union_pruned_int8_convrot.safetensors"}})"));
}

BOOST_AUTO_TEST_CASE(loaders_take_quantised_files_by_their_content) {
  for (const QuantisedFile& wanted : kQuantisedFiles) {
    const std::string name = wanted.name;
    if (!name.starts_with("diffusion_models/")) continue;
    write(wanted);
    BOOST_CHECK_NO_THROW(load(cat(R"({"class_type": "UNETLoader", "inputs": {"unet_name": ")",
                                  name.substr(name.find('/') + 1),
                                  R"(.safetensors", "weight_dtype": "default"}})")));
  }
  write_named("text_encoders/qwen3vl_8b_int8_convrot");
  BOOST_CHECK_NO_THROW(load_text_encoder("qwen3vl_8b_int8_convrot", "qwen_image"));
  write_named("text_encoders/gemma4-12b-with-proj-ltx-2.5-comfy-int8-convrot");
  write_named("text_encoders/gemma4_e2b_it_int8_convrot");
  for (const char* name :
       {"gemma4-12b-with-proj-ltx-2.5-comfy-int8-convrot", "gemma4_e2b_it_int8_convrot"})
    BOOST_CHECK_NO_THROW(load_text_encoder(name, "ltxv"));
  write_named("text_encoders/qwen3vl_4b_int8_convrot");
  write_named("text_encoders/qwen3vl_32b_minimax_h3_nvfp4_awq");
  BOOST_CHECK_NO_THROW(load_text_encoder("qwen3vl_32b_minimax_h3_nvfp4_awq", "minimax"));
  write_named("text_encoders/qwen3.5_9b_qwen_image_2.1_pe_t2i.int8_convrot");
  write_named("text_encoders/qwen3.5_9b_flux3_prompt_upsampler_w4a8");
  for (const char* type : {"stable_diffusion", "qwen_image"})
    BOOST_CHECK_NO_THROW(load_text_encoder("qwen3.5_9b_qwen_image_2.1_pe_t2i.int8_convrot", type));
  BOOST_CHECK_NO_THROW(load_text_encoder("qwen3.5_9b_flux3_prompt_upsampler_w4a8", "flux3"));
  for (const char* type : {"flux3", "krea2"})
    BOOST_CHECK_NO_THROW(load_text_encoder("qwen3vl_4b_int8_convrot", type));
}

BOOST_AUTO_TEST_CASE(files_of_models_that_are_not_supported_are_refused_with_what_they_are) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const std::string h3 = "qwen3vl_32b_minimax_h3_nvfp4_awq";
  write_named("text_encoders/" + h3);
  says(engine_refusal([&] { load_text_encoder(h3, "joyimage"); }),
       {h3.c_str(), "qwen3vl", "5120", "JoyImage"});
  const std::string enhancer = "qwen3.5_9b_flux3_prompt_upsampler_w4a8";
  write_named("text_encoders/" + enhancer);
  says(engine_refusal([&] { load_text_encoder(enhancer, "moss_image"); }),
       {enhancer.c_str(), "qwen3.5", "4096", "MOSS-Image"});
}

BOOST_AUTO_TEST_SUITE_END()
