// The widgets of a saved node, by name: the interface saves their values by position, in the order
// of the class's definition, with entries of its own in between. Pure; any thread.
#pragma once

#include <set>

#include "engine/graph/saved_graph.h"

namespace heddle::engine {

struct SavedWidget {
  std::string name;               // "steps", "mode.child"
  std::string type;               // "INT", "COMBO", ...
  const Json* options = nullptr;  // of the definition; nullptr: none
  std::optional<Json> value;      // nothing: neither saved nor has the class a default
  bool has_socket = true;         // that a link may end at, and a subgraph promote

  bool option(std::string_view name) const;  // whether it is there and true
};

struct SavedWidgets {
  std::vector<SavedWidget> all;  // in the order of the definition
  std::string fault;             // why the values do not fit the class; empty: they do

  const SavedWidget* find(std::string_view name) const;
  SavedWidget* find(std::string_view name);
};

// `definition`: as NodeDefinitions::find() gives it. Values that are not saved are the class's
// defaults; those of widgets that the class does not have (upload buttons, previews) are left out.
SavedWidgets read_widgets(const SavedNode& node, const Json& definition);

// The widgets of a node inside of a group node, whose list of values has those of all its nodes:
// from `position` on, which moves behind them. Those in `absent` are not in it.
SavedWidgets read_group_widgets(const SavedNode& node, const Json& definition,
                                const std::vector<const Json*>& values,
                                const std::set<std::string, std::less<>>& absent,
                                std::size_t& position);

// "INT" and "COMBO" of [type, options] and [[choices], options].
std::string input_type(const Json& spec);

// The inputs of "required", then those of "optional", in their order.
std::vector<const Json::Member*> inputs_of(const Json& definition);

}  // namespace heddle::engine
