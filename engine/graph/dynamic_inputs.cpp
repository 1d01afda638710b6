#include "engine/graph/dynamic_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "engine/base/text.h"
#include "engine/graph/literal.h"
#include "engine/graph/prompt_errors.h"
#include "engine/graph/python_text.h"
#include "engine/graph/type_match.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kVariant = "COMFY_DYNAMICCOMBO_V3", kGrowing = "COMFY_AUTOGROW_V3",
                           kGroup = "COMFY_DYNAMICGROUP_V3", kSlot = "COMFY_DYNAMICSLOT_V3";
constexpr std::int64_t kMostSockets = 100, kMostRows = 20;  // ComfyUI's

// Json that is not there counts as empty.
const Json& member(const Json& json, std::string_view key) {
  static const Json none;
  const Json* const found = json.is_object() ? json.find(key) : nullptr;
  return found == nullptr ? none : *found;
}
std::int64_t whole_at(const Json& json, std::string_view key, std::int64_t otherwise) {
  const Json& number = member(json, key);
  return number.is_integer() ? number.as_int64() : otherwise;
}
std::string member_text(const Json& json, std::string_view key) {
  const Json& text = member(json, key);
  return text.is_string() ? text.as_string() : "";
}

// An input as /object_info describes it, [type or choices, options], as a port.
class Described {
 public:
  Described(std::string name, const Json& spec) : name_(std::move(name)) {
    const Json& type = spec.at(std::size_t{0});
    type_ = type.is_string() ? type.as_string() : "COMBO";
    if (spec.size() > 1) options_ = &spec.at(std::size_t{1});
    port_.size = sizeof port_;
    port_.name = name_.c_str();
    port_.type = type_.c_str();
    widget_.size = sizeof widget_;
    if (type_ == "INT" || type_ == "FLOAT") describe_number();
    const Json& choices = type.is_array() ? type : member(*options_, "options");
    if (type_ == "COMBO" && choices.is_array() && choices.size() > 0) describe_choice(choices);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  const std::string& type() const { return type_; }
  const heddle_port& port() const { return port_; }
  const Json& options() const { return *options_; }
  bool has_default() const { return !member(*options_, "default").is_null() || !choices_.empty(); }
  // Whether anything is known of its literals.
  bool is_checked() const { return port_.widget != nullptr; }

 private:
  void describe_number() {
    const Json &least = member(*options_, "min"), &most = member(*options_, "max");
    widget_.kind = type_ == "INT" ? HEDDLE_WIDGET_INT : HEDDLE_WIDGET_FLOAT;
    widget_.number =
        member(*options_, "default").is_number() ? member(*options_, "default").as_double() : 0;
    if (least.is_number() || most.is_number()) {
      widget_.min = least.is_number() ? least.as_double() : -HUGE_VAL;
      widget_.max = most.is_number() ? most.as_double() : HUGE_VAL;
    }
    port_.widget = &widget_;
  }
  void describe_choice(const Json& choices) {
    const Json& several = member(*options_, "multiselect");
    if (several.is_bool() && several.as_bool()) return;
    for (const Json& choice : choices.as_array()) names_.push_back(python_text(choice));
    for (const std::string& name : names_) choices_.push_back(name.c_str());
    choices_.push_back(nullptr);
    widget_.kind = HEDDLE_WIDGET_CHOICE;
    widget_.choices = choices_.data();
    port_.widget = &widget_;
  }

  static inline const Json kNoOptions = Json::object();
  std::string name_, type_;
  const Json* options_ = &kNoOptions;
  std::vector<std::string> names_;
  std::vector<const char*> choices_;
  heddle_widget widget_{};
  heddle_port port_{};
};

class Checker {
 public:
  Checker(const NodeType& type, const WorkflowNode& node, const ReceivedType& received,
          const Catalog& catalog)
      : type_(type), node_(node), received_(received), catalog_(catalog) {}

  std::vector<DynamicFault> check() {
    for (std::uint32_t i = 0; i < type_.input_count(); ++i) {
      const heddle_port& port = type_.input(i);
      if (port.widget != nullptr && port.widget->extra != nullptr && is_dynamic(port.type))
        check_kind(port.type, port.name, parse_json(port.widget->extra, port.name));
    }
    return std::move(faults_);
  }

 private:
  static bool is_dynamic(std::string_view type) {
    return type == kVariant || type == kGrowing || type == kGroup || type == kSlot;
  }
  void check_kind(std::string_view type, const std::string& name, const Json& options) {
    if (type == kVariant) check_variant(name, options);
    if (type == kGrowing) check_growing(name, member(options, "template"));
    if (type == kGroup) check_group(name, options);
    if (type == kSlot) check_slot(name, options);
  }

  const WorkflowInput* given(std::string_view name) const {
    const auto found = std::ranges::find(node_.inputs, name, &WorkflowInput::name);
    return found == node_.inputs.end() ? nullptr : &*found;
  }
  static const Json* literal_of(const WorkflowInput* input) {
    return input == nullptr ? nullptr : std::get_if<Json>(&input->value);
  }
  void report(std::string name, const WorkflowInput* input, std::string text, Json error) {
    faults_.push_back({std::move(name), input, std::move(text), std::move(error)});
  }

  // The inputs of the chosen variant; those of others do not exist.
  void check_variant(const std::string& name, const Json& options) {
    const Json* const key = literal_of(given(name));
    if (key == nullptr || !member(options, "options").is_array()) return;
    for (const Json& variant : member(options, "options").as_array())
      if (member_text(variant, "key") == python_text(*key))
        check_inputs(name, member(variant, "inputs"));
  }

  void check_inputs(const std::string& prefix, const Json& inputs) {
    for (const char* section : {"required", "optional"}) {
      const Json& of_section = member(inputs, section);
      if (!of_section.is_object()) continue;
      for (const Json::Member& input : of_section.members())
        check_input(prefix, input.key, input.value, section == std::string_view("required"));
    }
  }

  void check_growing(const std::string& name, const Json& pattern) {
    const Json &required = member(member(pattern, "input"), "required"),
               &optional = member(member(pattern, "input"), "optional");
    const bool is_required = required.is_object() && required.size() > 0;
    const Json& entry = is_required ? required : optional;
    if (!entry.is_object() || entry.size() == 0) return;
    const Json& spec = entry.members().begin()->value;
    const auto least = is_required ? whole_at(pattern, "min", 0) : 0;
    std::int64_t number = 0;
    const auto check = [&](const std::string& socket) {
      check_input(name, socket, spec, number++ < least);
    };
    if (const Json& names = member(pattern, "names"); names.is_array()) {
      for (const Json& socket : names.as_array()) check(python_text(socket));
      return;
    }
    const auto most = std::min(kMostSockets, whole_at(pattern, "max", kMostSockets));
    while (number < most) check(cat(member_text(pattern, "prefix"), number));
  }

  void check_group(const std::string& name, const Json& options) {
    const auto most = whole_at(options, "max", kMostRows), least = whole_at(options, "min", 0);
    std::set<std::int64_t> rows;
    bool is_named_well = true;
    for (const WorkflowInput& input : node_.inputs) {
      if (!input.name.starts_with(cat(name, "."))) continue;
      const std::int64_t row = row_of(std::string_view(input.name).substr(name.size() + 1));
      if (row >= 0 && row < most) {
        rows.insert(row);
        continue;
      }
      is_named_well = false;
      const std::string text =
          cat("its rows are called ", name, ".0.NAME to ", name, ".", most - 1, ".NAME");
      report(input.name, &input, cat(text, ". Give it one of these names."),
             dynamic_error(input.name, text));
    }
    const std::int64_t count = rows.empty() ? 0 : *rows.rbegin() + 1;
    if (count < least && is_named_well) {
      const std::string text = cat("it has ", count, " rows and needs at least ", least);
      report(name, nullptr, cat(text, ". Give the inputs of one as ", name, ".0.NAME."),
             dynamic_error(name, text));
    }
    for (const std::int64_t row : rows)
      check_inputs(cat(name, ".", row), member(options, "template"));
  }

  // What comes with it exists once it is given.
  void check_slot(const std::string& name, const Json& options) {
    const WorkflowInput* const input = given(name);
    const Json* const literal = literal_of(input);
    if (input == nullptr || (literal != nullptr && literal->is_null())) return;
    const std::string type = member_text(options, "slotType");
    heddle_port port{sizeof port, 0, name.c_str(), type.empty() ? "*" : type.c_str()};
    if (literal == nullptr && !input->is_bad_link) check_link(*input, port);
    check_inputs(name, member(options, "inputs"));
  }

  // Of "3.strength"; -1: there is no number, or one with zeros in front, or no name behind it.
  static std::int64_t row_of(std::string_view rest) {
    const std::size_t dot = rest.find('.');
    const std::string_view digits = rest.substr(0, dot);
    std::int64_t row = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), row);
    const bool is_row = error == std::errc() && digits == std::to_string(row) && dot != rest.npos &&
                        dot + 1 < rest.size();
    return is_row ? row : -1;
  }

  void check_input(const std::string& prefix, const std::string& last, const Json& spec,
                   bool is_required) {
    const std::string name = cat(prefix, ".", last);
    if (!spec.is_array() || spec.size() == 0 || type_.find_input(name)) return;
    const Described described(name, spec);
    if (is_dynamic(described.type()))
      return check_kind(described.type(), name, described.options());
    const WorkflowInput* const input = given(name);
    const Json* const literal = literal_of(input);
    if (input == nullptr || (literal != nullptr && literal->is_null())) {
      if (is_required && !described.has_default())
        report(name, input, "it is required: nothing is linked to it. Link or give it.",
               missing_error(name, last));
      return;
    }
    if (input->is_bad_link) return;  // said already
    if (literal == nullptr)
      check_link(*input, described.port());
    else if (described.is_checked())
      check_literal(*input, *literal, described.port());
  }

  void check_link(const WorkflowInput& input, const heddle_port& port) {
    const Link& link = std::get<Link>(input.value);
    const std::optional<std::string_view> type = received_(link);
    if (!type || accepts(port, *type)) return;
    report(input.name, &input,
           cat("expects ", port.type, ", got ", *type, " from ", quote(link.node),
               ". Link it to an output of that type."),
           type_error(port, *type, link, catalog_));
  }

  void check_literal(const WorkflowInput& input, const Json& literal, const heddle_port& port) {
    const Literal read = LiteralReader(catalog_).read(port, PortCheck(port), literal);
    if (const LiteralFault* fault = std::get_if<LiteralFault>(&read))
      report(input.name, &input, fault->text, literal_error(port, literal, catalog_));
  }

  const NodeType& type_;
  const WorkflowNode& node_;
  const ReceivedType& received_;
  const Catalog& catalog_;
  std::vector<DynamicFault> faults_;
};

}  // namespace

std::vector<DynamicFault> dynamic_faults(const NodeType& type, const WorkflowNode& node,
                                         const ReceivedType& received, const Catalog& catalog) {
  return Checker(type, node, received, catalog).check();
}

}  // namespace heddle::engine
