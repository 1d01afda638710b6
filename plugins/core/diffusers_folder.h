// A diffusers pipeline folder: model_index.json names the parts, each in a folder of its own with a
// config.json. One call's thread.
#pragma once

#include <filesystem>

#include <heddle/model.hpp>

namespace heddle::loaders {

struct Pipeline {
  Value model, clip, vae;
};

// Builds all three. Throws with the file or the part that is missing or unknown.
Pipeline read_pipeline(Context& ctx, const std::filesystem::path& folder);

// The noise settings of a scheduler_config.json (heddle/diffusion/values.h), added to a model's. A
// static shift is ComfyUI's discrete flow with that shift; a shift that grows with the picture is
// FLUX's, with the largest one, as ComfyUI draws every size unless ModelSamplingFlux says
// otherwise. Pure.
Record with_schedule(const Value& settings, const Value& scheduler);

}  // namespace heddle::loaders
