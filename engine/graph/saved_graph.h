// A workflow as ComfyUI's interface saves it (format 0.4, and 1 of subgraphs), read into structs:
// nodes with sockets and widget values, links of both spellings, subgraph definitions. Nothing is
// resolved yet. Values that point into the JSON that they were read from.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/json.h"

namespace heddle::engine {

// Ids of nodes and links are numbers or texts in files; here they are texts ("12"), as in the API
// form. Those of the two ends of a subgraph:
inline constexpr std::string_view kSubgraphInputs = "-10", kSubgraphOutputs = "-20";

struct SavedLink {
  std::string origin, target;  // ids of nodes
  std::size_t origin_slot = 0, target_slot = 0;
};

struct SavedSlot {
  std::string name;
  std::string type;                // "", "*": any
  std::string link;                // id; of a node's input; empty: none
  std::vector<std::string> links;  // of an end of a subgraph
  bool has_widget = false;         // of a node's input, as the file says
};

enum class SavedMode { always, muted, bypassed };

struct SavedNode {
  std::string id, type, title;
  SavedMode mode = SavedMode::always;
  std::vector<SavedSlot> inputs, outputs;
  const Json* json = nullptr;

  const Json* property(std::string_view name) const;  // nullptr: not there
};

struct SavedGraph {
  std::string id, name;  // of a subgraph
  std::vector<SavedNode> nodes;
  std::unordered_map<std::string, std::size_t> by_id;
  std::unordered_map<std::string, SavedLink> links;
  std::vector<std::string> link_order;     // as in the file
  std::vector<SavedSlot> inputs, outputs;  // of a subgraph
  // New ids of nodes, by those in the file: promoted widgets are named by the latter.
  std::unordered_map<std::string, std::string> renamed;

  const SavedNode* find(const std::string& node) const;
  const SavedLink* link_of(const SavedSlot& input) const;  // nullptr: nothing is linked
};

struct SavedWorkflow {
  std::deque<SavedGraph> graphs;  // the root first; they stay where they are
  std::unordered_map<std::string, const SavedGraph*> definitions;
  std::deque<Json> made;  // what legacy definitions were turned into

  const SavedGraph& root() const { return graphs.front(); }
  const SavedGraph* definition(const std::string& type) const;  // nullptr: none
};

// A place in the text and what is wrong there, for one report of all.
struct SavedProblem {
  std::uint32_t line = 0, column = 0;
  std::string message;
};

// Whether a JSON value is a workflow that the interface saves: "nodes" as a list, where the API
// form has a map of ids.
bool is_saved_form(const Json& json);

// `json` outlives the result. What cannot be read at all is told in `problems` and left out.
SavedWorkflow read_saved_workflow(const Json& json, std::vector<SavedProblem>& problems);

// One graph, a subgraph's definition, in the same way.
SavedGraph read_saved_graph(const Json& json, std::vector<SavedProblem>& problems);

// "12" of 12 and "12"; empty for what is no id.
std::string saved_id(const Json* json);

// "node '12' 'Load Image' (LoadImage)", for messages.
std::string shown(const SavedNode& node);

}  // namespace heddle::engine
