#include "select_device_nodes.h"

#include <heddle/model.hpp>

namespace heddle::loaders {
namespace {

constexpr const char* kAsLoaded = "default";

template <class Node>
std::string device_of(Context& ctx) {
  const Value given = ctx[Node::device];
  if (!given.is(HEDDLE_KIND_STR))
    throw Error(HEDDLE_INVALID_ARGUMENT, "device: expects a name, such as 'default' or 'gpu:0'");
  return given.as<std::string>();
}

}  // namespace

void SelectModelDevice::execute(Context& ctx) {
  const std::string name = device_of<SelectModelDevice>(ctx);
  ctx[out] = name == kAsLoaded ? ctx[model] : preferring(ctx[model], name);
}

void SelectCLIPDevice::execute(Context& ctx) {
  const std::string name = device_of<SelectCLIPDevice>(ctx);
  const Value value = ctx[clip], list = value.field("encoders");
  if (name == kAsLoaded || value.has("missing")) {
    ctx[out] = value;
    return;
  }
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    Record changed(encoder);
    for (const char* model : {"model", "vision", "writer"})
      if (encoder.has(model)) changed.set(model, preferring(encoder.field(model), name));
    encoders.push_back(changed.value());
  }
  ctx[out] = Record(value).set("encoders", list_of(encoders)).value();
}

void SelectVAEDevice::execute(Context& ctx) {
  const std::string name = device_of<SelectVAEDevice>(ctx);
  const Value value = ctx[vae];
  Record changed(value);
  if (name != kAsLoaded && name != "cpu")
    for (const char* side : {"decoder", "encoder"})
      if (value.has(side)) changed.set(side, preferring(value.field(side), name));
  ctx[out] = changed.value();
}

}  // namespace heddle::loaders
