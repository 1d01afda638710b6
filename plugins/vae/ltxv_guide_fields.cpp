#include "plugins/vae/ltxv_guide_fields.h"

#include <string>

#include "plugins/blocks/lists.h"

namespace heddle::vae {
namespace {

constexpr const char *kKeyframes = "keyframe_idxs", *kGuides = "guide_attention_entries";

GuideFields guide_fields(const Value& entry) {
  return {blocks::items_of(entry.field(kKeyframes)), blocks::items_of(entry.field(kGuides))};
}

Record without_guide_fields(const Value& entry) {
  return blocks::without_fields(entry, {kKeyframes, kGuides});
}

void set_guide_fields(Record& entry, const GuideFields& fields) {
  if (!fields.keyframes.empty()) entry.set(kKeyframes, list_of(fields.keyframes));
  if (!fields.guides.empty()) entry.set(kGuides, list_of(fields.guides));
}

}  // namespace

std::int64_t keyframes_of(const Value& list) {
  return list.count() > 0 ? list.item(0).field(kKeyframes).count() : 0;
}

Value with_guides(const Value& list, const GuideFields& added) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    GuideFields all = guide_fields(list.item(i));
    all.keyframes.insert(all.keyframes.end(), added.keyframes.begin(), added.keyframes.end());
    all.guides.insert(all.guides.end(), added.guides.begin(), added.guides.end());
    Record entry(list.item(i));
    set_guide_fields(entry, all);
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

Value without_guides(const Value& list) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(without_guide_fields(list.item(i)).value());
  return list_of(entries);
}

std::int64_t told_keyframes(const Infer& question, const Input<Value>& in) {
  const std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
  return entries.empty() ? 0 : entries.front().scope.field(kKeyframes).count();
}

void infer_guides(Infer& question, const Input<Value>& in, const Output<Value>& out,
                  const std::function<void(GuideFields&)>& change) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, in);
  for (blocks::EntryShapes& entry : entries) {
    GuideFields fields = guide_fields(entry.scope);
    Record scope = without_guide_fields(entry.scope);
    change(fields);
    set_guide_fields(scope, fields);
    entry.scope = scope.value();
  }
  blocks::infer_entries(question, out, entries);
}

}  // namespace heddle::vae
