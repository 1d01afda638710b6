#include "lora_application.h"

#include <algorithm>
#include <filesystem>

#include <heddle/joined_model.hpp>

#include "lora_forms.h"
#include "lora_notes.h"

namespace heddle::loaders {
namespace {

constexpr const char* kSchemes =
    "diffusers ('transformer.<module>.lora_A.weight', 'text_encoder.'), PEFT "
    "('base_model.model.<module>.lora_A.default.weight'), ComfyUI ('diffusion_model.<module>', "
    "'text_encoders.<name>.transformer.<module>') and kohya "
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
  Changes changes;
  for (const auto& [name, module] : lora_.modules) {
    const LoraAddress address = lora_address(name);
    if (address.place != place) continue;
    const std::size_t before = changes.count();
    const bool whole = add_patches(module, targets, address.module, strength, model, changes);
    if (changes.count() > before) matched_ += module.keys.size();
    if (!whole) leave(module);
  }
  const Value told =
      place == LoraPlace::denoiser ? with_lora_notes(model, file_notes(lora_.file.path())) : model;
  if (strength == 0) return told;
  Value changed = changes.patches.empty() ? told : with_patches(told, lora_.file, changes.patches);
  if (!changes.forms.empty()) changed = with_changes(changed, lora_.file, std::move(changes.forms));
  for (const Patch& product : changes.wider) changed = widened(changed, product);
  return changed;
}

bool LoraApplication::is_wider(const Patch& patch, const Value& model) const {
  const auto widens = model_settings(model).get<std::string>("widens", "");
  return patch.rows.size() == 1 && patch.rows.front().tensor == widens && !patch.down.empty() &&
         lora_.file.size(patch.down, 1) > model_checkpoint(model).size(widens, 1);
}

// The model built anew with the product's factors beside its file.
Value LoraApplication::widened(const Value& model, const Patch& product) const {
  const Value settings = model_settings(model), built_of = settings.field("widened_config");
  const Value before = built_of.field("widened");
  const auto common = std::ranges::mismatch(product.up, product.down).in1 - product.up.begin();
  const auto behind = std::size_t(common);
  const std::string prefix = "widened." + std::to_string(before.count()) + ".";
  std::vector<Value> all;
  for (std::uint32_t i = 0; i < before.count(); ++i) all.push_back(before.item(i));
  all.push_back(
      Record()
          .set("prefix", value_of(prefix))
          .set("down", value_of(product.down.substr(behind)))
          .set("up", value_of(product.up.substr(behind)))
          .set("strength", value_of(product.scale))
          .set("file", value_of(std::filesystem::path(lora_.file.path()).filename().string()))
          .value());
  const Value config = Record(built_of).set("widened", list_of(all)).value();
  const Value joined =
      joined_model(model, lora_.file.sub(product.up.substr(0, behind)), prefix, config);
  // It is shown no reference pictures any more.
  Record kept;
  for (std::uint32_t i = 0; i < settings.count(); ++i)
    if (settings.key(i) != "reference_method") kept.set(settings.key(i), settings.item(i));
  kept.set("widened_config", config)
      .set("concat_channels", model_settings(joined).field("concat_channels"));
  return with_settings(joined, kept.value());
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
                                  const std::string& name, double strength, const Value& model,
                                  Changes& changes) const {
  bool whole = true;
  const auto add = [&](const std::string& up, const std::string& down, double scale,
                       const char* kind, double keep = 1) {
    if (up.empty()) return;
    const std::vector<Part>* rows = targets.find(name, kind);
    whole = whole && rows != nullptr;
    if (rows == nullptr) return;
    const Patch patch{up, down, scale, *rows, keep};
    (is_wider(patch, model) ? changes.wider : changes.patches).push_back(patch);
  };
  const double scale = strength * alpha_over_rank(module);
  if (has_form(module)) {
    const std::vector<Part>* rows = targets.find(name, "weight");
    whole = rows != nullptr;
    if (rows != nullptr)
      std::ranges::move(form_changes(lora_, name, module, *rows, model_checkpoint(model), strength),
                        std::back_inserter(changes.forms));
  } else {
    add(module.up, module.down, scale, "weight");
  }
  add(module.up_bias, "", scale, "bias");
  add(module.difference, "", strength, "weight");
  add(module.bias_difference, "", strength, "bias");
  add(module.replacement, "", 1, "weight", 0);
  return whole;
}

double LoraApplication::alpha_over_rank(const LoraModule& module) const {
  if (module.alpha.empty() || module.down.empty()) return 1;
  return lora_.file.number(module.alpha) / double(lora_.file.size(module.down, 0));
}

}  // namespace heddle::loaders
