#include "engine/graph/prompt_errors.h"

#include <cmath>

#include "engine/base/text.h"
#include "engine/graph/literal.h"
#include "engine/graph/python_text.h"
#include "engine/graph/type_match.h"

namespace heddle::engine {
namespace {

Json make_error(std::string_view type, std::string_view message, std::string_view details,
                Json extra) {
  Json error = Json::object();
  error.set("type", type).set("message", message).set("details", details);
  error.set("extra_info", std::move(extra));
  return error;
}

Json link_json(const Link& link) {
  Json array = Json::array();
  array.push(link.node);
  if (const auto* slot = std::get_if<std::uint32_t>(&link.output))
    array.push(*slot);
  else
    array.push(std::get<std::string>(link.output));
  return array;
}

// repr(value): text in quotes, everything else as str() has it.
std::string python_shown(const Json& value) {
  if (!value.is_string()) return python_text(value);
  Json one = Json::array();
  const std::string list = python_text(one.push(value));
  return list.substr(1, list.size() - 2);
}

std::string_view python_type(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "NoneType";
    case Json::Kind::array:
      return "list";
    default:
      return "dict";
  }
}

Json extra_of(const heddle_port& input, const Catalog& catalog) {
  Json extra = Json::object();
  extra.set("input_name", input.name).set("input_config", input_config(input, catalog));
  return extra;
}

Json conversion_error(const heddle_port& input, const Json& literal, const Catalog& catalog) {
  const bool is_int = std::string_view(input.type) == "INT";
  std::string exception;
  if (literal.is_string())
    exception = cat(
        is_int ? "invalid literal for int() with base 10: " : "could not convert string to float: ",
        python_shown(literal));
  else if (literal.is_number())
    exception = std::isnan(literal.as_double()) ? "cannot convert float NaN to integer"
                                                : "cannot convert float infinity to integer";
  else
    exception = cat(is_int ? "int() argument must be a string, a bytes-like object or a real "
                             "number, not '"
                           : "float() argument must be a string or a real number, not '",
                    python_type(literal), "'");
  Json extra = extra_of(input, catalog);
  extra.set("received_value", literal).set("exception_message", exception);
  return make_error("invalid_input_type",
                    cat("Failed to convert an input value to a ", input.type, " value"),
                    cat(input.name, ", ", python_text(literal), ", ", exception), std::move(extra));
}

Json choice_error(const heddle_port& input, const Json& literal, const Catalog& catalog) {
  constexpr std::size_t kMostListed = 20;
  Json names = Json::array();
  for (std::string& name : catalog.choices(*input.widget)) names.push(std::move(name));
  const bool is_long = names.size() > kMostListed;
  Json extra = Json::object();
  extra.set("input_name", input.name);
  extra.set("input_config", is_long ? Json() : input_config(input, catalog));
  extra.set("received_value", literal);
  const std::string list =
      is_long ? cat("(list of length ", names.size(), ")") : python_text(names);
  return make_error("value_not_in_list", "Value not in list",
                    cat(input.name, ": '", python_text(literal), "' not in ", list),
                    std::move(extra));
}

// What Python would raise; the check of a sink ends otherwise than that of other nodes.
Json raised_error(Json extra, std::string_view text, std::string_view type, Json link,
                  bool is_sink) {
  extra.set("exception_message", text).set("exception_type", type);
  extra.set("traceback", Json::array()).set("linked_node", std::move(link));
  return is_sink ? make_error("exception_during_validation", "Exception when validating node", text,
                              std::move(extra))
                 : make_error("exception_during_inner_validation",
                              "Exception when validating inner node", text, std::move(extra));
}

Json extra_of(const heddle_port* input, std::string_view name, const Catalog& catalog) {
  if (input != nullptr) return extra_of(*input, catalog);
  Json extra = Json::object();
  return std::move(extra.set("input_name", name));
}

// The number as the input's type has it; nothing: it is none.
std::optional<Json> number_of(std::string_view type, const Json& literal) {
  if (type == "FLOAT") {
    const std::optional<double> number = literal_float(literal);
    return number ? std::optional(Json(*number)) : std::nullopt;
  }
  const std::optional<WholeNumber> number = literal_int(literal);
  if (!number) return std::nullopt;
  return std::visit([](auto whole) { return Json(whole); }, *number);
}

}  // namespace

Json unknown_class_error(const WorkflowNode& node) {
  const std::string_view title = node.title.empty() ? node.class_type : node.title;
  Json extra = Json::object();
  extra.set("node_id", node.id).set("class_type", node.class_type).set("node_title", title);
  return make_error("missing_node_type",
                    cat("Node '", title, "' not found. The custom node may not be installed."),
                    cat("Node ID '#", node.id, "'"), std::move(extra));
}

Json missing_error(std::string_view input, std::string_view shown) {
  Json extra = Json::object();
  extra.set("input_name", input);
  return make_error("required_input_missing", "Required input is missing",
                    shown.empty() ? input : shown, std::move(extra));
}

Json type_error(const heddle_port& input, std::string_view received, const Link& link,
                const Catalog& catalog) {
  Json extra = extra_of(input, catalog);
  extra.set("received_type", received).set("linked_node", link_json(link));
  const std::string wanted = python_text(extra.at("input_config").at(std::size_t{0}));
  return make_error(
      "return_type_mismatch", "Return type mismatch between linked nodes",
      cat(input.name, ", received_type(", received, ") mismatch input_type(", wanted, ")"),
      std::move(extra));
}

Json dangling_error(const heddle_port* input, std::string_view name, const Link& link,
                    bool has_node, bool is_sink, const Catalog& catalog) {
  const std::string text = has_node ? "tuple index out of range" : cat("'", link.node, "'");
  return raised_error(extra_of(input, name, catalog), text, has_node ? "IndexError" : "KeyError",
                      link_json(link), is_sink);
}

Json bad_link_error(const heddle_port* input, std::string_view name, const Json& array,
                    bool is_sink, const Catalog& catalog) {
  Json extra = extra_of(input, name, catalog);
  if (array.size() != 2) {
    extra.set("received_value", array);
    return make_error("bad_linked_input",
                      "Bad linked input, must be a length-2 list of [node_id, slot_index]", name,
                      std::move(extra));
  }
  const Json &node = array.at(std::size_t{0}), &slot = array.at(std::size_t{1});
  if (node.is_array() || node.is_object())
    return raised_error(std::move(extra), cat("unhashable type: '", python_type(node), "'"),
                        "TypeError", array, is_sink);
  if (!node.is_string() && !node.is_integer())
    return raised_error(std::move(extra), python_text(node), "KeyError", array, is_sink);
  if (slot.is_integer() || slot.is_bool())
    return raised_error(std::move(extra), "tuple index out of range", "IndexError", array, is_sink);
  return raised_error(std::move(extra),
                      cat("tuple indices must be integers or slices, not ",
                          slot.is_number() ? "float" : python_type(slot)),
                      "TypeError", array, is_sink);
}

Json dynamic_error(std::string_view input, std::string_view text) {
  Json extra = Json::object();
  extra.set("input_name", input);
  return make_error("invalid_dynamic_input", "Invalid dynamic input", cat(input, ": ", text),
                    std::move(extra));
}

Json literal_error(const heddle_port& input, const Json& literal, const Catalog& catalog) {
  if (chooses(input)) return choice_error(input, literal, catalog);
  const std::string_view type = input.type;
  if (type != "INT" && type != "FLOAT")
    return other_error(input.name, cat(input.name, ", ", python_text(literal)));
  const std::optional<Json> number = number_of(type, literal);
  if (!number) return conversion_error(input, literal, catalog);
  Json extra = extra_of(input, catalog);
  const double least = input.widget == nullptr ? 0 : input.widget->min;
  const bool is_below = number->as_double() < least;
  const Json& options = extra.at("input_config").at(std::size_t{1});
  const Json* end = options.find(is_below ? "min" : "max");
  if (end == nullptr) return conversion_error(input, literal, catalog);
  const std::string message =
      cat("Value ", python_text(*number),
          is_below ? " smaller than min of " : " bigger than max of ", python_text(*end));
  extra.set("received_value", *number);
  return make_error(is_below ? "value_smaller_than_min" : "value_bigger_than_max", message,
                    input.name, std::move(extra));
}

Json cycle_error(const std::vector<const WorkflowNode*>& nodes) {
  std::vector<std::string> shown;
  Json ids = Json::array();
  for (const WorkflowNode* node : nodes) {
    shown.push_back(cat(node->id, " (", node->class_type, ")"));
    ids.push(node->id);
  }
  shown.push_back(shown.front());
  Json extra = Json::object();
  extra.set("node_id", nodes.front()->id).set("cycle_nodes", std::move(ids));
  return make_error("dependency_cycle", "Dependency cycle detected", join(shown, " -> "),
                    std::move(extra));
}

Json loop_error(std::string_view type, std::string_view text, const std::vector<std::string>& nodes,
                const std::vector<std::string>& ends) {
  const auto list = [](const std::vector<std::string>& ids) {
    Json array = Json::array();
    for (const std::string& id : ids) array.push(id);
    return array;
  };
  Json extra = Json::object();
  extra.set("input_name", "loop boundary").set("loop_error_type", type);
  extra.set("node_ids", list(nodes)).set("output_ids", list(ends));
  return make_error("custom_validation_failed", "Custom validation failed for node",
                    cat("loop boundary - ", text), std::move(extra));
}

Json other_error(std::string_view input, std::string_view text) {
  Json extra = Json::object();
  extra.set("input_name", input);
  return make_error("custom_validation_failed", "Custom validation failed for node", text,
                    std::move(extra));
}

}  // namespace heddle::engine
