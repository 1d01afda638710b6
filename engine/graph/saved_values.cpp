#include "engine/graph/saved_values.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/graph/saved_sockets.h"

namespace heddle::engine {
namespace {

const Json* values_list(const SavedNode& node) {
  const Json* values = node.json->find("widgets_values");
  return values != nullptr && values->is_array() ? values : nullptr;
}

// The i-th saved value; nullptr where there is none or it is null, which stands for none.
const Json* saved_value(const Json* list, std::size_t i) {
  if (list == nullptr || i >= list->size() || list->at(i).is_null()) return nullptr;
  return &list->at(i);
}

// "3: seed" and "5: 3: seed" were names of nested promoted widgets once.
std::string_view without_prefixes(std::string_view name) {
  for (;;) {
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return name;
    const std::size_t colon = name.find_first_not_of(' ', digits);
    if (colon == std::string_view::npos || name[colon] != ':') return name;
    const std::size_t begin = name.find_first_not_of(' ', colon + 1);
    if (begin == std::string_view::npos) return name;
    name.remove_prefix(begin);
  }
}

}  // namespace

bool is_virtual(const SavedNode& node) {
  return node.type == "Reroute" || node.type == "PrimitiveNode" || node.type == "Note" ||
         node.type == "MarkdownNote";
}

SavedValues::SavedValues(SavedWorkflow& workflow, const NodeDefinitions& definitions)
    : workflow_(workflow), definitions_(definitions) {
  read_graph(workflow_.graphs.front());
}

void SavedValues::read_graph(SavedGraph& graph) {
  if (!read_.insert(&graph).second) return;
  for (SavedNode& node : graph.nodes) {
    if (const SavedGraph* definition = workflow_.definition(node.type)) {
      read_graph(const_cast<SavedGraph&>(*definition));
      read_instance(node, *definition);
      continue;
    }
    NodeValues& values = values_[&node];
    if (is_virtual(node)) continue;
    values.definition = definitions_.find(node.type);
    if (values.definition == nullptr) continue;
    values.widgets = read_widgets(node, *values.definition);
    node.inputs = sockets_of(node, *values.definition, values.widgets);
  }
}

void SavedValues::read_instance(SavedNode& node, const SavedGraph& definition) {
  node.inputs = sockets_of(node, definition);
  NodeValues& values = values_[&node];
  // Older instances name what their values are for: apply_proxies().
  const Json* proxies = node.property("proxyWidgets");
  const bool is_old = proxies != nullptr && proxies->is_array() && proxies->size() > 0;
  const Json* list = is_old ? nullptr : values_list(node);
  std::size_t position = 0;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    PromotedInput input = promoted_by(definition, i);
    if (!input.widget.empty())
      if (const Json* saved = saved_value(list, position++)) input.value = *saved;
    values.promoted.push_back(std::move(input));
  }
  apply_proxies(node, definition, values);
}

// The widget at the end of the first link that ends at one.
PromotedInput SavedValues::promoted_by(const SavedGraph& definition, std::size_t input) const {
  for (const std::string& id : definition.inputs[input].links) {
    const auto link = definition.links.find(id);
    if (link == definition.links.end() || link->second.origin != kSubgraphInputs) continue;
    const SavedNode* target = definition.find(link->second.target);
    const auto values = target == nullptr ? values_.end() : values_.find(target);
    if (values == values_.end()) continue;
    const auto socket = std::ranges::find(target->inputs, id, &SavedSlot::link);
    if (socket == target->inputs.end()) continue;
    const auto index = static_cast<std::size_t>(socket - target->inputs.begin());
    if (const SavedWidget* widget = values->second.widgets.find(socket->name))
      return {target->id, widget->name, widget->type, widget->value};
    // Of an unknown class only the file knows which inputs are widgets.
    const bool is_unknown = values->second.definition == nullptr && !is_virtual(*target);
    if (is_unknown && values->second.promoted.empty() && socket->has_widget)
      return {target->id, socket->name, socket->type, std::nullopt};
    if (index >= values->second.promoted.size()) continue;
    const PromotedInput& nested = values->second.promoted[index];
    if (!nested.widget.empty()) return {target->id, socket->name, nested.type, nested.value};
  }
  return {};
}

// [[node, widget, ...], ...]: the widgets that an instance shows, paired with its values. A value
// that a newer interface could not place any more stands beside its entry.
void SavedValues::apply_proxies(const SavedNode& node, const SavedGraph& definition,
                                NodeValues& values) const {
  const auto entries = [&](std::string_view property) -> const Json* {
    const Json* list = node.property(property);
    return list != nullptr && list->is_array() ? list : nullptr;
  };
  if (const Json* lost = entries("proxyWidgetErrorQuarantine"))
    for (const Json& entry : lost->as_array()) {
      const Json* original = entry.find("originalEntry");
      if (original != nullptr && original->is_array() && original->size() >= 2 &&
          saved_id(&original->at(std::size_t{0})) == "-1")
        apply_proxy(definition, *original, entry.find("hostValue"), values);
    }
  const Json* proxies = entries("proxyWidgets");
  const Json* list = values_list(node);
  for (std::size_t i = 0; proxies != nullptr && i < proxies->size(); ++i) {
    const Json& entry = proxies->at(i);
    if (entry.is_array() && entry.size() >= 2 && entry.at(std::size_t{1}).is_string())
      apply_proxy(definition, entry, saved_value(list, i), values);
  }
}

void SavedValues::apply_proxy(const SavedGraph& definition, const Json& entry, const Json* value,
                              NodeValues& values) const {
  std::string id = saved_id(&entry.at(std::size_t{0}));
  if (!entry.at(std::size_t{1}).is_string()) return;
  const std::string name = entry.at(std::size_t{1}).as_string();
  if (name.starts_with("$$")) return;  // shows a preview
  if (id == "-1") {
    if (value == nullptr) return;
    for (std::size_t i = 0; i < definition.inputs.size(); ++i)
      if (definition.inputs[i].name == name && !values.promoted[i].widget.empty())
        values.promoted[i].value = *value;
    return;
  }
  if (const auto fresh = definition.renamed.find(id); fresh != definition.renamed.end())
    id = fresh->second;
  for (const std::string_view widget : {std::string_view(name), without_prefixes(name)}) {
    for (PromotedInput& input : values.promoted)
      if (input.node == id && input.widget == widget) {
        if (value != nullptr) input.value = *value;
        return;
      }
    const SavedNode* inner = definition.find(id);
    const auto found = inner == nullptr ? values_.end() : values_.find(inner);
    if (found == values_.end()) return;
    const SavedWidget* own = found->second.widgets.find(widget);
    const bool is_socket =
        std::ranges::find(inner->inputs, widget, &SavedSlot::name) != inner->inputs.end();
    const bool is_primitive = inner->type == "PrimitiveNode" && widget == "value";
    const bool is_own = own != nullptr && (own->has_socket || is_socket);
    if (!is_primitive && !is_own && (found->second.definition != nullptr || !is_socket)) continue;
    // Shown outside, a widget is sent as it is there, even where the value is its own.
    if (value == nullptr && is_own && own->value) value = &*own->value;
    if (value != nullptr) values.inside[{id, std::string(widget)}] = *value;
    return;
  }
}

}  // namespace heddle::engine
