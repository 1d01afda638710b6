#include "plugins/blocks/weight_hooks.h"

#include <heddle/diffusion/weight_hooks.h>
#include <algorithm>
#include <cstdio>

#include "plugins/blocks/input_file.h"

namespace heddle::blocks {
namespace {

std::vector<Value> items_of(const Value& list) {
  std::vector<Value> items;
  if (list.is(HEDDLE_KIND_LIST))
    for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  return items;
}

std::string id_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  return std::to_string(content_hash({bytes, text.size()}));
}

// As text, with all that tells it from others.
std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, " %a", number);
  return text;
}

std::string ids_of(const Value& hooks) {
  std::string ids;
  for (const WeightHook& hook : read_hooks(hooks)) ids += hook.id + " ";
  return ids;
}

}  // namespace

std::vector<HookKeyframe> read_keyframes(const Value& keyframes) {
  std::vector<HookKeyframe> read;
  for (const Value& record : items_of(keyframes))
    read.push_back({record.get<double>("strength", 1.0), record.get<double>("start_percent", 0.0),
                    record.get<std::int64_t>("guarantee_steps", 1)});
  return read;
}

Value with_keyframe(const Value& keyframes, const HookKeyframe& keyframe) {
  std::vector<Value> items = items_of(keyframes);
  const auto place = std::ranges::find_if(items, [&](const Value& record) {
    return record.get<double>("start_percent", 0.0) > keyframe.start;
  });
  items.insert(place, Record()
                          .set("strength", value_of(keyframe.strength))
                          .set("start_percent", value_of(keyframe.start))
                          .set("guarantee_steps", value_of(keyframe.guaranteed))
                          .value());
  return list_of(items);
}

std::vector<WeightHook> read_hooks(const Value& hooks) {
  std::vector<WeightHook> read;
  for (const Value& record : items_of(hooks))
    read.push_back(
        {record.get<std::string>("id", ""), record, record.get<double>("strength_model", 1.0),
         record.get<double>("strength_clip", 1.0), read_keyframes(record.field("keyframes")),
         record.get<std::string>("clock", "")});
  return read;
}

Value with_hook(const Value& before, const NewHook& hook) {
  const std::string text = hook.kind + "\n" + hook.file + "\n" + text_of(hook.strength_model) +
                           text_of(hook.strength_clip) + "\n" + ids_of(before);
  std::vector<Value> items = items_of(before);
  items.push_back(Record()
                      .set("id", value_of(id_of(text)))
                      .set("kind", value_of(hook.kind))
                      .set("file", value_of(hook.file))
                      .set("strength_model", value_of(hook.strength_model))
                      .set("strength_clip", value_of(hook.strength_clip))
                      .value());
  return list_of(items);
}

Value joined_hooks(const std::vector<Value>& groups) {
  std::vector<Value> joined;
  std::vector<std::string> ids;
  bool any = false;
  for (const Value& group : groups) {
    any = any || group.is(HEDDLE_KIND_LIST);
    for (const WeightHook& hook : read_hooks(group)) {
      if (std::ranges::find(ids, hook.id) != ids.end()) continue;
      ids.push_back(hook.id);
      joined.push_back(hook.record);
    }
  }
  return any ? list_of(joined) : Value();
}

Value with_keyframes(const Value& hooks, const Value& keyframes) {
  std::string text = ids_of(hooks);
  for (const HookKeyframe& frame : read_keyframes(keyframes))
    text += text_of(frame.strength) + text_of(frame.start) + text_of(double(frame.guaranteed));
  const std::string clock = id_of(text);
  std::vector<Value> items;
  for (const Value& record : items_of(hooks))
    items.push_back(
        Record(record).set("keyframes", keyframes).set("clock", value_of(clock)).value());
  return list_of(items);
}

Value hooked_model(const Value& model, const WeightHook& hook, const char* encoder,
                   double strength) {
  const std::string kind = hook.record.get<std::string>("kind", "");
  const auto* desc = find_provided<heddle_weight_hooks_desc>(
      HEDDLE_WEIGHT_HOOKS, [&](const auto& each) { return kind == each.kind; });
  if (desc == nullptr)
    throw Error(HEDDLE_NOT_FOUND, "no plugin reads hooks of the kind '" + kind +
                                      "'. Link hooks of a node that creates them.");
  heddle_value* out = nullptr;
  check(desc->apply(services.host, hook.record.raw(), model.raw(), encoder, strength, &out));
  return Value::adopt(out);
}

}  // namespace heddle::blocks
