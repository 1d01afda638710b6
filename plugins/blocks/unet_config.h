// plugins/blocks/unet_config.h - the configuration of a UNet with one more patch in it
// (plugins/denoisers/unet_patches.h). Any thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::blocks {

inline constexpr const char* kUnetConfig = "patched_config";  // the setting
inline constexpr const char* kUnetPatches = "unet_patches";   // of the configuration

inline constexpr const char* kShrink = "shrink";  // a kind of patch

// Throws unsupported where the model is no UNet. `node`: who asks.
inline Value unet_config_with(const Value& model, const Value& patch, const std::string& node) {
  const Value built_of = model_settings(model).field(kUnetConfig);
  if (!built_of || model_family(model) != "unet")
    throw Error(HEDDLE_UNSUPPORTED, node + " changes UNets, and the model is of '" +
                                        model_family(model) +
                                        "'. Leave the node out, or use a UNet of Stable "
                                        "Diffusion or SDXL.");
  std::vector<Value> patches;
  const Value before = built_of.field(kUnetPatches);
  for (std::uint32_t i = 0; i < before.count(); ++i) patches.push_back(before.item(i));
  patches.push_back(patch);
  return Record(built_of).set(kUnetPatches, list_of(patches)).value();
}

// The patches of a kind that are in the model already, in their order.
inline std::vector<Value> unet_patches_of(const Value& model, const std::string& kind) {
  const Value patches = model_settings(model).field(kUnetConfig).field(kUnetPatches);
  std::vector<Value> found;
  for (std::uint32_t i = 0; i < patches.count(); ++i)
    if (patches.item(i).get<std::string>("kind", "") == kind) found.push_back(patches.item(i));
  return found;
}
inline bool has_unet_patch(const Value& model, const std::string& kind) {
  return !unet_patches_of(model, kind).empty();
}

// What was built of the configuration, with the settings that the model had.
inline Value with_unet_config(const Value& built, const Value& model, const Value& config) {
  return with_settings(built, Record(model_settings(model)).set(kUnetConfig, config).value());
}

}  // namespace heddle::blocks
