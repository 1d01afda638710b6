// Files of published sizes, as headers over a hole (../goldens/true_files.json): the families build
// models of them that take every tensor but those that are of no use here (SAM 3: sam3_test.cpp).
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "engine/base/json.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/plugins/families/true_file_list.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

// What a checkpoint's parts are for. A logit scale and position_ids are of no use here, and a
// projection of OpenCLIP's H is taken, though nobody reads what it makes.
const std::pair<const char*, std::vector<const char*>> kClassicParts[] = {
    {"model.", {"diffusion_model"}},
    {"first_stage_model.", {"vae.decoder", "vae.encoder"}},
    {"embedder.model.visual.", {"vision_encoder"}},
    {"cond_stage_model.model.visual.", {"vision_encoder"}},
    {"cond_stage_model.", {"text_encoder"}},
    {"conditioner.embedders.0.transformer.", {"text_encoder"}},
    {"conditioner.embedders.0.model.", {"text_encoder"}},
    {"conditioner.embedders.0.open_clip.model.visual.", {"vision_encoder"}},
    {"conditioner.embedders.1.model.", {"text_encoder"}},
    {"conditioner.embedders.1.encoder.", {"vae.decoder", "vae.encoder"}}};

constexpr const char* kView = "cc_projection.";

struct TrueFilesFixture {
  TemporaryFolder folder;
  heddle::engine::LoadedPlugins plugins = heddle::engine::load_plugins({HEDDLE_PLUGINS_DIR});
  heddle::engine::Json told = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/true_files.json"), "true_files.json");

  // The tensors that models of these roles read.
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
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(true_files, TrueFilesFixture)

BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_published_files) {
  BOOST_TEST(told.members().size() == std::size(kTrueFiles) + std::size(kTruePatches) + 1);
  for (const TrueFile& wanted : kTrueFiles) {
    const std::filesystem::path path = folder / "file.safetensors";
    const std::vector<FileTensor> tensors = true_tensors(*told.find(wanted.name));
    write_header_only(path, tensors);
    const std::set<std::string> names = taken(heddle::engine::open_checkpoint(path), wanted.roles);
    const std::regex of_no_use(wanted.of_no_use);
    std::size_t left_out = 0;
    for (const FileTensor& tensor : tensors) {
      if (names.count(tensor.name) > 0) continue;
      ++left_out;
      BOOST_TEST(std::regex_match(tensor.name, of_no_use),
                 wanted.name << ": nobody takes '" << tensor.name << "'");
    }
    BOOST_TEST(names.size() + left_out == tensors.size(), wanted.name);
  }
}

BOOST_AUTO_TEST_CASE(denoisers_take_every_tensor_of_published_patches) {
  for (const TruePatch& wanted : kTruePatches) {
    const heddle::engine::Value config =
        heddle::engine::from_json(heddle::engine::parse_json(wanted.config, "config"));
    write_header_only(folder / "model.safetensors", true_tensors(*told.find(wanted.model)));
    const std::vector<FileTensor> tensors = true_tensors(*told.find(wanted.name));
    write_header_only(folder / "patch.safetensors", tensors);
    // Refiners of zeros would be those that were never trained.
    if (const auto plain = heddle::engine::open_checkpoint(folder / "patch.safetensors");
        const auto* bias = plain.find("control_noise_refiner.0.after_proj.bias")) {
      std::fstream file(folder / "patch.safetensors",
                        std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(std::streamoff(bias->file_offset())).write("\x80\x3f", 2);
    }
    const auto patch = heddle::engine::open_checkpoint(folder / "patch.safetensors");
    const std::set<std::string> names = taken(
        heddle::engine::open_checkpoint(folder / "model.safetensors").join(patch, wanted.prefix),
        {"diffusion_model"}, config.get());
    for (const FileTensor& tensor : tensors)
      BOOST_TEST(names.count(wanted.prefix + tensor.name) == 1u,
                 wanted.name << ": nobody takes '" << tensor.name << "'");
  }
}

BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_classic_checkpoints) {
  const heddle::engine::Json classic = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/unet_files.json"), "unet_files.json");
  BOOST_TEST(classic.at("files").members().size() == 19u);
  for (const auto& wanted : classic.at("files").members()) {
    std::vector<FileTensor> tensors;
    for (const auto& part : wanted.value.members())
      add_part(tensors, part.key, classic.at("parts").at(part.value.as_string()), "F16");
    const std::filesystem::path path = folder / "file.safetensors";
    write_header_only(path, tensors);
    const heddle::engine::Checkpoint file = heddle::engine::open_checkpoint(path);
    std::set<std::string> names;
    for (const auto& [prefix, roles] : kClassicParts) {
      const heddle::engine::Checkpoint part = file.strip_prefix(prefix);
      const bool is_seen =
          part.strip_prefix("model.visual.").tensors().size() == part.tensors().size();
      if (part.tensors().empty() || is_seen) continue;
      for (const std::string& name : taken(part, roles)) names.insert(prefix + name);
    }
    // Stable Zero123's, which the loader puts beside its UNet.
    if (const auto view = file.strip_prefix(kView); !view.tensors().empty())
      for (const std::string& name : taken(
               file.strip_prefix("model.diffusion_model.").join(view, kView), {"diffusion_model"}))
        if (name.starts_with(kView)) names.insert(name);
    if (wanted.key.starts_with("diffusion_models/")) names = taken(file, {"diffusion_model"});
    const std::regex of_no_use(R"(.*(\.position_ids|logit_scale))");
    for (const FileTensor& tensor : tensors)
      BOOST_TEST((names.count(tensor.name) > 0) != std::regex_match(tensor.name, of_no_use),
                 wanted.key << ": '" << tensor.name << "'");
  }
}

// What goes with classic checkpoints. Of factors of a LoRA the denoiser says whose they are.
BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_control_nets_of_classic_checkpoints) {
  const heddle::engine::Json classic = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/unet_files.json"), "unet_files.json");
  BOOST_TEST(classic.at("controls").members().size() == 8u);
  for (const auto& wanted : classic.at("controls").members()) {
    std::vector<FileTensor> tensors;
    for (const heddle::engine::Json& part : wanted.value.as_array())
      add_part(tensors, part.as_array().at(0).as_string(),
               classic.at("parts").at(part.as_array().at(1).as_string()), "F16");
    const std::filesystem::path path = folder / "control.safetensors";
    write_header_only(path, tensors);
    const heddle::engine::Checkpoint file = heddle::engine::open_checkpoint(path);
    std::set<std::string> names = taken(file, {"control_net"});
    if (file.find("lora_controlnet") != nullptr) {
      names.insert("lora_controlnet");
      std::vector<FileTensor> denoiser;
      add_part(denoiser, "", classic.at("parts").at("sdxl"), "F16");
      write_header_only(folder / "model.safetensors", denoiser);
      const heddle::engine::Value config = heddle::engine::from_json(
          heddle::engine::parse_json(R"({"joined_control": "control_lora."})", "config"));
      const heddle::engine::Checkpoint joined =
          heddle::engine::open_checkpoint(folder / "model.safetensors").join(file, "control_lora.");
      for (const std::string& name : taken(joined, {"diffusion_model"}, config.get()))
        if (name.starts_with("control_lora.")) names.insert(name.substr(13));
      const heddle::engine::Value model = heddle::engine::build_model(
          *plugins.catalog, "diffusion_model", joined, config.get(), {});
      const heddle::engine::Json settings =
          heddle::engine::to_json(*heddle::engine::get_model(*model)->settings);
      for (const auto& target : settings.at("control_lora_targets").members())
        for (const char* factor : {".up", ".down"}) names.insert(target.key + factor);
    }
    for (const FileTensor& tensor : tensors)
      BOOST_TEST(names.count(tensor.name) == 1u,
                 wanted.key << ": nobody takes '" << tensor.name << "'");
  }
}

// Towers by themselves, and PhotoMaker; of IP-Adapters the denoiser takes what its file does not
// make tokens with.
BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_towers_and_ip_adapters) {
  const heddle::engine::Json classic = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/unet_files.json"), "unet_files.json");
  const auto part_of = [&](const std::string& part) {
    std::vector<FileTensor> tensors;
    add_part(tensors, "", classic.at("parts").at(part), "F16");
    return tensors;
  };
  const auto opened = [&](const char* name, const std::vector<FileTensor>& tensors) {
    const std::filesystem::path path = folder / name;
    write_header_only(path, tensors);
    return heddle::engine::open_checkpoint(path);
  };
  for (const auto& wanted : classic.at("visions").members()) {
    const std::vector<FileTensor> tensors = part_of(wanted.value.at("").as_string());
    const std::set<std::string> names = taken(opened("tower", tensors), {"vision_encoder"});
    for (const FileTensor& tensor : tensors)
      BOOST_TEST((names.count(tensor.name) > 0) != tensor.name.ends_with("position_ids"),
                 wanted.key << ": '" << tensor.name << "'");
  }
  for (const auto& wanted : classic.at("photo_makers").members()) {
    const std::vector<FileTensor> tensors = part_of(wanted.value.at("id_encoder.").as_string());
    const std::set<std::string> names = taken(opened("maker", tensors), {"photo_maker"});
    for (const FileTensor& tensor : tensors)
      BOOST_TEST((names.count(tensor.name) > 0) != tensor.name.ends_with("position_ids"),
                 wanted.key << ": '" << tensor.name << "'");
  }
  const heddle::engine::Value config = heddle::engine::from_json(heddle::engine::parse_json(
      R"({"adapters": [{"prefix": "adapter.0.", "file": "adapter", "scaling": "V only", "each": 4,
          "weights": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}]})",
      "config"));
  BOOST_TEST(classic.at("adapters").members().size() == 11u);
  for (const auto& wanted : classic.at("adapters").members()) {
    const std::vector<FileTensor> tensors = part_of(wanted.value.at("").as_string());
    const heddle::engine::Checkpoint file = opened("adapter", tensors);
    std::set<std::string> names = taken(file, {"ip_adapter"});
    const bool is_sdxl = wanted.key.find("sdxl") != std::string::npos;
    const heddle::engine::Checkpoint joined =
        opened("model", part_of(is_sdxl ? "sdxl" : "sd1")).join(file, "adapter.0.");
    for (const std::string& name : taken(joined, {"diffusion_model"}, config.get()))
      if (name.starts_with("adapter.0.")) names.insert(name.substr(10));
    for (const FileTensor& tensor : tensors)
      BOOST_TEST(names.count(tensor.name) == 1u,
                 wanted.key << ": nobody takes '" << tensor.name << "'");
  }
}

// What makes objects of boxes, and attentions of a UNet; how strong these are is read as it is
// built.
BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_gligen) {
  const heddle::engine::Json classic = heddle::engine::parse_json(
      read_text(tests_folder() / "plugins/goldens/unet_files.json"), "unet_files.json");
  std::vector<FileTensor> tensors, denoiser;
  add_part(tensors, "", classic.at("parts").at("gligen"), "F16");
  add_part(denoiser, "", classic.at("parts").at("sd1"), "F16");
  write_header_only(folder / "gligen.safetensors", tensors);
  write_header_only(folder / "model.safetensors", denoiser);
  const heddle::engine::Checkpoint file =
      heddle::engine::open_checkpoint(folder / "gligen.safetensors");
  std::set<std::string> names = taken(file, {"gligen"});
  const std::string prefix = "gligen.0.";
  const heddle::engine::Value config = heddle::engine::from_json(heddle::engine::parse_json(
      R"({"gligens": [{"prefix": "gligen.0.", "file": "gligen"}]})", "config"));
  for (const std::string& name :
       taken(heddle::engine::open_checkpoint(folder / "model.safetensors").join(file, prefix),
             {"diffusion_model"}, config.get()))
    if (name.starts_with(prefix)) names.insert(name.substr(prefix.size()));
  for (const FileTensor& tensor : tensors)
    BOOST_TEST((names.count(tensor.name) > 0) != (tensor.name.find(".alpha_") != std::string::npos),
               "'" << tensor.name << "'");
  BOOST_TEST(tensors.size() == 8u + 16u * 17u);
}

BOOST_AUTO_TEST_SUITE_END()
