#include "model_patches.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/joined_model.hpp>

#include "adapter_inputs.h"
#include "patch_hint.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/unet_config.h"

namespace heddle::samplers {
namespace {

constexpr const char* kPatches = "model_patches";

void refuse(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: " + why); }

Value appended(const Value& list, const Value& item) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  items.push_back(item);
  return list_of(items);
}

void check_patch(const AppliedPatch& patch, const Value& model) {
  if (!patch.model.is(HEDDLE_KIND_MODEL)) refuse("it holds no model. Link a ModelPatchLoader.");
  const Value settings = model_settings(patch.model), drawn = model_settings(model);
  const std::string family = model_family(model), wanted = settings.get<std::string>("patches", "");
  if (wanted != family)
    refuse("this patch (" + model_family(patch.model) + ") is for models of the family '" + wanted +
           "', and the model is of '" + family + "'. Load a patch that was made for this model.");
  const auto width = settings.get<std::int64_t>("patch_width", 0),
             drawn_width = drawn.get<std::int64_t>("patched_width", 0);
  if (drawn_width == 0 && width != 0)
    refuse("this model (" + family +
           ") takes no patches. Leave the patch out, or load a model that takes one.");
  if (width != drawn_width)
    refuse("its tokens are " + std::to_string(width) + " wide, those of the model (" + family +
           ") " + std::to_string(drawn_width) + ". Load a patch that was made for this model.");
  check_hint_parts(patch);
  const auto latent = settings.get<std::int64_t>("latent_channels", 0),
             channels = patch.vae.get<std::int64_t>("channels", 0);
  if (channels != 0 && channels != latent)
    refuse("it reads latents of " + std::to_string(latent) + " channels, the autoencoder makes " +
           std::to_string(channels) + ". Link the autoencoder that belongs to the model.");
}

}  // namespace

bool AppliedPatch::has_hint_of(const AppliedPatch& other) const {
  const auto same = [](const Value& one, const Value& two) { return one.raw() == two.raw(); };
  return path == other.path && same(model, other.model) && same(image, other.image) &&
         same(inpainted, other.inpainted) && same(mask, other.mask) && same(vae, other.vae);
}

std::vector<AppliedPatch> patches_applied_to(const Value& model) {
  std::vector<AppliedPatch> patches;
  const Value list = model_settings(model).field(kPatches);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    patches.push_back({.path = "patch." + std::to_string(i),
                       .model = told.field("model"),
                       .image = told.field("image"),
                       .inpainted = told.field("inpaint_image"),
                       .mask = told.field("mask"),
                       .vae = told.field("vae"),
                       .start_percent = told.get<double>("start_percent", 0.0),
                       .end_percent = told.get<double>("end_percent", 1.0)});
  }
  const Value adapters = model_settings(model).field("adapters");
  for (std::uint32_t i = 0; i < adapters.count(); ++i) {
    AppliedPatch& patch = patches.emplace_back();
    patch.path = "adapter." + std::to_string(i);
    patch.adapter = adapters.item(i);
    patch.start_percent = patch.adapter.get<double>("start_percent", 0.0);
    patch.end_percent = patch.adapter.get<double>("end_percent", 1.0);
  }
  const std::vector<Value> shrinks = blocks::unet_patches_of(model, blocks::kShrink);
  for (std::size_t i = 0; i < shrinks.size(); ++i) {
    AppliedPatch& patch = patches.emplace_back();
    patch.path = "shrink." + std::to_string(i);
    patch.start_percent = shrinks[i].get<double>("start_percent", 0.0);
    patch.end_percent = shrinks[i].get<double>("end_percent", 1.0);
  }
  return patches;
}

bool reads_patches(const Value& model) {
  return std::ranges::any_of(patches_applied_to(model), &AppliedPatch::reads);
}

Value with_model_patch(const Value& model, const AppliedPatch& patch, double strength) {
  check_patch(patch, model);
  const Value settings = model_settings(model), before = settings.field(kPatches);
  const std::string prefix = "model_patch." + std::to_string(before.count()) + ".";
  const Checkpoint file = model_checkpoint(patch.model);
  const Value built_of = settings.field("patched_config");
  const Value config =
      Record(built_of)
          .set(kPatches, appended(built_of.field(kPatches), Record()
                                                                .set("prefix", value_of(prefix))
                                                                .set("file", value_of(file.path()))
                                                                .set("strength", value_of(strength))
                                                                .value()))
          .value();
  Record record;
  record.set("model", patch.model)
      .set("vae", patch.vae)
      .set("start_percent", value_of(patch.start_percent))
      .set("end_percent", value_of(patch.end_percent));
  if (patch.image) record.set("image", patch.image);
  if (patch.inpainted) record.set("inpaint_image", patch.inpainted);
  if (patch.mask) record.set("mask", patch.mask);
  return with_settings(joined_model(model, file, prefix, config),
                       Record(settings)
                           .set("patched_config", config)
                           .set(kPatches, appended(before, record.value()))
                           .value());
}

void refuse_with_patches(bool has_windows, bool has_pairs) {
  if (!has_windows && !has_pairs) return;
  throw Error(
      HEDDLE_UNSUPPORTED,
      std::string(
          "a model patch or IP-Adapter sees the whole picture by one conditioning, which does "
          "not go together with ") +
          (has_windows ? "ContextWindowsManual" : "NAGuidance") + ". Leave out one of the two.");
}

Tensor PatchHints::hint(const AppliedPatch& patch, const Value& denoiser, const Shape& point) {
  const Shape cells(point.begin() + 2, point.end());
  for (const Made& made : made_)
    if (made.cells == cells && made.patch.has_hint_of(patch)) return made.tensor;
  const Tensor tensor = patch_hint(ctx_, patch, denoiser, point, memory_);
  made_.push_back({patch, cells, tensor});
  return tensor;
}

Value PatchHints::added(const Value& constants, const Value& model, const NoiseLevels& levels,
                        double sigma, const Shape& point, bool is_negative) {
  const std::vector<AppliedPatch> patches = patches_applied_to(model);
  if (patches.empty()) return constants;
  Record all(constants);
  for (const AppliedPatch& patch : patches) {
    if (!patch.reads() || !patch.works_at(levels, sigma)) continue;
    if (patch.adapter)
      add_adapter(ctx_, all, patch.path, patch.adapter, model, point, is_negative);
    else
      all.set(patch.input(), value_of(hint(patch, model, point)));
  }
  return all.value();
}

bool tell_patches(Constants& constants, std::vector<ToldCall>& calls, const Value& model,
                  const NoiseLevels& levels, double sigma, const Shape& point,
                  std::vector<ToldPatch>& told) {
  const Shape cells(point.begin() + 2, point.end());
  for (const AppliedPatch& patch : patches_applied_to(model)) {
    if (!patch.reads() || !patch.works_at(levels, sigma)) continue;
    if (patch.adapter) {
      if (!tell_adapter(constants, patch.path, patch.adapter, model, point)) return false;
      continue;
    }
    const std::optional<PatchShapes> shapes = patch_shapes(patch, cells, point.front());
    if (!shapes) return false;
    constants.push_back({patch.input(), HEDDLE_F32, shapes->hint});
    const bool is_told = std::ranges::any_of(told, [&](const ToldPatch& one) {
      return one.cells == cells && one.patch.has_hint_of(patch);
    });
    if (is_told) continue;
    told.push_back({patch, cells});
    const Value encoder = patch.vae.field("encoder");
    if (!encoder.is(HEDDLE_KIND_MODEL)) continue;
    for (const Shape& picture : shapes->pictures) {
      ToldCall& call = calls.emplace_back();
      call.model = encoder;
      call.sets.push_back({{{"image", HEDDLE_F32, picture}}, {}});
      call.shown = 4 * double(vae::count_of(picture));
    }
  }
  return true;
}

}  // namespace heddle::samplers
