#include "control_models.h"

#include <string>

#include <heddle/joined_model.hpp>

namespace heddle::samplers {
namespace {

Value joined(const Value& net, const std::string& prefix, const Value& denoiser) {
  const Checkpoint file = model_checkpoint(net);
  const Value whole = joined_model(denoiser, file, prefix,
                                   Record().set("joined_control", value_of(prefix)).value());
  const Value targets = model_settings(whole).field("control_lora_targets");
  std::vector<Patch> patches;
  for (std::uint32_t i = 0; i < targets.count(); ++i) {
    const std::string module = targets.key(i);
    patches.push_back({.up = module + ".up",
                       .down = module + ".down",
                       .scale = 1,
                       .rows = {{targets.item(i).as<std::string>()}}});
  }
  return patches.empty() ? whole : with_patches(whole, file, patches);
}

}  // namespace

Value ControlModels::asked(const Value& net, const Value& denoiser) {
  const Value settings = model_settings(net);
  const auto prefix = settings.get<std::string>("joined_control", "");
  // One of another family is refused by what it says itself.
  if (prefix.empty() || settings.get<std::string>("controls", "") != model_family(denoiser))
    return net;
  for (const Made& made : made_)
    if (made.net.raw() == net.raw() && made.denoiser.raw() == denoiser.raw()) return made.model;
  made_.push_back({net, denoiser, joined(net, prefix, denoiser)});
  return made_.back().model;
}

}  // namespace heddle::samplers
