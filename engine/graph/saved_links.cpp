#include "engine/graph/saved_links.h"

#include <set>
#include <tuple>

#include "engine/graph/saved_sockets.h"

namespace heddle::engine {

// The socket that is looked at: an input of a node, or an output.
struct SavedLinks::Search {
  const SavedInstance* instance;
  const SavedNode* node;
  std::size_t slot;
  bool is_output = false;
  std::optional<std::string> wanted;  // type; nothing: the input's own
  SavedSource found;
};

SavedSource SavedLinks::source_of(const SavedInstance& instance, const SavedNode& node,
                                  std::size_t input) const {
  Search search{&instance, &node, input, false, std::nullopt, {}};
  std::set<std::tuple<const SavedInstance*, const SavedNode*, std::size_t, bool>> seen;
  do {
    if (!seen.emplace(search.instance, search.node, search.slot, search.is_output).second) {
      search.found.kind = SavedSource::Kind::circle;
      break;
    }
  } while (search.is_output ? follow_output(search) : follow_input(search));
  return std::move(search.found);
}

// False: the search is over.
bool SavedLinks::follow_input(Search& search) const {
  if (search.slot >= search.node->inputs.size()) return false;
  const SavedSlot& input = search.node->inputs[search.slot];
  const SavedLink* link = search.instance->graph->link_of(input);
  if (link == nullptr) return false;
  if (search.instance->parent != nullptr && link->origin == kSubgraphInputs) {
    const SavedNode* host = search.instance->node;
    search.slot = link->origin_slot;
    search.instance = search.instance->parent;
    search.node = host;
    search.wanted.reset();
    if (search.slot >= host->inputs.size()) return false;
    if (search.instance->graph->link_of(host->inputs[search.slot]) != nullptr) return true;
    search.found = promoted_value(search, search.slot);
    return false;
  }
  if (!search.wanted) search.wanted = input.type;
  search.node = search.instance->graph->find(link->origin);
  search.slot = link->origin_slot;
  search.is_output = true;
  return search.node != nullptr;
}

bool SavedLinks::follow_output(Search& search) const {
  const SavedNode& node = *search.node;
  if (node.mode == SavedMode::muted) return false;
  if (node.mode == SavedMode::bypassed) {
    const std::string type =
        search.slot < node.outputs.size() ? node.outputs[search.slot].type : "";
    const auto input = bypass_input(node, type, search.slot, *search.wanted);
    if (!input) return false;
    search.slot = *input;
    search.is_output = false;
    search.wanted.reset();
    return true;
  }
  if (const SavedGraph* definition = workflow_.definition(node.type))
    return enter_subgraph(search, *definition);
  if (node.type == "Reroute") {
    search.is_output = false;  // of any type: the reader's counts
    return true;
  }
  if (node.type == "PrimitiveNode") search.found = primitive_value(*search.instance, node);
  if (is_virtual(node)) return false;
  search.found.kind = SavedSource::Kind::link;
  search.found.node = search.instance->id_of(node);
  search.found.slot = search.slot;
  return false;
}

bool SavedLinks::enter_subgraph(Search& search, const SavedGraph& definition) const {
  const auto child = search.instance->children.find(search.node);
  if (search.slot >= definition.outputs.size() || child == search.instance->children.end())
    return false;
  for (const std::string& id : definition.outputs[search.slot].links) {
    const auto link = definition.links.find(id);
    if (link == definition.links.end()) continue;
    search.slot = link->second.origin_slot;
    if (link->second.origin == kSubgraphInputs) {  // passed through
      search.is_output = false;
      search.wanted.reset();
      if (search.slot >= search.node->inputs.size()) return false;
      if (search.instance->graph->link_of(search.node->inputs[search.slot]) != nullptr) return true;
      search.found = promoted_value(search, search.slot);
      return false;
    }
    search.instance = child->second;
    search.node = definition.find(link->second.origin);
    return search.node != nullptr;
  }
  return false;
}

// Of an input of an instance that nothing is linked to: what the instance around it has for it, or
// the instance's own value.
SavedSource SavedLinks::promoted_value(const Search& search, std::size_t input) const {
  const NodeValues& values = values_.of(*search.node);
  SavedSource source;
  if (input >= values.promoted.size() || values.promoted[input].widget.empty()) return source;
  const Json* value = values.promoted[input].value ? &*values.promoted[input].value : nullptr;
  if (search.instance->parent != nullptr) {
    const auto& inside = values_.of(*search.instance->node).inside;
    const auto found = inside.find({search.node->id, search.node->inputs[input].name});
    if (found != inside.end()) value = &found->second;
  }
  if (value == nullptr) return source;
  source.kind = SavedSource::Kind::value;
  source.value = *value;
  return source;
}

SavedSource SavedLinks::primitive_value(const SavedInstance& instance,
                                        const SavedNode& node) const {
  SavedSource source;
  const Json* values = node.json->find("widgets_values");
  const Json* value = values != nullptr && values->is_array() && values->size() > 0
                          ? &values->at(std::size_t{0})
                          : nullptr;
  if (instance.parent != nullptr) {
    const auto& inside = values_.of(*instance.node).inside;
    if (const auto found = inside.find({node.id, "value"}); found != inside.end())
      value = &found->second;
  }
  if (value == nullptr || value->is_null()) return source;
  source.kind = SavedSource::Kind::value;
  source.value = *value;
  return source;
}

}  // namespace heddle::engine
