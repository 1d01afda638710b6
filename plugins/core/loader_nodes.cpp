#include "loader_nodes.h"

#include "clip_value.h"
#include "diffusers_folder.h"
#include "model_files.h"
#include "vae_value.h"

namespace heddle::loaders {
namespace {

// The file that a literal input names; one that is linked is known by what it comes from.
std::uint64_t fingerprint_of_inputs(Context& ctx,
                                    std::initializer_list<const Input<std::string>*> inputs) {
  std::vector<std::filesystem::path> paths;
  for (const Input<std::string>* input : inputs)
    if (ctx.has(*input)) paths.push_back(find_file(ctx, input->widget.source, ctx[*input]));
  return fingerprint_of(ctx, paths);
}

Checkpoint open(Context& ctx, const Input<std::string>& input) {
  return Checkpoint::open(find_file(ctx, input.widget.source, ctx[input]).string());
}

constexpr std::uint32_t kFewTensors = 5;  // a prefix with so few is an accident

// The diffusion model's part of a checkpoint: ComfyUI's prefixes, in its order.
Checkpoint denoiser_part(const Checkpoint& file) {
  for (const char* prefix : {"model.diffusion_model.", "model.model.", "net.", "model."})
    if (Checkpoint part = file.sub(prefix); part.size() > kFewTensors) return part;
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": none of its " + std::to_string(file.size()) +
                  " tensors begins with 'model.diffusion_model.', so it holds no diffusion model "
                  "beside others. If it is a diffusion model alone, load it with UNETLoader.");
}

// The autoencoder's part: whatever is under one of the prefixes of whole checkpoints; empty when
// nothing is.
std::optional<Checkpoint> autoencoder_part(const Checkpoint& file) {
  for (const char* prefix : {"vae.", "first_stage_model."})
    if (Checkpoint part = file.sub(prefix); part.size() > 0) return part;
  return std::nullopt;
}

Value checkpoint_clip(Context& ctx, const Checkpoint& file) {
  std::vector<Value> encoders;
  for (const char* name : {"clip_l", "t5xxl"}) {
    const Checkpoint part = file.sub(std::string("text_encoders.") + name + ".transformer.");
    if (part.size() > 0) encoders.push_back(single_file_encoder(ctx, part));
  }
  if (encoders.empty())
    return no_clip(file.path() +
                   ": this checkpoint has no text encoder that is known ('text_encoders.clip_l."
                   "transformer.', 'text_encoders.t5xxl.transformer.'). Load them from their own "
                   "files, for instance with DualCLIPLoader.");
  return clip_value(clip_type(encoders, file.path()), encoders, file.path());
}

}  // namespace

void DiffusersLoader::execute(Context& ctx) {
  const Pipeline pipeline =
      read_pipeline(ctx, find_file(ctx, model_path.widget.source, ctx[model_path]));
  ctx[model] = pipeline.model;
  ctx[clip] = pipeline.clip;
  ctx[vae] = pipeline.vae;
}
std::uint64_t DiffusersLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&model_path});
}

void CheckpointLoaderSimple::execute(Context& ctx) {
  const Checkpoint file = open(ctx, ckpt_name);
  Value denoiser = build_model(ctx, "diffusion_model", denoiser_part(file), Value());
  Value autoencoder = Record().value();
  if (const std::optional<Checkpoint> part = autoencoder_part(file)) {
    autoencoder = vae_value(ctx, *part, Value());
    denoiser = with_latents_of(denoiser, autoencoder);
  }
  ctx[model] = denoiser;
  ctx[clip] = checkpoint_clip(ctx, file);
  ctx[vae] = autoencoder;
}
std::uint64_t CheckpointLoaderSimple::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&ckpt_name});
}

void UNETLoader::execute(Context& ctx) {
  if (const std::string type = ctx[weight_dtype]; type != "default")
    throw Error(HEDDLE_UNSUPPORTED, "weight_dtype '" + type +
                                        "': weights are kept as the file has them so far. Set it "
                                        "to 'default'.");
  const Checkpoint file = open(ctx, unet_name);
  // A standalone file may carry the prefix of a whole checkpoint.
  const Checkpoint part = file.sub("model.diffusion_model.");
  ctx[model] =
      build_model(ctx, "diffusion_model", part.size() > kFewTensors ? part : file, Value());
}
std::uint64_t UNETLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&unet_name});
}

void VAELoader::execute(Context& ctx) {
  const Checkpoint file = open(ctx, vae_name);
  ctx[vae] = vae_value(ctx, autoencoder_part(file).value_or(file), Value());
}
std::uint64_t VAELoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&vae_name});
}

void CLIPLoader::execute(Context& ctx) {
  const std::string wanted = ctx[type];
  if (wanted != "stable_diffusion")
    throw Error(HEDDLE_UNSUPPORTED, "type '" + wanted +
                                        "' is not known yet. Known: stable_diffusion; for FLUX "
                                        "take DualCLIPLoader with type flux.");
  const Checkpoint file = open(ctx, clip_name);
  ctx[clip] = clip_value(wanted, {single_file_encoder(ctx, file)}, file.path());
}
std::uint64_t CLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name});
}

void DualCLIPLoader::execute(Context& ctx) {
  const std::string wanted = ctx[type];
  if (wanted != "flux")
    throw Error(HEDDLE_UNSUPPORTED,
                "type '" + wanted + "' is not known yet. Known: flux (clip_l and t5xxl).");
  const Checkpoint first = open(ctx, clip_name1), second = open(ctx, clip_name2);
  ctx[clip] =
      clip_value(wanted, {single_file_encoder(ctx, first), single_file_encoder(ctx, second)},
                 first.path() + " and " + second.path());
}
std::uint64_t DualCLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name1, &clip_name2});
}

}  // namespace heddle::loaders
