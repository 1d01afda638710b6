#include "checkpoint_parts.h"

namespace heddle::loaders {

Checkpoint denoiser_part(const Checkpoint& file) {
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

}  // namespace heddle::loaders
