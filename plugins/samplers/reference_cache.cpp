#include "reference_cache.h"

#include <algorithm>
#include <array>

#include <heddle/ops.hpp>

#include "conditioning.h"

namespace heddle::samplers {
namespace {

constexpr const char* kSetting = "reference_cache";

bool shows_references(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"references", kReferencePositions,
                                                      kReferenceTimestep, kTextStart};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

Value with_reference_cache(Context& ctx, const Value& model) {
  const Value settings = model_settings(model), config = settings.field("keeping_model");
  if (!config)
    throw Error(HEDDLE_UNSUPPORTED,
                "the model '" + model_family(model) +
                    "' cannot keep what it made of reference pictures. Leave out FluxKVCache, or "
                    "take FLUX.2 klein 9B KV.");
  return with_settings(rebuilt_model(ctx, model, config),
                       Record(settings)
                           .set(kSetting, value_of(true))
                           .set("reference_method", value_of("index_timestep_zero"))
                           .value());
}

bool has_reference_cache(const Value& model) {
  return model_settings(model).get<bool>(kSetting, false);
}

bool is_kept(std::string_view input) { return input.starts_with("kept."); }

Constants kept_shapes(const Constants& shown, const Value& model, std::int64_t items) {
  Constants kept;
  std::int64_t tokens = 0;
  for (const Infer::Named& one : shown) {
    if (one.name == "references") tokens = one.shape[1];
    if (!shows_references(one.name)) kept.push_back(one);
  }
  if (tokens == 0) return shown;
  const auto width = model_settings(model).get<std::int64_t>("kept_width", 0);
  const auto& models = service<heddle_model_service>();
  for (std::uint32_t i = 0; i < models.input_count(model.raw()); ++i) {
    std::uint32_t flags = 0;
    const std::string name = models.input(model.raw(), i, &flags);
    if (is_kept(name)) kept.push_back({name, HEDDLE_F32, {items, tokens, width}});
  }
  return kept;
}

std::vector<Stretch> FirstLooks::apart(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> parts;
  for (const Stretch& stretch : stretches) {
    bool is_first = false;
    for (std::size_t list = 0; list < stretch.entries.size(); ++list)
      for (const std::size_t entry : stretch.entries[list])
        is_first = seen_.emplace(list, entry).second || is_first;
    parts.push_back(stretch);
    if (!is_first || stretch.count < 2) continue;
    parts.back().count = 1;
    parts.push_back(stretch);
    ++parts.back().begin;
    --parts.back().count;
  }
  return parts;
}

std::optional<ReferenceCache> ReferenceCache::of(const GuidePlan& plan, bool has_windows) {
  const bool keeps = std::ranges::any_of(
      plan.models(), [](const AskedModel& asked) { return has_reference_cache(asked.model); });
  if (!keeps) return std::nullopt;
  if (has_windows || plan.nag())
    throw Error(HEDDLE_UNSUPPORTED,
                std::string("FluxKVCache keeps what the model made of reference pictures, which "
                            "does not go together with ") +
                    (has_windows ? "context windows" : "NAGuidance") +
                    ". Leave out one of the two.");
  return ReferenceCache();
}

const ReferenceCache::Kept* ReferenceCache::kept_for(ModelSet set) const {
  set.weights = 0;
  const auto found = std::ranges::find(kept_, set, &Kept::set);
  return found == kept_.end() ? nullptr : &*found;
}

Value ReferenceCache::constants(const ModelSet& set, const Value& whole) const {
  const Kept* const kept = kept_for(set);
  if (kept == nullptr) return whole;
  Record record;
  for (std::uint32_t i = 0; i < whole.count(); ++i)
    if (!shows_references(whole.key(i))) record.set(whole.key(i), whole.item(i));
  for (const auto& [name, tensor] : kept->tensors) record.set(name, value_of(tensor));
  return record.value();
}

// What a session gives lies in its own memory, which goes with it.
void ReferenceCache::made(Context& ctx, const ModelSet& set, const Value& outputs) {
  if (kept_for(set) != nullptr) return;
  Kept kept{set, {}};
  kept.set.weights = 0;
  for (std::uint32_t i = 0; i < outputs.count(); ++i) {
    const std::string name = outputs.key(i);
    if (!is_kept(name)) continue;
    const Tensor tensor = outputs.item(i).as<Tensor>();
    if (tensor.count() == 0) return;  // it was shown no pictures
    const Tensor copy = ctx.make_like(tensor);
    ops::copy_into(ctx, tensor, copy);
    kept.tensors.emplace_back(name, copy);
  }
  if (!kept.tensors.empty()) kept_.push_back(std::move(kept));
}

void ReferenceCache::archive(StateArchive& state) {
  std::size_t count = kept_.size();
  state("kept", count);
  if (state.reads()) kept_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    Kept& kept = kept_[i];
    const std::string name = "kept " + std::to_string(i) + " ";
    archive_set(state, name, kept.set);
    std::size_t tensors = kept.tensors.size();
    state(name + "tensors", tensors);
    if (state.reads()) kept.tensors.resize(tensors);
    for (std::size_t k = 0; k < tensors; ++k) {
      const std::string at = name + std::to_string(k) + " ";
      state(at + "name", kept.tensors[k].first);
      state(at + "tensor", kept.tensors[k].second);
    }
  }
}

}  // namespace heddle::samplers
