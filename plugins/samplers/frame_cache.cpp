#include "frame_cache.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "reference_cache.h"

namespace heddle::samplers {
namespace {

constexpr int kTokensAxis = 1;

void archive_tensors(StateArchive& state, const std::string& name,
                     std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::size_t count = tensors.size();
  state(name + "tensors", count);
  if (state.reads()) tensors.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::string at = name + std::to_string(k) + " ";
    state(at + "name", tensors[k].first);
    state(at + "tensor", tensors[k].second);
  }
}

}  // namespace

bool keeps_frames(const Value& model) {
  return model_settings(model).get<bool>("keeps_frames", false);
}

void refuse_frames_with(const std::string& what) {
  throw Error(HEDDLE_UNSUPPORTED,
              "SamplerARVideo draws a video block by block, which does not go together with " +
                  what + ". Leave out one of the two.");
}

Constants kept_frame_shapes(const Value& model, std::int64_t items, std::int64_t tokens) {
  Constants kept;
  const auto width = model_settings(model).get<std::int64_t>("kept_width", 0);
  const auto& models = service<heddle_model_service>();
  for (std::uint32_t i = 0; i < models.input_count(model.raw()); ++i) {
    std::uint32_t flags = 0;
    const std::string name = models.input(model.raw(), i, &flags);
    if (is_kept(name)) kept.push_back({name, HEDDLE_F32, {items, tokens, width}});
  }
  return kept;
}

FrameCache::FrameCache(Context& ctx, const GuidePlan& plan, std::int64_t items)
    : ctx_(ctx), items_(items) {
  for (const AskedModel& asked : plan.models()) {
    const Value settings = model_settings(asked.model);
    if (!keeps_frames(asked.model))
      throw Error(HEDDLE_UNSUPPORTED,
                  "SamplerARVideo: the model '" + model_family(asked.model) +
                      "' does not look back at frames. Load a causal Wan 2.1 (Causal Forcing, Self "
                      "Forcing), whose file says \"causal_ar\" in its metadata 'config', or take "
                      "another sampler.");
    if (settings.has("context_windows")) refuse_frames_with("context windows");
    if (settings.has("easy_cache")) refuse_frames_with("EasyCache");
    if (settings.has("lazy_cache")) refuse_frames_with("LazyCache");
  }
}

FrameCache::Kept* FrameCache::find(std::vector<Kept>& all, const ModelSet& set) {
  const auto found = std::ranges::find_if(
      all, [&](const Kept& kept) { return kept.list == set.list && kept.item == set.item; });
  return found == all.end() ? nullptr : &*found;
}

Value FrameCache::constants(const Value& model, const ModelSet& set, const Value& whole) const {
  Record record(whole);
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.list == set.list && kept.item == set.item; });
  if (found != kept_.end()) {
    for (const auto& [name, tensor] : found->tensors) record.set(name, value_of(tensor));
    return record.value();
  }
  if (has_looked_)
    throw Error(HEDDLE_UNSUPPORTED,
                "a conditioning counts while frames are drawn, and not when the model looks at "
                "them without noise. Leave out what ends before the level 0, such as "
                "ConditioningSetTimestepRange or CFGOverride.");
  for (const Infer::Named& one : kept_frame_shapes(model, items_, 0))
    record.set(one.name, value_of(ctx_.make(one.shape, HEDDLE_F32)));
  return record.value();
}

// What a session gives lies in its own memory, which goes with it.
void FrameCache::made(const ModelSet& set, const Value& outputs) {
  if (!looks_) return;
  Kept fresh{set.list, set.item};
  for (std::uint32_t i = 0; i < outputs.count(); ++i) {
    const std::string name = outputs.key(i);
    if (!is_kept(name)) continue;
    const Tensor tensor = outputs.item(i).as<Tensor>(), copy = ctx_.make_like(tensor);
    ops::copy_into(ctx_, tensor, copy);
    fresh.tensors.emplace_back(name, copy);
  }
  if (find(fresh_, set) == nullptr) fresh_.push_back(std::move(fresh));
}

void FrameCache::grow() {
  has_looked_ = has_looked_ || looks_;
  looks_ = false;
  for (Kept& fresh : fresh_) {
    Kept* const kept = find(kept_, {.list = fresh.list, .item = fresh.item});
    if (kept == nullptr) {
      kept_.push_back(std::move(fresh));
      continue;
    }
    for (std::size_t k = 0; k < kept->tensors.size(); ++k) {
      Tensor& before = kept->tensors[k].second;
      Tensor& behind = fresh.tensors[k].second;
      Shape shape = before.shape();
      shape[kTokensAxis] += behind.size(kTokensAxis);
      const Tensor all = ctx_.make(shape, before.dtype());
      ops::copy_into(ctx_, before, all.slice(kTokensAxis, 0, before.size(kTokensAxis)));
      ops::copy_into(ctx_, behind,
                     all.slice(kTokensAxis, before.size(kTokensAxis), shape[kTokensAxis]));
      before = all;
      behind = {};
    }
  }
  fresh_.clear();
}

void FrameCache::archive(StateArchive& state) {
  std::size_t count = kept_.size();
  state("has looked at frames", has_looked_);
  state("frames kept", count);
  if (state.reads()) kept_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "frames " + std::to_string(i) + " ";
    state(name + "list", kept_[i].list);
    state(name + "item", kept_[i].item);
    archive_tensors(state, name, kept_[i].tensors);
  }
}

}  // namespace heddle::samplers
