#include "engine/isolate/description.h"

#include "heddle/abi/parts.h"

namespace heddle::engine {

namespace {

void write_text(BytesWriter& to, const char* text) {
  to.flag(text != nullptr);
  if (text != nullptr) to.text(text);
}

void write_texts(BytesWriter& to, const char* const* texts) {
  to.flag(texts != nullptr);
  if (texts == nullptr) return;
  for (; *texts != nullptr; ++texts) write_text(to, *texts);
  to.flag(false);
}

void write_widget(BytesWriter& to, const heddle_widget& widget) {
  to.number(widget.kind);
  for (const double number : {widget.number, widget.min, widget.max, widget.step, widget.round})
    to.number(number);
  write_text(to, widget.text);
  write_texts(to, widget.choices);
  write_text(to, widget.source);
  write_text(to, widget.extra);
}

void write_ports(BytesWriter& to, std::uint32_t count, const heddle_port* const* ports) {
  to.number(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    to.number(ports[i]->flags);
    for (const char* text : {ports[i]->name, ports[i]->type, ports[i]->doc}) write_text(to, text);
    to.flag(ports[i]->widget != nullptr);
    if (ports[i]->widget != nullptr) write_widget(to, *ports[i]->widget);
  }
}

}  // namespace

void write_node(BytesWriter& to, const heddle_node_desc& desc) {
  to.number(desc.version);
  to.number(desc.flags);
  for (const char* text : {desc.type, desc.title, desc.category, desc.doc}) write_text(to, text);
  write_ports(to, desc.input_count, desc.inputs);
  write_ports(to, desc.output_count, desc.outputs);
  for (const bool has : {desc.create != nullptr, desc.need != nullptr, desc.fingerprint != nullptr,
                         desc.infer != nullptr, desc.validator != nullptr})
    to.flag(has);
  if (desc.validator == nullptr) return;
  to.number(desc.validator->flags);
  write_texts(to, desc.validator->inputs);
}

DescribedNode::DescribedNode(BytesReader& from) {
  desc.size = sizeof desc;
  desc.version = from.number<std::uint32_t>();
  desc.flags = from.number<std::uint32_t>();
  for (const char** member : {&desc.type, &desc.title, &desc.category, &desc.doc})
    *member = text(from);
  desc.inputs = ports(from, desc.input_count);
  desc.outputs = ports(from, desc.output_count);
  for (bool* member : {&functions.has_instances, &functions.needs, &functions.fingerprints,
                       &functions.infers, &functions.validates})
    *member = from.flag();
  if (!functions.validates) return;
  validator.size = sizeof validator;
  validator.flags = from.number<std::uint32_t>();
  validator.inputs = texts(from);
}

const char* DescribedNode::text(BytesReader& from) {
  return from.flag() ? texts_.emplace_back(from.text()).c_str() : nullptr;
}

const char* const* DescribedNode::texts(BytesReader& from) {
  if (!from.flag()) return nullptr;
  std::vector<const char*>& list = lists_.emplace_back();
  do list.push_back(text(from));
  while (list.back() != nullptr);
  return list.data();
}

const heddle_port* const* DescribedNode::ports(BytesReader& from, std::uint32_t& count) {
  std::vector<const heddle_port*>& list = port_lists_.emplace_back();
  count = from.count();
  for (std::uint32_t i = 0; i < count; ++i) {
    heddle_port& port = ports_.emplace_back();
    port.size = sizeof port;
    // Tensors go to another process when they are whole.
    port.flags = from.number<std::uint32_t>() & ~HEDDLE_PORT_PARTS;
    for (const char** member : {&port.name, &port.type, &port.doc}) *member = text(from);
    if (from.flag()) {
      heddle_widget& widget = widgets_.emplace_back();
      widget.size = sizeof widget;
      widget.kind = from.number<std::int32_t>();
      for (double* member : {&widget.number, &widget.min, &widget.max, &widget.step, &widget.round})
        *member = from.number<double>();
      widget.text = text(from);
      widget.choices = texts(from);
      widget.source = text(from);
      widget.extra = text(from);
      port.widget = &widget;
    }
    list.push_back(&port);
  }
  return list.data();
}

}  // namespace heddle::engine
