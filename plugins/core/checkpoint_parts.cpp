#include "checkpoint_parts.h"

#include <heddle/joined_model.hpp>

namespace heddle::loaders {

Checkpoint denoiser_part(const Checkpoint& file) {
  if (file.has(kDetectionModel)) return file;
  for (const char* prefix : {"model.diffusion_model.", "model.model.", "net.", "model."})
    if (Checkpoint part = file.sub(prefix); part.size() > kFewTensors) return part;
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": none of its " + std::to_string(file.size()) +
                  " tensors begins with 'model.diffusion_model.', so it holds no diffusion model "
                  "beside others. If it is a diffusion model alone, load it with UNETLoader.");
}

Checkpoint encoder_part(const Checkpoint& file, const std::string& encoder) {
  return file.sub("text_encoders." + encoder + ".transformer.");
}

std::vector<Checkpoint> classic_encoder_parts(const Checkpoint& file) {
  std::vector<Checkpoint> parts;
  for (const char* prefix : {"cond_stage_model.transformer.", "cond_stage_model.model.",
                             "conditioner.embedders.0.transformer.",
                             "conditioner.embedders.0.model.", "conditioner.embedders.1.model."})
    if (const Checkpoint part = file.sub(prefix); part.size() > kFewTensors) {
      const bool sees_pictures = part.sub("visual.").size() == part.size();  // Stable Zero123's
      if (!sees_pictures) parts.push_back(part);
    }
  return parts;
}

Value training_marks(const Checkpoint& file) {
  Record marks;
  bool is_marked = false;
  for (const char* mark : {"v_pred", "ztsnr", "edm_mean", "edm_std"})
    if (file.has(mark)) {
      marks.set(mark, value_of(true));
      is_marked = true;
    }
  for (const char* mark : {"edm_vpred.sigma_max", "edm_vpred.sigma_min"})
    if (file.has(mark)) {
      marks.set(mark, value_of(file.number(mark)));
      is_marked = true;
    }
  return is_marked ? marks.value() : Value();
}

Value with_view_projection(const Value& denoiser, const Checkpoint& file) {
  const Checkpoint part = file.sub(kViewProjection);
  const Value built_of = model_settings(denoiser).field("patched_config");
  if (part.size() == 0 || !built_of || model_family(denoiser) != "unet") return denoiser;
  return joined_model(denoiser, part, kViewProjection, built_of);
}

}  // namespace heddle::loaders
