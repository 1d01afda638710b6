#include "model_patches.h"

#include <algorithm>
#include <utility>

#include <heddle/checked.hpp>

#include "adapter_inputs.h"
#include "patch_hint.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/patched_model.h"
#include "plugins/blocks/sparse_config.h"
#include "plugins/blocks/unet_config.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// A setting of a patch that reads moments of a sound: how many numbers one has.
constexpr const char* kMomentNumbers = "moment_numbers";

void refuse(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: " + why); }

void check_patch(const AppliedPatch& patch, const Value& model) {
  blocks::check_model_patch(patch.model, model);
  const Value settings = model_settings(patch.model);
  if (settings.has(kMomentNumbers))
    refuse("this patch (" + model_family(patch.model) +
           ") hears a sound. Link it to WanInfiniteTalkToVideo.");
  if (settings.has("seen_tokens"))
    refuse("this patch (" + model_family(patch.model) +
           ") sees a style. Link it to USOStyleReference.");
  check_hint_parts(patch);
  const auto latent = settings.get<std::int64_t>("latent_channels", 0),
             channels = patch.vae.get<std::int64_t>("channels", 0);
  if (channels != 0 && channels != latent)
    refuse("it reads latents of " + std::to_string(latent) + " channels, the autoencoder makes " +
           std::to_string(channels) + ". Link the autoencoder that belongs to the model.");
}

void add_heard(const AppliedPatch& patch, Record& constants) {
  constants.set(patch.input(), patch.heard);
  if (patch.regions) constants.set(patch.regions_input(), patch.regions);
}

bool tell_heard(const AppliedPatch& patch, Constants& constants) {
  const auto tell = [&](const std::string& input, const Value& given) {
    const std::optional<heddle_tensor_info> info = info_of(given);
    if (info) constants.push_back({input, HEDDLE_F32, shape_of(*info)});
    return info.has_value();
  };
  return tell(patch.input(), patch.heard) &&
         (!patch.regions || tell(patch.regions_input(), patch.regions));
}

}  // namespace

bool AppliedPatch::has_hint_of(const AppliedPatch& other) const {
  const auto same = [](const Value& one, const Value& two) { return one.raw() == two.raw(); };
  return path == other.path && same(model, other.model) && same(image, other.image) &&
         same(inpainted, other.inpainted) && same(mask, other.mask) && same(vae, other.vae);
}

std::vector<AppliedPatch> patches_applied_to(const Value& model) {
  std::vector<AppliedPatch> patches;
  const Value list = model_settings(model).field(blocks::kModelPatches);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    patches.push_back({.path = "patch." + std::to_string(i),
                       .model = told.field("model"),
                       .image = told.field("image"),
                       .inpainted = told.field("inpaint_image"),
                       .mask = told.field("mask"),
                       .vae = told.field("vae"),
                       .start_percent = told.get<double>("start_percent", 0.0),
                       .end_percent = told.get<double>("end_percent", 1.0),
                       .heard = told.field("heard"),
                       .regions = told.field("regions")});
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
  if (const Value sparse = model_settings(model).field(blocks::kSparseRange)) {
    AppliedPatch& patch = patches.emplace_back();
    patch.path = blocks::kCubesPath;
    patch.levels_told =
        SigmaRange{sparse.get<double>("start", 0.0), sparse.get<double>("end", 0.0)};
  }
  return patches;
}

bool reads_patches(const Value& model) {
  return std::ranges::any_of(patches_applied_to(model), &AppliedPatch::reads);
}

Value with_model_patch(const Value& model, const AppliedPatch& patch, double strength) {
  check_patch(patch, model);
  Record record;
  record.set("vae", patch.vae)
      .set("start_percent", value_of(patch.start_percent))
      .set("end_percent", value_of(patch.end_percent));
  if (patch.image) record.set("image", patch.image);
  if (patch.inpainted) record.set("inpaint_image", patch.inpainted);
  if (patch.mask) record.set("mask", patch.mask);
  return blocks::with_patch_joined(model, patch.model, strength, record);
}

void refuse_with_patches(bool has_windows, bool has_pairs) {
  if (!has_windows && !has_pairs) return;
  throw Error(
      HEDDLE_UNSUPPORTED,
      std::string(
          "a model patch or IP-Adapter sees the whole picture by one conditioning, which does "
          "not go together with ") +
          (has_windows ? "context windows" : "NAGuidance") + ". Leave out one of the two.");
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
    else if (patch.heard)
      add_heard(patch, all);
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
    if (patch.heard) {
      if (!tell_heard(patch, constants)) return false;
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
    double held = shapes->on_device;
    for (const Shape& picture : shapes->pictures) {
      ToldCall& call = calls.emplace_back();
      call.model = encoder;
      call.sets.push_back({{{"image", HEDDLE_F32, picture}}, {}});
      call.shown = std::max(shapes->in_host, 4 * double(vae::count_of(picture)));
      call.kept = std::exchange(held, 0.0);
    }
  }
  return true;
}

}  // namespace heddle::samplers
