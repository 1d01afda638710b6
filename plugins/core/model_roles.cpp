#include "model_roles.h"

#include <optional>
#include <string>
#include <string_view>

namespace heddle::loaders {
namespace {

struct RoleNames {
  const char *role, *what, *loaders;
};
constexpr RoleNames kRoles[] = {
    {"diffusion_model", "a diffusion model", "UNETLoader"},
    {"text_encoder", "a text encoder", "CLIPLoader, or DualCLIPLoader together with another one"},
    {"vae.decoder", "an autoencoder", "VAELoader"},
    {"vae.encoder", "an autoencoder's encoder alone", "no loader, as it cannot decode"},
    {"vision_encoder", "a vision tower alone",
     "CLIPVisionLoader if it is CLIP's or SigLIP's; that of a language model belongs into one file "
     "with it"},
    {"control_net", "a ControlNet", "ControlNetLoader"},
    {"model_patch", "a model patch", "ModelPatchLoader"},
    {"style_model", "a style model", "StyleModelLoader"},
    {"audio_encoder", "an encoder of sound", "AudioEncoderLoader"},
    {"upscaler", "an upscaler", "UpscaleModelLoader"},
    {"ip_adapter", "an IP-Adapter", "IPAdapterModelLoader"},
    {"text_projection", "a projection of texts", "LTXAVTextEncoderLoader"},
    {"audio_vae.decoder", "an autoencoder of sound", "LTXVAudioVAELoader"},
    {"audio_vae.encoder", "the encoder of an autoencoder of sound",
     "no loader, as it cannot decode"},
    {"latent_upscaler", "a model that makes latents larger", "LatentUpscaleModelLoader"},
    {"vocoder", "a vocoder", "LTXVAudioVAELoader, in one file with an autoencoder of sound"},
    {"gligen", "a GLIGEN model", "GLIGENLoader"},
    {"photo_maker", "PhotoMaker", "PhotoMakerLoader"},
    {"geometry_estimator", "a MoGe", "LoadMoGeModel"},
};

// Files that are no models: a part of a name tells.
struct NameMark {
  const char *part, *what, *advice;
};
constexpr NameMark kMarks[] = {
    {".lora_down.", "a LoRA", "Load it with LoraLoader."},
    {".lora_A.", "a LoRA", "Load it with LoraLoader."},
    {".hada_w1_a", "a LoRA", "Load it with LoraLoader."},
    {".lokr_w1", "a LoRA", "Load it with LoraLoader."},
    {"to_q_lora", "an IP-Adapter of FaceID",
     "It reads what InsightFace makes of a face, which nothing here does."},
    {"ip_adapter.", "a part of an IP-Adapter", "Load the whole file with IPAdapterModelLoader."},
    {"position_net.", "a part of a GLIGEN model", "Load the whole file with GLIGENLoader."},
};

const NameMark* mark_of(const Checkpoint& file) {
  for (std::uint32_t i = 0; i < file.size(); ++i)
    for (const NameMark& mark : kMarks)
      if (file.name(i).find(mark.part) != std::string::npos) return &mark;
  return nullptr;
}

const char* what_is(std::string_view role) {
  for (const RoleNames& names : kRoles)
    if (role == names.role) return names.what;
  return "a model";
}

// The family that builds a model of this role from the file; nothing where none does.
std::optional<std::string> family_of(Context& ctx, const char* role, const Checkpoint& file) {
  try {
    return model_family(build_model(ctx, role, file, Value()));
  } catch (const Failed& failed) {
    services.host->status_free(failed.status);
    return std::nullopt;
  }
}

}  // namespace

Value build_for(Context& ctx, const char* role, const Checkpoint& file, const Value& config) {
  try {
    return build_model(ctx, role, file, config);
  } catch (const Failed& failed) {
    if (services.host->status_code(failed.status) != HEDDLE_UNSUPPORTED) throw;
    for (const RoleNames& other : kRoles) {
      if (std::string_view(role) == other.role) continue;
      const std::optional<std::string> family = family_of(ctx, other.role, file);
      if (!family) continue;
      services.host->status_free(failed.status);
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": this is " + other.what + " (" + *family +
                                          "), not " + what_is(role) + ". Load it with " +
                                          other.loaders + ".");
    }
    if (const NameMark* mark = mark_of(file)) {
      services.host->status_free(failed.status);
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": this is " + mark->what + ", not " +
                                          what_is(role) + ". " + mark->advice);
    }
    throw;
  }
}

Value build_if_there(Context& ctx, const char* role, const Checkpoint& file, const Value& config) {
  try {
    return build_model(ctx, role, file, config);
  } catch (const Failed& failed) {
    if (services.host->status_code(failed.status) != HEDDLE_UNSUPPORTED) throw;
    services.host->status_free(failed.status);
    return {};
  }
}

Value build_denoiser(Context& ctx, const Checkpoint& file, const Value& config) {
  const Value model = build_for(ctx, "diffusion_model", file, config);
  const Value settings = model_settings(model), configs = settings.field("part_configs");
  if (!configs) return model;
  Record parts;
  for (std::uint32_t i = 0; i < configs.count(); ++i)
    parts.set(configs.key(i), rebuilt_model(ctx, model, configs.item(i)));
  return with_settings(model, Record(settings).set("parts", parts.value()).value());
}

}  // namespace heddle::loaders
