#include "engine/graph/saved_form.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/saved_groups.h"
#include "engine/graph/saved_instances.h"
#include "engine/graph/saved_text.h"

namespace heddle::engine {
namespace {

// As a link would look like one otherwise.
Json sent(const Json& value, std::string_view type) {
  const bool is_wrapped = value.find("__value__") != nullptr;
  if (type == "CURVE" && !value.is_null() && !is_wrapped)
    return std::move(Json::object().set("__type__", "CURVE").set("__value__", value));
  if (!value.is_array()) return value;
  return std::move(Json::object().set("__value__", value));
}

// What a browser takes for a number among the members of an object.
std::optional<std::uint64_t> member_number(const std::string& key) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  const bool is_number = error == std::errc() && end == key.data() + key.size() &&
                         cat(number) == key && number < 0xFFFFFFFF;
  return is_number ? std::optional(number) : std::nullopt;
}

// A value as a text, numbers as the interface writes them: 5.0 is "5".
std::string text_of(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_null()) return "";
  std::string text = write_json(value);
  if (value.kind() == Json::Kind::real && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

class Converter {
 public:
  Converter(const Json& saved, const NodeDefinitions& definitions, std::string_view name,
            UnknownClasses unknown)
      : name_(name),
        unknown_(unknown),
        workflow_(read_all(saved, definitions)),
        values_(workflow_, definitions),
        links_(workflow_, values_),
        instances_(saved_instances(workflow_, problems_)) {}

  Json convert() {
    for (const SavedNode* node : execution_order(workflow_.root())) add(instances_.front(), *node);
    if (!problems_.empty()) refuse();
    return in_order();
  }

 private:
  SavedWorkflow read_all(const Json& saved, const NodeDefinitions& definitions) {
    SavedWorkflow workflow = read_saved_workflow(saved, problems_);
    add_group_definitions(saved, definitions, workflow, problems_);
    return workflow;
  }

  // Numbers first and ascending, as a browser lists the members of an object.
  Json in_order() {
    std::map<std::uint64_t, const Json::Member*> numbers;
    for (const Json::Member& member : nodes_.members())
      if (const auto number = member_number(member.key)) numbers.emplace(*number, &member);
    Json sorted = Json::object();
    const auto take = [&](const Json::Member& member) {
      Json::Member& made = sorted.insert(member.key).first;
      made.value = member.value;
      made.line = member.line;
      made.column = member.column;
    };
    for (const auto& [number, member] : numbers) take(*member);
    for (const Json::Member& member : nodes_.members())
      if (!member_number(member.key)) take(member);
    return sorted;
  }

  void add(const SavedInstance& instance, const SavedNode& node) {
    if (node.mode != SavedMode::always || is_virtual(node)) return;
    if (const auto child = instance.children.find(&node); child != instance.children.end()) {
      for (const SavedNode& inner : child->second->graph->nodes) add(*child->second, inner);
      return;
    }
    if (workflow_.definition(node.type) != nullptr) return;  // told of already
    const NodeValues& values = values_.of(node);
    if (values.definition == nullptr && unknown_ == UnknownClasses::refuse)
      report(instance, node,
             "nobody knows this class, so that its widget values have no names. Add the plugin "
             "that brings it, or give its definition with --object-info.");
    if (!values.widgets.fault.empty()) report(instance, node, values.widgets.fault);
    Json::Member& member = nodes_.insert(instance.id_of(node)).first;
    member.line = node.json->line();
    member.column = node.json->column();
    Json made = Json::object();
    made.set("inputs", inputs_of_node(instance, node, values)).set("class_type", node.type);
    made.set("_meta", meta_of(node, values));
    made.set_place(member.line, member.column);
    member.value = std::move(made);
  }

  Json inputs_of_node(const SavedInstance& instance, const SavedNode& node,
                      const NodeValues& values) {
    Json inputs = Json::object();
    for (const SavedWidget& widget : values.widgets.all)
      if (widget.value)
        inputs.set(widget.name, sent(processed(widget, *widget.value), widget.type));
    if (values.definition == nullptr) add_unknown(node, inputs);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& name = node.inputs[i].name;
      if (name.empty() || node.inputs[i].link.empty()) continue;
      const SavedSource source = links_.source_of(instance, node, i);
      if (source.kind == SavedSource::Kind::circle) {
        report(instance, node,
               cat("what is linked to its input ", quote(name),
                   " leads round in a circle of reroutes or bypassed nodes."));
      } else if (source.kind == SavedSource::Kind::value) {
        inputs.set(name, sent(source.value, ""));  // the interface does not wrap promoted ones
      } else if (source.kind == SavedSource::Kind::link) {
        Json link = Json::array();
        inputs.set(name, std::move(link.push(source.node).push(source.slot)));
      }
    }
    add_inside(instance, node, values, inputs);
    return inputs;
  }

  // What the instance around a node has for a widget that nothing is linked to.
  void add_inside(const SavedInstance& instance, const SavedNode& node, const NodeValues& values,
                  Json& inputs) {
    if (instance.parent == nullptr) return;
    const auto& inside = values_.of(*instance.node).inside;
    for (auto at = inside.lower_bound({node.id, ""});
         at != inside.end() && at->first.first == node.id; ++at) {
      const SavedWidget* widget = values.widgets.find(at->first.second);
      const Json* present = inputs.find(at->first.second);
      if (widget != nullptr && (present == nullptr || !present->is_array()))
        inputs.set(widget->name, sent(at->second, ""));
    }
  }

  // Of an unknown class: what says its name itself, and texts by their place, since they may name
  // files.
  static void add_unknown(const SavedNode& node, Json& inputs) {
    for (const char* key : {"widgets_values_named", "widgets_values"}) {
      const Json* values = node.json->find(key);
      if (values == nullptr) continue;
      if (values->is_object())
        for (const Json::Member& value : values->members())
          inputs.set(value.key, sent(value.value, ""));
      for (std::size_t i = 0; values->is_array() && i < values->size(); ++i)
        if (values->at(i).is_string()) inputs.set(cat("widgets_values[", i, "]"), values->at(i));
    }
  }

  static Json meta_of(const SavedNode& node, const NodeValues& values) {
    Json meta = Json::object();
    meta.set("title", title_of(node, values));
    for (const char* key : {"cnr_id", "aux_id", "ver"})
      if (const Json* property = node.property(key);
          property != nullptr && property->is_string() && !property->as_string().empty())
        meta.set(key, *property);
    return meta;
  }

  static std::string title_of(const SavedNode& node, const NodeValues& values) {
    if (!node.title.empty()) return node.title;
    const Json* shown_name =
        values.definition == nullptr ? nullptr : values.definition->find("display_name");
    const bool has =
        shown_name != nullptr && shown_name->is_string() && !shown_name->as_string().empty();
    return has ? shown_name->as_string() : node.type;
  }

  Json processed(const SavedWidget& widget, const Json& value) const {
    if (!value.is_string()) return value;
    std::string text = value.as_string();
    if (widget.name == "filename_prefix") {
      text = replaced_text(text, [&](std::string_view other, std::string_view name) {
        return widget_text(other, name);
      });
    } else if (widget.option("dynamicPrompts")) {
      text = plain_prompt(text);
    } else {
      return value;
    }
    Json changed(std::move(text));
    changed.set_place(value.line(), value.column());
    return changed;
  }

  // Nodes are named by their class, or else by their title; of several the first one counts.
  std::optional<std::string> widget_text(std::string_view name, std::string_view widget) const {
    for (const bool by_title : {false, true})
      for (const SavedGraph& graph : workflow_.graphs)
        for (const SavedNode& node : graph.nodes) {
          const Json* searched = node.property("Node name for S&R");
          const NodeValues* known = values_.find(node);
          if (known == nullptr) continue;  // of a subgraph that nothing uses
          const NodeValues& values = *known;
          const bool is_meant = by_title ? title_of(node, values) == name
                                         : searched != nullptr && searched->is_string() &&
                                               searched->as_string() == name;
          if (!is_meant) continue;
          const SavedWidget* found = values.widgets.find(widget);
          if (found == nullptr || !found->value) return std::nullopt;
          return text_of(*found->value);
        }
    return std::nullopt;
  }

  void report(const SavedInstance& instance, const SavedNode& node, std::string_view what) {
    SavedNode named = node;
    named.id = instance.id_of(node);
    problems_.push_back({node.json->line(), node.json->column(), cat(shown(named), ": ", what)});
  }

  [[noreturn]] void refuse() {
    std::vector<std::string> lines;
    for (const SavedProblem& problem : problems_) {
      const std::string place =
          problem.line == 0 ? "" : cat(":", problem.line, ":", problem.column);
      lines.push_back(cat(name_, place, ": ", problem.message));
    }
    throw Error(Code::invalid_argument, join(clip_lines(std::move(lines)), "\n"));
  }

  std::string_view name_;
  UnknownClasses unknown_;
  std::vector<SavedProblem> problems_;
  SavedWorkflow workflow_;
  SavedValues values_;
  SavedLinks links_;
  std::deque<SavedInstance> instances_;
  Json nodes_ = Json::object();
};

}  // namespace

std::optional<Json> read_saved_form(std::string_view text, std::string_view name) {
  if (text.find("\"nodes\"") == std::string_view::npos) return std::nullopt;
  Json json = parse_json(text, name);
  if (is_saved_form(json)) return json;
  for (const char* key : {"prompt", "workflow"})
    if (const Json* inner = json.find(key)) {
      if (is_saved_form(*inner)) return Json(*inner);
      return std::nullopt;
    }
  return std::nullopt;
}

Json convert_saved_form(const Json& saved, const NodeDefinitions& definitions,
                        std::string_view name, UnknownClasses unknown) {
  return Converter(saved, definitions, name, unknown).convert();
}

}  // namespace heddle::engine
