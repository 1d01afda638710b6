#include "vision_loader_nodes.h"

#include <filesystem>
#include <string>
#include <vector>

#include <heddle/joined_model.hpp>
#include <heddle/model.hpp>

#include "joined_convolutions.h"
#include "model_files.h"
#include "model_roles.h"
#include "plugins/blocks/unet_config.h"

namespace heddle::loaders {
namespace {

constexpr const char* kDifference = "difference";

Value loaded(Context& ctx, const char* role, const Checkpoint& file) {
  return Record().set("model", build_for(ctx, role, file, Value())).value();
}

Value upscaler(Context& ctx, const Checkpoint& file) {
  const Value config = Record().set("joins", value_of(true)).value();
  const Value model = build_for(ctx, "upscaler", file, config);
  return Record().set("model", with_joined_convolutions(model)).value();
}

Checkpoint open_named(Context& ctx, const Input<std::string>& input) {
  return Checkpoint::open(find_file(ctx, input.widget.source, ctx[input]).string());
}

// Networks have their widths as first parts of their names.
void check_hypernetwork(const Checkpoint& file) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits != name.npos && digits > 0 && name[digits] == '.') return;
  }
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file.path() +
                  ": this is no hypernetwork: no tensor's name begins with the width of "
                  "what it changes, as '768.0.linear.0.weight'.");
}

// As in ComfyUI, ControlNets of shuffled pictures are known by their name: their residuals are
// means.
Value control_net_of(Context& ctx, const Checkpoint& file) {
  const std::string name = std::filesystem::path(file.path()).stem().string();
  Record config;
  if (name.ends_with("_shuffle") || name.ends_with("_shuffle_fp16"))
    config.set("averages", value_of(true));
  return Record().set("model", build_for(ctx, "control_net", file, config.value())).value();
}

// Its family builds the ControlNet of both files; then each difference is added to what it is of.
Value of_differences(const Value& model, const Checkpoint& file) {
  // Where it looks for the file (plugins/denoisers/unet_lora_control.h).
  constexpr const char* kJoined = "control_lora.";
  if (model_family(model) != "unet")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() +
                    ": these are differences to a UNet of Stable Diffusion, and the model "
                    "is of '" +
                    model_family(model) + "'. Link the model that the ControlNet was made of.");
  const Record config =
      Record()
          .set("joined_control", value_of(std::string(kJoined) + "control_model."))
          .set("control_difference", value_of(true));
  const Value whole = joined_model(model, file, kJoined, config.value());
  const Value targets = model_settings(whole).field("control_lora_targets");
  std::vector<Patch> patches;
  for (std::uint32_t i = 0; i < targets.count(); ++i)
    patches.push_back(
        {.up = targets.key(i), .down = "", .rows = {{targets.item(i).as<std::string>()}}});
  return Record().set("model", with_patches(whole, file, patches)).value();
}

}  // namespace

void CLIPVisionLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, clip_name);
  const Value record = loaded(ctx, "vision_encoder", file);
  // That of a language model is no tower by itself: what it makes only the model beside it reads.
  if (model_settings(record.field("model")).get<std::int64_t>("size", 0) == 0)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": this is a language model with a vision tower of its own. Load it with "
                    "CLIPLoader, and here a file such as sigclip_vision_patch14_384.safetensors.");
  ctx[clip_vision] = record;
}
std::uint64_t CLIPVisionLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, clip_name);
}

void StyleModelLoader::execute(Context& ctx) {
  ctx[style_model] = loaded(ctx, "style_model", open_named(ctx, style_model_name));
}
std::uint64_t StyleModelLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, style_model_name);
}

void ControlNetLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, control_net_name);
  if (file.has(kDifference))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() +
                    ": these are the differences of a ControlNet to its model. Load it with "
                    "DiffControlNetLoader, and link the model there.");
  ctx[control_net] = control_net_of(ctx, file);
}
std::uint64_t ControlNetLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, control_net_name);
}

void DiffControlNetLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, control_net_name);
  ctx[control_net] =
      file.has(kDifference) ? of_differences(ctx[model], file) : control_net_of(ctx, file);
}
std::uint64_t DiffControlNetLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, control_net_name);
}

void UpscaleModelLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, model_name);
  // What programs that trained the model have put in front of all names.
  for (const char* prefix : {"module.", "netG."})
    if (const Checkpoint part = file.sub(prefix); part.size() > 0) {
      ctx[upscale_model] = upscaler(ctx, part);
      return;
    }
  ctx[upscale_model] = upscaler(ctx, file);
}
std::uint64_t UpscaleModelLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, model_name);
}

// Its file is joined to the model's, as its layers run among the model's blocks.
void HypernetworkLoader::execute(Context& ctx) {
  const Value from = ctx[model];
  const Checkpoint file = open_named(ctx, hypernetwork_name);
  check_hypernetwork(file);
  const auto fact = [&](const char* key, const char* otherwise) {
    return file.meta(key).value_or(otherwise);
  };
  const std::int64_t before =
      model_settings(from).field(blocks::kUnetConfig).field(blocks::kUnetPatches).count();
  const std::string prefix = "hypernetwork." + std::to_string(before) + ".";
  const Value patch =
      Record()
          .set("kind", value_of("hypernetwork"))
          .set("prefix", value_of(prefix))
          .set("file", value_of(file.path()))
          .set("function", value_of(fact("activation_func", "linear")))
          .set("strength", value_of(double(ctx[strength])))
          .set("has_norms", value_of(fact("is_layer_norm", "false") == "true"))
          .set("ends_in_function", value_of(fact("activate_output", "false") == "true"))
          .value();
  const Value config = blocks::unet_config_with(from, patch, info.type);
  ctx[out] = blocks::with_unet_config(joined_model(from, file, prefix, config), from, config);
}
std::uint64_t HypernetworkLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, hypernetwork_name);
}

void GLIGENLoader::execute(Context& ctx) {
  ctx[gligen] = loaded(ctx, "gligen", open_named(ctx, gligen_name));
}
std::uint64_t GLIGENLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, gligen_name);
}

void PhotoMakerLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, photomaker_model_name), part = file.sub("id_encoder.");
  ctx[photomaker] = loaded(ctx, "photo_maker", part.size() > 0 ? part : file);
}
std::uint64_t PhotoMakerLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, photomaker_model_name);
}

void LoadMoGeModel::execute(Context& ctx) {
  ctx[model] = loaded(ctx, "geometry_estimator", open_named(ctx, model_name));
}
std::uint64_t LoadMoGeModel::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, model_name);
}

void ModelPatchLoader::execute(Context& ctx) {
  ctx[model_patch] = loaded(ctx, "model_patch", open_named(ctx, name));
}
std::uint64_t ModelPatchLoader::fingerprint(Context& ctx) { return fingerprint_of_file(ctx, name); }

}  // namespace heddle::loaders
