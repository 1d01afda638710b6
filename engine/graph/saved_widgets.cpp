#include "engine/graph/saved_widgets.h"

#include <algorithm>
#include <array>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kDynamicCombo = "COMFY_DYNAMICCOMBO_V3";
constexpr std::string_view kDynamicGroup = "COMFY_DYNAMICGROUP_V3";

// Types for which the interface has a widget that it saves.
constexpr std::array kWidgetTypes = {std::string_view("INT"),
                                     std::string_view("FLOAT"),
                                     std::string_view("STRING"),
                                     std::string_view("BOOLEAN"),
                                     std::string_view("COMBO"),
                                     std::string_view("COLOR"),
                                     std::string_view("COLORS"),
                                     std::string_view("CURVE"),
                                     std::string_view("RANGE"),
                                     std::string_view("BOUNDING_BOX"),
                                     std::string_view("BOUNDING_BOXES"),
                                     std::string_view("PAINTER"),
                                     std::string_view("COMPOSITOR"),
                                     std::string_view("VIDEO_EDIT"),
                                     std::string_view("MARKDOWN"),
                                     std::string_view("TEXTAREA"),
                                     kDynamicCombo,
                                     kDynamicGroup};

const Json* options_of(const Json& spec) {
  const bool has = spec.is_array() && spec.size() > 1 && spec.at(std::size_t{1}).is_object();
  return has ? &spec.at(std::size_t{1}) : nullptr;
}

const Json* option_of(const Json* options, std::string_view name) {
  return options == nullptr ? nullptr : options->find(name);
}

bool is_true(const Json* json) {
  if (json == nullptr || json->is_null()) return false;
  if (json->is_bool()) return json->as_bool();
  return !json->is_string() || !json->as_string().empty();
}

std::string widget_type(const Json& spec) {
  const Json* other = option_of(options_of(spec), "widgetType");
  return other != nullptr && other->is_string() ? other->as_string() : input_type(spec);
}

bool makes_widget(const Json& spec) {
  return !is_true(option_of(options_of(spec), "forceInput")) &&
         std::ranges::find(kWidgetTypes, widget_type(spec)) != kWidgetTypes.end();
}

// The choices of a COMBO, in either form; nullptr where it has none.
const Json* choices_of(const Json& spec) {
  const Json& type = spec.at(std::size_t{0});
  if (type.is_array()) return &type;
  const Json* choices = option_of(options_of(spec), "options");
  return choices != nullptr && choices->is_array() ? choices : nullptr;
}

std::optional<Json> default_of(const Json& spec, std::string_view type) {
  if (const Json* given = option_of(options_of(spec), "default")) return *given;
  if (type == "INT" || type == "FLOAT") return Json(0);
  if (type == "STRING") return Json("");
  if (type == "BOOLEAN") return Json(false);
  if (type != "COMBO") return std::nullopt;
  const Json* choices = choices_of(spec);
  if (choices == nullptr || choices->size() == 0) return std::nullopt;
  return choices->at(std::size_t{0});
}

Json no_pictures() { return std::move(Json::array().push("").push("")); }

bool is_number_text(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool fits(const Json& value, std::string_view type) {
  if (value.is_null()) return true;
  const bool is_compound = value.is_array() || value.is_object();
  if (type == "INT" || type == "FLOAT")
    return value.is_number() || value.is_bool() ||
           (value.is_string() && is_number_text(value.as_string()));
  if (type == "BOOLEAN") return !is_compound && !value.is_string();
  return type != "STRING" || !is_compound;
}

using Names = std::set<std::string, std::less<>>;

class WidgetReader {
 public:
  // `absent`: widgets that the saved values are known not to have.
  WidgetReader(const SavedNode& node, const std::vector<const Json*>& values, const Json* named,
               Names absent = {}, std::size_t first = 0)
      : node_(node), values_(values), named_(named), absent_(std::move(absent)), next_(first) {}

  SavedWidgets read(const Json& definition) {
    for (const Json::Member* input : inputs_of(definition)) add(input->key, input->value, 0);
    return std::move(widgets_);
  }
  std::size_t position() const { return next_; }

 private:
  static constexpr std::size_t kMostNested = 32;
  static constexpr std::size_t kMostRows = 100;

  const Json* take(const std::string& name) {
    if (named_ != nullptr) return named_->find(name);
    if (absent_.contains(name)) return nullptr;
    return next_ < values_.size() ? values_[next_++] : nullptr;
  }

  void add(const std::string& name, const Json& spec, std::size_t depth) {
    const std::string type = widget_type(spec);
    if (type == "IMAGECOMPARE") {  // shows pictures: sent, and never saved
      widgets_.all.push_back({name, type, nullptr, no_pictures(), true});
      return;
    }
    if (depth > kMostNested || !makes_widget(spec)) return;
    if (type == kDynamicGroup) return add_group(name, spec, depth);
    SavedWidget widget{name, type, options_of(spec), std::nullopt, true};
    widget.has_socket = !widget.option("socketless");
    const Json* saved = take(name);
    // A choice without a value is the first one, as in a node that was just made.
    const bool is_unset = type == "COMBO" && saved != nullptr && saved->is_null();
    widget.value = saved != nullptr && !is_unset ? std::optional(*saved) : default_of(spec, type);
    if (is_unset && !widget.value) widget.value = Json();
    if (type == kDynamicCombo) return add_combo(std::move(widget), spec, depth);
    if (widget.value && !fits(*widget.value, type)) tell(widget);
    const bool is_controlled = widget.option("control_after_generate") ||
                               (type == "INT" && (name == "seed" || name == "noise_seed"));
    widgets_.all.push_back(std::move(widget));
    if (is_controlled && named_ == nullptr && !absent_.contains(name)) skip_control(type);
  }

  // What runs before or after each queueing: "fixed", "increment", "decrement", "randomize", in
  // old files true or false; of a choice a filter, too.
  void skip_control(std::string_view type) {
    if (next_ >= values_.size() || values_[next_]->is_number()) return;
    ++next_;
    if (type == "COMBO" && next_ < values_.size() && values_[next_]->is_string()) ++next_;
  }

  // A choice that decides which inputs follow.
  void add_combo(SavedWidget widget, const Json& spec, std::size_t depth) {
    const Json* options = option_of(options_of(spec), "options");
    const Json* chosen = nullptr;
    if (options != nullptr && options->is_array()) {
      for (const Json& option : options->as_array()) {
        const Json* key = option.find("key");
        if (key == nullptr) continue;
        if (!widget.value) widget.value = *key;
        if (chosen == nullptr && saved_id(key) == saved_id(&*widget.value)) chosen = &option;
      }
    }
    const std::string name = widget.name;
    widgets_.all.push_back(std::move(widget));
    const Json* inputs = chosen == nullptr ? nullptr : chosen->find("inputs");
    if (inputs != nullptr) add_all(name, *inputs, depth);
  }

  // Rows of fields; their number is saved in front of them.
  void add_group(const std::string& name, const Json& spec, std::size_t depth) {
    const Json* options = options_of(spec);
    const auto number = [](const Json* json, std::size_t otherwise) {
      if (json == nullptr || !json->is_number() || !(json->as_double() >= 0)) return otherwise;
      return static_cast<std::size_t>(std::min(json->as_double(), double(kMostRows)));
    };
    const Json* saved = take(name);
    const std::size_t rows = std::max(number(saved, 0), number(option_of(options, "min"), 0));
    const Json* row = option_of(options, "template");
    for (std::size_t r = 0; row != nullptr && r < rows; ++r)
      add_all(cat(name, ".", r), *row, depth);
  }

  void add_all(const std::string& prefix, const Json& inputs, std::size_t depth) {
    for (const char* section : {"required", "optional"})
      if (const Json* members = inputs.find(section); members != nullptr && members->is_object())
        for (const Json::Member& input : members->members())
          add(cat(prefix, ".", input.key), input.value, depth + 1);
  }

  void tell(const SavedWidget& widget) {
    const bool is_linked = std::ranges::any_of(node_.inputs, [&](const SavedSlot& input) {
      return input.name == widget.name && !input.link.empty();
    });
    if (is_linked || !widgets_.fault.empty()) return;
    widgets_.fault = cat("its ", values_.size(),
                         " saved widget values do not fit the class: ", quote(widget.name), " (",
                         widget.type, ") would be ", clip(write_json(*widget.value), 60),
                         ". It was saved by another version of the node; open it in ComfyUI, set "
                         "its values and save it again.");
  }

  const SavedNode& node_;
  const std::vector<const Json*>& values_;
  const Json* named_;
  const Names absent_;
  std::size_t next_;
  SavedWidgets widgets_;
};

// Old interfaces saved an entry for inputs that are sockets only (forceInput), too: they are there
// where the count tells so.
void drop_forced(const Json& definition, std::vector<const Json*>& values) {
  std::vector<bool> is_forced;
  for (const Json::Member* input : inputs_of(definition)) {
    const Json* options = options_of(input->value);
    const bool forced = is_true(option_of(options, "forceInput"));
    if (!forced && !makes_widget(input->value)) continue;
    if (widget_type(input->value) == kDynamicGroup) return;
    is_forced.push_back(forced);
    if (is_true(option_of(options, "control_after_generate"))) is_forced.push_back(false);
  }
  if (std::ranges::find(is_forced, true) == is_forced.end() || values.size() != is_forced.size())
    return;
  std::size_t i = 0;
  std::erase_if(values, [&](const Json*) { return is_forced[i++]; });
}

// A mode of a node may have got another input since the node was saved, and the values behind it
// stand one too far in front: where they do not fit, such an input, the last one first, is taken
// for absent.
SavedWidgets read_by_position(const SavedNode& node, const std::vector<const Json*>& values,
                              const Json* named, const Json& definition) {
  SavedWidgets widgets = WidgetReader(node, values, named).read(definition);
  if (widgets.fault.empty() || named != nullptr) return widgets;
  for (auto widget = widgets.all.rbegin(); widget != widgets.all.rend(); ++widget) {
    if (widget->name.find('.') == std::string::npos) continue;
    SavedWidgets other = WidgetReader(node, values, named, Names{widget->name}).read(definition);
    if (other.fault.empty()) return other;
  }
  return widgets;
}

// A node whose list of choices is made of widgets of its own: the choice, its number, and as many
// options as were written, the last one empty.
SavedWidgets read_custom_combo(const std::vector<const Json*>& values) {
  SavedWidgets widgets;
  const auto add = [&](std::string name, const char* type, Json value) {
    widgets.all.push_back({std::move(name), type, nullptr, std::move(value), true});
  };
  const auto value = [&](std::size_t i) { return i < values.size() ? *values[i] : Json(""); };
  add("choice", "COMBO", value(0));
  add("index", "INT", -1);
  for (std::size_t i = 2;; ++i) {
    const Json option = value(i);
    if (option == value(0) && widgets.all[1].value == Json(-1)) widgets.all[1].value = Json(i - 2);
    add(cat("option", i - 1), "STRING", option);
    if (!option.is_string() || option.as_string().empty()) return widgets;
  }
}

}  // namespace

bool SavedWidget::option(std::string_view name) const { return is_true(option_of(options, name)); }

const SavedWidget* SavedWidgets::find(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &SavedWidget::name);
  return found == all.end() ? nullptr : &*found;
}

SavedWidget* SavedWidgets::find(std::string_view name) {
  return const_cast<SavedWidget*>(std::as_const(*this).find(name));
}

std::string input_type(const Json& spec) {
  if (!spec.is_array() || spec.size() == 0) return "";
  const Json& type = spec.at(std::size_t{0});
  if (type.is_array()) return "COMBO";
  return type.is_string() ? type.as_string() : "";
}

std::vector<const Json::Member*> inputs_of(const Json& definition) {
  std::vector<const Json::Member*> inputs;
  const Json* sections = definition.find("input");
  if (sections == nullptr) return inputs;
  for (const char* section : {"required", "optional"})
    if (const Json* members = sections->find(section); members != nullptr && members->is_object())
      for (const Json::Member& input : members->members())
        if (input.value.is_array() && input.value.size() > 0) inputs.push_back(&input);
  return inputs;
}

SavedWidgets read_widgets(const SavedNode& node, const Json& definition) {
  const Json* saved = node.json->find("widgets_values");
  std::vector<const Json*> values;
  if (saved != nullptr && saved->is_array())
    for (const Json& value : saved->as_array()) values.push_back(&value);
  if (node.type == "CustomCombo") return read_custom_combo(values);
  const Json* named = saved != nullptr && saved->is_object() ? saved : nullptr;
  drop_forced(definition, values);
  return read_by_position(node, values, named, definition);
}

SavedWidgets read_group_widgets(const SavedNode& node, const Json& definition,
                                const std::vector<const Json*>& values,
                                const std::set<std::string, std::less<>>& absent,
                                std::size_t& position) {
  WidgetReader reader(node, values, nullptr, absent, position);
  SavedWidgets widgets = reader.read(definition);
  position = reader.position();
  return widgets;
}

}  // namespace heddle::engine
