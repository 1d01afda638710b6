#include "vision_loader_nodes.h"

#include <filesystem>
#include <string>

#include <heddle/model.hpp>

#include "model_files.h"
#include "model_roles.h"

namespace heddle::loaders {
namespace {

Value loaded(Context& ctx, const char* role, const Checkpoint& file) {
  return Record().set("model", build_for(ctx, role, file, Value())).value();
}

Checkpoint open_named(Context& ctx, const Input<std::string>& input) {
  return Checkpoint::open(find_file(ctx, input.widget.source, ctx[input]).string());
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

// As in ComfyUI, ControlNets of shuffled pictures are known by their name: their residuals are
// means.
void ControlNetLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, control_net_name);
  const std::string name = std::filesystem::path(file.path()).stem().string();
  Record config;
  if (name.ends_with("_shuffle") || name.ends_with("_shuffle_fp16"))
    config.set("averages", value_of(true));
  ctx[control_net] =
      Record().set("model", build_for(ctx, "control_net", file, config.value())).value();
}
std::uint64_t ControlNetLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, control_net_name);
}

void UpscaleModelLoader::execute(Context& ctx) {
  const Checkpoint file = open_named(ctx, model_name);
  // What programs that trained the model have put in front of all names.
  for (const char* prefix : {"module.", "netG."})
    if (const Checkpoint part = file.sub(prefix); part.size() > 0) {
      ctx[upscale_model] = loaded(ctx, "upscaler", part);
      return;
    }
  ctx[upscale_model] = loaded(ctx, "upscaler", file);
}
std::uint64_t UpscaleModelLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, model_name);
}
void ModelPatchLoader::execute(Context& ctx) {
  ctx[model_patch] = loaded(ctx, "model_patch", open_named(ctx, name));
}
std::uint64_t ModelPatchLoader::fingerprint(Context& ctx) { return fingerprint_of_file(ctx, name); }

}  // namespace heddle::loaders
