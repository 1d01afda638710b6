#include "plugins/vae/ltxv_guide_fields.h"

#include <string>

namespace heddle::vae {
namespace {

constexpr const char *kKeyframes = "keyframe_idxs", *kGuides = "guide_attention_entries";

void append_items(const Value& list, std::vector<Value>& to) {
  for (std::uint32_t i = 0; i < list.count(); ++i) to.push_back(list.item(i));
}

GuideFields guide_fields(const Value& entry) {
  GuideFields fields;
  append_items(entry.field(kKeyframes), fields.keyframes);
  append_items(entry.field(kGuides), fields.guides);
  return fields;
}

Record without_guide_fields(const Value& entry) {
  Record kept;
  for (std::uint32_t k = 0; k < entry.count(); ++k)
    if (entry.key(k) != kKeyframes && entry.key(k) != kGuides)
      kept.set(entry.key(k), entry.item(k));
  return kept;
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
