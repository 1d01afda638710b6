#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/graph/catalog.h"
#include "engine/graph/python_text.h"
#include "engine/graph/type_match.h"
#include "heddle/abi/front_end.h"

namespace heddle::engine {
namespace {

bool has_text(const char* text) { return text != nullptr && *text != '\0'; }

// Of an INT: whole where it can be, because clients tell 5 from 5.0. 2^64 stands for the greatest
// seed.
Json whole(double number) {
  if (number == 18446744073709551616.0) return Json(~std::uint64_t{0});
  const std::optional<WholeNumber> integer = truncated(number);
  if (!integer || std::trunc(number) != number) return Json(number);
  return std::visit([](auto value) { return Json(value); }, *integer);
}

void add_range(const heddle_widget& widget, Json (*make)(double), Json& options) {
  if (widget.min < widget.max) options.set("min", make(widget.min)).set("max", make(widget.max));
  if (widget.step != 0) options.set("step", make(widget.step));
  if (widget.round != 0) options.set("round", make(widget.round));
}

void add_widget(const heddle_widget& widget, Json& options) {
  switch (widget.kind) {
    case HEDDLE_WIDGET_INT:
      options.set("default", whole(widget.number));
      return add_range(widget, &whole, options);
    case HEDDLE_WIDGET_SEED:
      options.set("default", whole(widget.number));
      options.set("min", 0).set("max", ~std::uint64_t{0}).set("control_after_generate", true);
      return add_range(widget, &whole, options);
    case HEDDLE_WIDGET_FLOAT:
      options.set("default", Json(widget.number));
      return add_range(
          widget, [](double number) { return Json(number); }, options);
    case HEDDLE_WIDGET_TOGGLE:
      options.set("default", widget.number != 0);
      return;
    default:
      if (has_text(widget.text)) options.set("default", widget.text);
  }
}

// Front ends give these a widget of their own accord; without one of ours they have to be linked.
bool has_own_widget(std::string_view type) {
  return type == "INT" || type == "FLOAT" || type == "STRING" || type == "BOOLEAN";
}

// A null in a widget's extra takes an option out, the list of names as well.
Json without_nulls(const Json& options) {
  Json kept = Json::object();
  for (const Json::Member& member : options.members())
    if (!member.value.is_null()) kept.set(member.key, member.value);
  return kept;
}

// A choice is a list in the type's place; where the declared type is COMBO it is the later form,
// with the list among the options.
Json input_info(const heddle_port& port, const Catalog& catalog) {
  Json options = Json::object();
  if (port.widget != nullptr) add_widget(*port.widget, options);
  if (port.widget == nullptr && has_own_widget(port.type)) options.set("forceInput", true);
  if ((port.flags & HEDDLE_PORT_LAZY) != 0) options.set("lazy", true);
  if (has_text(port.doc)) options.set("tooltip", to_valid_utf8(port.doc));
  const bool is_combo = std::string_view(port.type) == "COMBO";
  Json names = Json::array();
  if (chooses(port))
    for (std::string& name : catalog.choices(*port.widget)) names.push(std::move(name));
  if (chooses(port) && is_combo) options.set("multiselect", false).set("options", names);
  if (port.widget != nullptr && port.widget->extra != nullptr) {
    const Json extra = parse_json(port.widget->extra, port.name);
    for (const Json::Member& member : extra.members()) options.set(member.key, member.value);
    options = without_nulls(options);
  }
  Json info = Json::array();
  if (chooses(port) && !is_combo)
    info.push(std::move(names));
  else
    info.push(port.type);
  info.push(std::move(options));
  return info;
}

// The names of the templates that the inputs of any type belong to, each once, in their order.
// Those of one template have the same type.
void add_templates(const Json& json, std::vector<std::string>& names) {
  if (json.is_array())
    for (const Json& item : json.as_array()) add_templates(item, names);
  if (!json.is_object()) return;
  for (const Json::Member& member : json.members()) {
    const bool is_name = member.key == "template_id" && member.value.is_string();
    if (is_name && std::ranges::find(names, member.value.as_string()) == names.end())
      names.push_back(member.value.as_string());
    add_templates(member.value, names);
  }
}

bool matches_inputs(const heddle_port& output) {
  return std::string_view(output.type) == "COMFY_MATCHTYPE_V3";
}

// Which template each output follows: the first of them the first, and so on; what is left, the
// last.
Json match_types(const NodeType& type, const Json& inputs) {
  std::vector<std::string> names;
  add_templates(inputs, names);
  Json matches = Json::array();
  std::size_t next = 0;
  for (std::uint32_t o = 0; o < type.output_count(); ++o) {
    const bool follows = matches_inputs(type.output(o)) && !names.empty();
    matches.push(follows ? Json(names[std::min(next++, names.size() - 1)]) : Json());
  }
  return matches;
}

// required, optional, hidden: members of "input" and lists of names in "input_order". Only
// "required" is there when it is empty.
struct Section {
  const char* name;
  Json inputs = Json::object();
  Json order = Json::array();
};

void add_inputs(const NodeType& type, const Catalog& catalog, Json& info) {
  Section required{"required"}, optional{"optional"}, hidden{"hidden"};
  for (std::uint32_t i = 0; i < type.input_count(); ++i) {
    const heddle_port& port = type.input(i);
    const bool is_hidden = (port.flags & HEDDLE_PORT_HIDDEN) != 0;
    const bool is_optional = (port.flags & HEDDLE_PORT_OPTIONAL) != 0;
    Section& section = is_hidden ? hidden : is_optional ? optional : required;
    section.inputs.set(port.name, is_hidden ? Json(port.type) : input_info(port, catalog));
    section.order.push(port.name);
  }
  Json inputs = Json::object();
  Json order = Json::object();
  for (Section* section : {&required, &optional, &hidden}) {
    if (section != &required && section->order.size() == 0) continue;
    inputs.set(section->name, std::move(section->inputs));
    order.set(section->name, std::move(section->order));
  }
  info.set("input", std::move(inputs)).set("input_order", std::move(order));
}

void add_outputs(const NodeType& type, Json& info) {
  Json types = Json::array(), lists = Json::array(), names = Json::array(), docs = Json::array();
  bool any_doc = false, any_match = false;
  for (std::uint32_t o = 0; o < type.output_count(); ++o) {
    const heddle_port& port = type.output(o);
    types.push(port.type);
    lists.push((port.flags & HEDDLE_PORT_LIST) != 0);
    any_match = any_match || matches_inputs(port);
    names.push(port.name);
    docs.push(has_text(port.doc) ? to_valid_utf8(port.doc) : std::string());
    any_doc = any_doc || has_text(port.doc);
  }
  info.set("output", std::move(types))
      .set("output_is_list", std::move(lists))
      .set("output_name", std::move(names));
  if (any_match) info.set("output_matchtypes", match_types(type, info.at("input")));
  if (any_doc) info.set("output_tooltips", std::move(docs));
}

// Front ends show where a node comes from by this: "nodes" is the core, "custom_nodes.x" the
// extension x.
std::string module_of(std::string_view plugin) {
  return plugin.starts_with("org.heddle.") ? "nodes" : cat("custom_nodes.", plugin);
}

}  // namespace

Json input_config(const heddle_port& input, const Catalog& catalog) {
  return input_info(input, catalog);
}

Json object_info(const NodeType& type, const Catalog& catalog) {
  const heddle_node_desc& desc = type.desc();
  Json info = Json::object();
  add_inputs(type, catalog, info);
  add_outputs(type, info);
  info.set("name", type.name());
  info.set("display_name", has_text(desc.title) ? desc.title : desc.type);
  info.set("description", has_text(desc.doc) ? to_valid_utf8(desc.doc) : std::string());
  info.set("python_module", module_of(type.plugin()));
  info.set("category", has_text(desc.category) ? desc.category : "");
  info.set("output_node", type.has(HEDDLE_NODE_SINK));
  if (type.takes_lists()) info.set("is_input_list", true);
  if (type.has(HEDDLE_NODE_INTERMEDIATE_OUTPUT)) info.set("has_intermediate_output", true);
  if (type.has(HEDDLE_NODE_LOOP_START)) info.set("loop_boundary", "start");
  if (type.has(HEDDLE_NODE_LOOP_END)) info.set("loop_boundary", "end");
  if (type.has(HEDDLE_NODE_DEPRECATED)) info.set("deprecated", true);
  if (type.has(HEDDLE_NODE_EXPERIMENTAL)) info.set("experimental", true);
  if (type.has(HEDDLE_NODE_DEV_ONLY)) info.set("dev_only", true);
  return std::move(Json::object().set(std::string(type.name()), std::move(info)));
}

}  // namespace heddle::engine
