#include "engine/graph/saved_graph.h"

#include <cmath>

#include "engine/base/text.h"
#include "engine/graph/saved_ids.h"

namespace heddle::engine {
namespace {

std::string text_member(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : std::string();
}

// The type of a socket: a name, and in old files a list of choices or a number.
std::string type_of(const Json& slot) {
  const Json* type = slot.find("type");
  if (type == nullptr || type->is_null()) return "*";
  if (type->is_string()) return type->as_string();
  return type->is_array() ? "COMBO" : write_json(*type);
}

std::optional<std::size_t> slot_number(const Json* json) {
  if (json == nullptr || !json->is_number()) return std::nullopt;
  const double number = json->as_double();
  if (!(number >= 0 && number < 1e6) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::size_t>(number);
}

const Json kNoList = Json::array();

const std::vector<Json>& list_of(const Json& json, std::string_view key) {
  const Json* list = json.find(key);
  return (list != nullptr && list->is_array() ? *list : kNoList).as_array();
}

std::vector<SavedSlot> slots_of(const Json& json, std::string_view key) {
  std::vector<SavedSlot> slots;
  for (const Json& entry : list_of(json, key)) {
    SavedSlot& slot = slots.emplace_back();
    slot.name = text_member(entry, "name");
    slot.type = type_of(entry);
    slot.link = saved_id(entry.find("link"));
    slot.has_widget = entry.find("widget") != nullptr;
    for (const Json& link : list_of(entry, "linkIds")) slot.links.push_back(saved_id(&link));
  }
  return slots;
}

SavedMode mode_of(const Json& node) {
  const Json* mode = node.find("mode");
  if (mode == nullptr || !mode->is_integer()) return SavedMode::always;
  if (*mode == Json(2)) return SavedMode::muted;
  return *mode == Json(4) ? SavedMode::bypassed : SavedMode::always;
}

class Reader {
 public:
  Reader(SavedWorkflow& workflow, std::vector<SavedProblem>& problems)
      : workflow_(workflow), problems_(problems) {}

  void read(const Json& json) {
    read_graph(json, workflow_.graphs.emplace_back());
    read_definitions(json, 0);
    make_ids_unique(json, workflow_);
    for (const SavedGraph& graph : workflow_.graphs)
      if (!graph.id.empty()) workflow_.definitions.emplace(graph.id, &graph);
  }

  void read_definition(const Json& json, SavedGraph& graph) {
    read_graph(json, graph);
    graph.id = saved_id(json.find("id"));
    graph.name = text_member(json, "name");
    graph.inputs = slots_of(json, "inputs");
    graph.outputs = slots_of(json, "outputs");
  }

 private:
  static constexpr std::size_t kMostNested = 100;  // definitions inside of definitions

  void report(const Json& json, std::string message) {
    problems_.push_back({json.line(), json.column(), std::move(message)});
  }

  void read_definitions(const Json& json, std::size_t depth) {
    const Json* definitions = json.find("definitions");
    if (definitions == nullptr || depth > kMostNested) return;
    for (const Json& entry : list_of(*definitions, "subgraphs")) {
      SavedGraph& graph = workflow_.graphs.emplace_back();
      read_definition(entry, graph);
      if (graph.id.empty()) report(entry, "a subgraph definition has no \"id\".");
      read_definitions(entry, depth + 1);
    }
  }

  void read_graph(const Json& json, SavedGraph& graph) {
    for (const Json& entry : list_of(json, "nodes")) {
      SavedNode node;
      node.id = saved_id(entry.find("id"));
      node.type = text_member(entry, "type");
      if (node.id.empty() || node.type.empty()) {
        report(entry, cat("a node needs an \"id\" and a \"type\", got ", entry.describe(), "."));
        continue;
      }
      node.title = text_member(entry, "title");
      node.mode = mode_of(entry);
      node.inputs = slots_of(entry, "inputs");
      node.outputs = slots_of(entry, "outputs");
      node.json = &entry;
      // Of nodes with the same id the first one counts, as in the interface.
      if (graph.by_id.emplace(node.id, graph.nodes.size()).second)
        graph.nodes.push_back(std::move(node));
    }
    for (const Json& entry : list_of(json, "links")) read_link(entry, graph);
  }

  // [id, origin, slot, target, slot, type], or an object of the same.
  void read_link(const Json& entry, SavedGraph& graph) {
    const auto part = [&](std::size_t index, std::string_view key) -> const Json* {
      if (!entry.is_array()) return entry.find(key);
      return index < entry.size() ? &entry.at(index) : nullptr;
    };
    if (entry.is_null()) return;  // left behind by a link that was removed
    const std::string id = saved_id(part(0, "id"));
    const auto from = slot_number(part(2, "origin_slot")), to = slot_number(part(4, "target_slot"));
    SavedLink link{saved_id(part(1, "origin_id")), saved_id(part(3, "target_id")), from.value_or(0),
                   to.value_or(0)};
    if (id.empty() || link.origin.empty() || link.target.empty() || !from || !to)
      return report(entry,
                    cat("a link is [id, node, output, node, input, type], or an object with "
                        "\"id\", \"origin_id\", \"origin_slot\", \"target_id\", \"target_slot\"; "
                        "got ",
                        clip(write_json(entry), 100), "."));
    if (graph.links.emplace(id, std::move(link)).second) graph.link_order.push_back(id);
  }

  SavedWorkflow& workflow_;
  std::vector<SavedProblem>& problems_;
};

}  // namespace

const Json* SavedNode::property(std::string_view name) const {
  const Json* properties = json->find("properties");
  return properties == nullptr ? nullptr : properties->find(name);
}

const SavedNode* SavedGraph::find(const std::string& node) const {
  const auto found = by_id.find(node);
  return found == by_id.end() ? nullptr : &nodes[found->second];
}

const SavedLink* SavedGraph::link_of(const SavedSlot& input) const {
  if (input.link.empty()) return nullptr;
  const auto found = links.find(input.link);
  return found == links.end() ? nullptr : &found->second;
}

const SavedGraph* SavedWorkflow::definition(const std::string& type) const {
  const auto found = definitions.find(type);
  return found == definitions.end() ? nullptr : found->second;
}

bool is_saved_form(const Json& json) {
  const Json* nodes = json.find("nodes");
  return nodes != nullptr && nodes->is_array() &&
         (json.find("links") != nullptr || json.find("last_node_id") != nullptr ||
          json.size() == 1);
}

SavedWorkflow read_saved_workflow(const Json& json, std::vector<SavedProblem>& problems) {
  SavedWorkflow workflow;
  Reader(workflow, problems).read(json);
  return workflow;
}

SavedGraph read_saved_graph(const Json& json, std::vector<SavedProblem>& problems) {
  SavedWorkflow none;
  SavedGraph graph;
  Reader(none, problems).read_definition(json, graph);
  return graph;
}

std::string saved_id(const Json* json) {
  if (json == nullptr) return "";
  if (json->is_string()) return json->as_string();
  if (json->is_integer()) return write_json(*json);
  if (json->kind() != Json::Kind::real) return "";
  const double number = json->as_double();
  const bool is_whole = std::abs(number) < 9e15 && number == std::floor(number);
  return is_whole ? cat(static_cast<std::int64_t>(number)) : std::string();
}

std::string shown(const SavedNode& node) {
  return cat("node ", quote(node.id), node.title.empty() ? "" : " ",
             node.title.empty() ? "" : quote(node.title), " (", printable(clip(node.type, 80)),
             ")");
}

}  // namespace heddle::engine
