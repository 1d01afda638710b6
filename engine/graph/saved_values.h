// What the widgets of a saved workflow say, subgraphs included: the values that the nodes inside of
// a subgraph saved, those that an instance has for what it promotes, and the sockets that links end
// at, in the order of the classes' definitions. Made bottom-up once; then read by any thread.
#pragma once

#include <map>
#include <set>

#include "engine/graph/node_definitions.h"
#include "engine/graph/saved_graph.h"
#include "engine/graph/saved_widgets.h"

namespace heddle::engine {

// An input of an instance of a subgraph that stands for a widget inside of it.
struct PromotedInput {
  std::string node, widget;  // inside: where the value goes; empty: this input is a socket only
  std::string type;
  std::optional<Json> value;
};

struct NodeValues {
  const Json* definition = nullptr;     // nullptr: unknown class, instance, or only of the editor
  SavedWidgets widgets;                 // of an ordinary node
  std::vector<PromotedInput> promoted;  // of an instance, by the inputs of its definition
  // Of an instance: values for widgets inside that have no input, by node and widget.
  std::map<std::pair<std::string, std::string>, Json> inside;
};

class SavedValues {
 public:
  // Changes the workflow's nodes: afterwards `inputs` are all sockets of the class, in its order.
  SavedValues(SavedWorkflow& workflow, const NodeDefinitions& definitions);

  const NodeValues& of(const SavedNode& node) const { return values_.at(&node); }
  // nullptr: of a subgraph that nothing uses.
  const NodeValues* find(const SavedNode& node) const {
    const auto found = values_.find(&node);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  void read_graph(SavedGraph& graph);
  void read_instance(SavedNode& node, const SavedGraph& definition);
  PromotedInput promoted_by(const SavedGraph& definition, std::size_t input) const;
  void apply_proxies(const SavedNode& node, const SavedGraph& definition, NodeValues& values) const;
  void apply_proxy(const SavedGraph& definition, const Json& entry, const Json* value,
                   NodeValues& values) const;

  SavedWorkflow& workflow_;
  const NodeDefinitions& definitions_;
  std::unordered_map<const SavedNode*, NodeValues> values_;
  std::set<const SavedGraph*> read_;  // or being read: one that contains itself is read once
};

// A node that only the interface knows, such as a note.
bool is_virtual(const SavedNode& node);

}  // namespace heddle::engine
