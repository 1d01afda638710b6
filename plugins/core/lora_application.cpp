#include "lora_application.h"

#include <algorithm>

namespace heddle::loaders {
namespace {

constexpr const char* kSchemes =
    "diffusers ('transformer.<module>.lora_A.weight', 'text_encoder.'), PEFT "
    "('base_model.model.<module>.lora_A.default.weight') and kohya "
    "('lora_unet_<module>.lora_down.weight', 'lora_te1_', 'lora_te2_'), each with the names of "
    "modules that the original files and diffusers use";

}  // namespace

LoraPlace place_of_encoder(const Value& model) {
  constexpr std::int64_t kMostLayersOfH = 24;
  const Value settings = model_settings(model);
  const auto family = settings.get<std::string>("family", "");
  const bool is_clip_g =
      family == "clip" && settings.get<std::int64_t>("layers", 0) > kMostLayersOfH;
  return family == "t5" || is_clip_g ? LoraPlace::second_encoder : LoraPlace::first_encoder;
}

Value LoraApplication::add_to(const Value& model, LoraPlace place, double strength) {
  const LoraTargets targets(model);
  std::vector<Patch> patches;
  for (const auto& [name, module] : lora_.modules) {
    const LoraAddress address = lora_address(name);
    if (address.place != place) continue;
    const std::size_t before = patches.size();
    const bool whole = add_patches(module, targets, address.module, strength, patches);
    if (patches.size() > before) matched_ += module.keys.size();
    if (!whole) leave(module);
  }
  return strength == 0 || patches.empty() ? model : with_patches(model, lora_.file, patches);
}

void LoraApplication::leave_out(LoraPlace place) {
  for (const auto& [name, module] : lora_.modules)
    if (lora_address(name).place == place) leave(module);
}

void LoraApplication::leave(const LoraModule& module) {
  if (left_.insert(&module).second)
    unmatched_.insert(unmatched_.end(), module.keys.begin(), module.keys.end());
}

bool LoraApplication::has(LoraPlace place) const {
  return std::ranges::any_of(
      lora_.modules, [&](const auto& entry) { return lora_address(entry.first).place == place; });
}

void LoraApplication::require_match() const {
  if (matched_ == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                lora_.file.path() + ": none of its " + std::to_string(lora_.file.size()) +
                    " keys names a module of this model: " + some_of(unmatched_) +
                    ". Tried: " + kSchemes + ". It was probably made for another kind of model.");
}

void LoraApplication::report() const {
  require_match();
  if (!unmatched_.empty())
    log(HEDDLE_WARN,
        lora_.file.path() + ": " + std::to_string(unmatched_.size()) + " of its " +
            std::to_string(lora_.file.size()) +
            " keys match nothing in this model and are left out: " + some_of(unmatched_));
}

// False: some of the module's tensors have no place in the model.
bool LoraApplication::add_patches(const LoraModule& module, const LoraTargets& targets,
                                  const std::string& name, double strength,
                                  std::vector<Patch>& patches) const {
  bool whole = true;
  const auto add = [&](const std::string& up, const std::string& down, double scale,
                       const char* kind) {
    if (up.empty()) return;
    const std::vector<Part>* rows = targets.find(name, kind);
    if (rows != nullptr) patches.push_back({up, down, scale, *rows});
    whole = whole && rows != nullptr;
  };
  const double scale = strength * alpha_over_rank(module);
  add(module.up, module.down, scale, "weight");
  add(module.up_bias, "", scale, "bias");
  add(module.difference, "", strength, "weight");
  add(module.bias_difference, "", strength, "bias");
  return whole;
}

double LoraApplication::alpha_over_rank(const LoraModule& module) const {
  if (module.alpha.empty() || module.down.empty()) return 1;
  return lora_.file.number(module.alpha) / double(lora_.file.size(module.down, 0));
}

}  // namespace heddle::loaders
