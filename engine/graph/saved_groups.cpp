#include "engine/graph/saved_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/text.h"
#include "engine/graph/saved_widgets.h"

namespace heddle::engine {
namespace {

using Slot = std::pair<std::size_t, std::size_t>;  // of a node inside: its number, and the slot's

const Json* member_of(const Json* json, std::string_view key) {
  return json == nullptr ? nullptr : json->find(key);
}

const std::vector<Json>& elements(const Json* json) {
  static const std::vector<Json> none;
  return json != nullptr && json->is_array() ? json->as_array() : none;
}

std::optional<std::size_t> index_at(const Json& array, std::size_t i) {
  if (!array.is_array() || i >= array.size()) return std::nullopt;
  const std::string id = saved_id(&array.at(i));
  if (id.empty() || id.size() > 6 || id.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoul(id);
}

// One group node, as the definition of a subgraph that only it is an instance of.
class GroupSubgraph {
 public:
  GroupSubgraph(const Json& group, const SavedGraph& inside, const NodeDefinitions& definitions)
      : group_(group), inside_(inside), definitions_(definitions) {
    for (const Json& link : elements(group.find("links"))) {
      const auto from = index_at(link, 0), output = index_at(link, 1);
      const auto to = index_at(link, 2), input = index_at(link, 3);
      if (!from || !output || !to || !input || *from >= size() || *to >= size()) continue;
      if (*input >= node(*to).inputs.size()) continue;
      link_to_[{*to, *input}] = {*from, *output};
      read_inside_.insert({*from, *output});
    }
    for (const Json& external : elements(group.find("external")))
      if (const auto from = index_at(external, 0), output = index_at(external, 1); from && output)
        read_outside_.insert({*from, *output});
  }

  // `values`: those of the group node.
  Json make(const std::string& id, const std::vector<const Json*>& values) {
    for (std::size_t n = 0; n < size(); ++n) add_node(n, values);
    for (const auto& [n, input] : converted_) add_input(n, input);
    Json nodes = Json::array();
    for (Json& made : nodes_) nodes.push(std::move(made));
    Json json = Json::object();
    json.set("id", id).set("nodes", std::move(nodes)).set("links", std::move(links_));
    return std::move(json.set("inputs", std::move(inputs_)).set("outputs", std::move(outputs_)));
  }

 private:
  std::size_t size() const { return inside_.nodes.size(); }
  const SavedNode& node(std::size_t n) const { return inside_.nodes[n]; }

  Json add_link(Json origin, std::size_t origin_slot, Json target, std::size_t target_slot) {
    const std::size_t id = ++last_link_;
    links_.push(std::move(Json::object()
                              .set("id", id)
                              .set("origin_id", std::move(origin))
                              .set("origin_slot", origin_slot)
                              .set("target_id", std::move(target))
                              .set("target_slot", target_slot)));
    return Json(id);
  }

  void add_node(std::size_t n, const std::vector<const Json*>& values) {
    const Json* definition = definitions_.find(node(n).type);
    Json inputs = Json::array();
    for (const SavedSlot& input : node(n).inputs)
      inputs.push(std::move(
          Json::object().set("name", input.name).set("type", input.type).set("link", nullptr)));
    Json made = *node(n).json;
    made.set("id", n).set("inputs", std::move(inputs));
    std::set<std::string, std::less<>> own;  // widgets that were made inputs: not the group's
    for (std::size_t i = 0; i < node(n).inputs.size(); ++i)
      if (const Json* saved = node(n).json->find("inputs"); saved->at(i).find("widget") != nullptr)
        own.insert(node(n).inputs[i].name);
    if (node(n).type == "PrimitiveNode" && position_ < values.size())
      made.set("widgets_values", primitive_values(values));
    else if (definition != nullptr)
      made.set("widgets_values", widget_values(n, *definition, values, own));
    nodes_.push_back(std::move(made));
    add_sockets(n, definition, own);
    add_outputs(n, definition);
  }

  Json primitive_values(const std::vector<const Json*>& values) {
    Json list = Json::array();
    list.push(*values[position_++]);
    const auto is_control = [](const Json& json) {
      return json.is_string() &&
             (json.as_string() == "fixed" || json.as_string() == "randomize" ||
              json.as_string() == "increment" || json.as_string() == "decrement");
    };
    if (position_ < values.size() && is_control(*values[position_])) ++position_;
    return list;
  }

  Json widget_values(std::size_t n, const Json& definition, const std::vector<const Json*>& values,
                     const std::set<std::string, std::less<>>& own) {
    Json named = Json::object();
    for (SavedWidget& widget : read_widgets(node(n), definition).all)
      if (widget.value) named.set(widget.name, *std::move(widget.value));
    for (SavedWidget& widget : read_group_widgets(node(n), definition, values, own, position_).all)
      if (widget.value && own.count(widget.name) == 0)
        named.set(widget.name, *std::move(widget.value));
    return named;
  }

  // Sockets in the order of the class; those that widgets were made into come after all others.
  void add_sockets(std::size_t n, const Json* definition,
                   const std::set<std::string, std::less<>>& own) {
    std::vector<std::size_t> order;
    const std::vector<SavedSlot>& inputs = node(n).inputs;
    const auto take = [&](std::size_t i) {
      if (std::ranges::find(order, i) == order.end()) order.push_back(i);
    };
    if (definition != nullptr)
      for (const Json::Member* input : inputs_of(*definition)) {
        const auto found = std::ranges::find(inputs, input->key, &SavedSlot::name);
        if (found != inputs.end()) take(static_cast<std::size_t>(found - inputs.begin()));
      }
    for (std::size_t i = 0; i < inputs.size(); ++i) take(i);
    if (definition != nullptr)  // names of widgets count when sockets are named
      for (const Json::Member* input : inputs_of(*definition))
        if (!own.contains(input->key) && input_type(input->value) != "COMFY_AUTOGROW_V3" &&
            std::ranges::find(inputs, input->key, &SavedSlot::name) == inputs.end())
          name_of(n, input->key);
    for (const std::size_t i : order) {
      if (const auto from = link_to_.find({n, i}); from != link_to_.end()) {
        set_link(n, i, add_link(from->second.first, from->second.second, n, i));
      } else if (own.contains(inputs[i].name)) {
        converted_.emplace_back(n, i);
      } else {
        add_input(n, i);
      }
    }
  }

  void add_input(std::size_t n, std::size_t i) {
    const SavedSlot& input = node(n).inputs[i];
    const std::string name =
        name_of(n, node(n).type == "Reroute" && input.name.empty() ? input.type : input.name);
    const Json* config = input_config(n, input.name);
    const Json* visible = member_of(config, "visible");
    if (visible != nullptr && *visible == Json(false)) return;
    Json id = add_link(-10, inputs_.size(), n, i);
    Json ids = Json::array();
    ids.push(id);
    set_link(n, i, std::move(id));
    inputs_.push(std::move(
        Json::object().set("name", name).set("type", input.type).set("linkIds", std::move(ids))));
  }

  void set_link(std::size_t n, std::size_t i, Json id) {
    Json inputs = *nodes_[n].find("inputs");
    Json changed = Json::array();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Json input = inputs.at(k);
      if (k == i) input.set("link", id);
      changed.push(std::move(input));
    }
    nodes_[n].set("inputs", std::move(changed));
  }

  const Json* input_config(std::size_t n, std::string_view name) const {
    return member_of(member_of(member_of(group_.find("config"), cat(n)), "input"), name);
  }

  // What the group calls an input of a node inside: names that are there already get the node's
  // title in front, and then a number.
  std::string name_of(std::size_t n, const std::string& input) {
    const Json* config = member_of(input_config(n, input), "name");
    std::string name = config != nullptr && config->is_string() ? config->as_string() : input;
    std::string key = name;
    const bool is_titled = node(n).type == "PrimitiveNode" && !node(n).title.empty();
    if (is_titled || seen_.contains(name)) {
      const std::string prefix = cat(node(n).title.empty() ? node(n).type : node(n).title, " ");
      key = name = prefix + input;
      if (const auto seen = seen_.find(name); seen != seen_.end())
        name = cat(prefix, seen->second, " ", input);
    }
    const auto made = seen_.emplace(key, 1).first;
    ++made->second;
    return name;
  }

  void add_outputs(std::size_t n, const Json* definition) {
    const std::vector<Json>& types = elements(member_of(definition, "output"));
    const std::size_t count = definition != nullptr ? types.size() : node(n).outputs.size();
    for (std::size_t o = 0; o < count; ++o) {
      const bool is_inner = read_inside_.contains({n, o}) && !read_outside_.contains({n, o});
      const Json* config = member_of(
          member_of(member_of(member_of(group_.find("config"), cat(n)), "output"), cat(o)),
          "visible");
      const bool is_visible =
          config != nullptr && config->is_bool() ? config->as_bool() : !is_inner;
      if (!is_visible) continue;
      Json ids = Json::array();
      ids.push(add_link(n, o, -20, outputs_.size()));
      outputs_.push(std::move(
          Json::object()
              .set("name", cat(o))
              .set("type", o < node(n).outputs.size() ? node(n).outputs[o].type : std::string("*"))
              .set("linkIds", std::move(ids))));
    }
  }

  const Json& group_;
  const SavedGraph& inside_;
  const NodeDefinitions& definitions_;
  std::map<Slot, Slot> link_to_;
  std::set<Slot> read_inside_, read_outside_;
  std::map<std::string, std::size_t> seen_;
  std::size_t position_ = 0;  // in the group node's values
  std::vector<Slot> converted_;
  std::vector<Json> nodes_;
  std::size_t last_link_ = 0;
  Json links_ = Json::array(), inputs_ = Json::array(), outputs_ = Json::array();
};

// "NAME" of "workflow>NAME" and "workflow/NAME"; empty: no group node.
std::string group_name(const std::string& type) {
  for (const char* prefix : {"workflow>", "workflow/"})
    if (type.starts_with(prefix)) return type.substr(9);
  return "";
}

}  // namespace

void add_group_definitions(const Json& json, const NodeDefinitions& definitions,
                           SavedWorkflow& workflow, std::vector<SavedProblem>& problems) {
  const Json* groups = member_of(json.find("extra"), "groupNodes");
  if (groups == nullptr) return;
  for (SavedNode& node : workflow.graphs.front().nodes) {
    const Json* group = groups->find(group_name(node.type));
    if (group == nullptr || node.mode != SavedMode::always) continue;
    // Inside they are told apart by their place; ids are those of when the group was made.
    Json numbered = Json::object();
    Json list = Json::array();
    std::size_t n = 0;
    for (Json inner : elements(group->find("nodes")))
      if (inner.is_object()) list.push(inner.set("id", n++));
    numbered.set("nodes", std::move(list));
    const Json& kept = workflow.made.emplace_back(std::move(numbered));
    const SavedGraph inside = read_saved_graph(kept, problems);
    if (inside.nodes.size() != n) continue;  // one could not be read, which was told
    std::vector<const Json*> values;
    for (const Json& value : elements(node.json->find("widgets_values"))) values.push_back(&value);
    node.type = cat("group of node ", node.id);
    workflow.made.push_back(GroupSubgraph(*group, inside, definitions).make(node.type, values));
    workflow.graphs.push_back(read_saved_graph(workflow.made.back(), problems));
    workflow.definitions.emplace(node.type, &workflow.graphs.back());
  }
}

}  // namespace heddle::engine
