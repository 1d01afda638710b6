#include "engine/graph/literal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/graph/lacking.h"
#include "engine/graph/type_match.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kLongestLiteral = 60;  // bytes of a literal shown in a message

LiteralFault cannot_be(std::string_view type, const Json& literal, std::string_view advice) {
  return {cat("expects ", type, ", got ", shown_literal(literal), ". ", advice)};
}

Literal to_int(const Json& literal) {
  const std::optional<WholeNumber> number = literal_int(literal);
  if (!number) return cannot_be("INT", literal, "Give a whole number of at most 64 bits.");
  return std::visit([](auto whole) { return make_value(whole); }, *number);
}

Literal to_float(const Json& literal) {
  const std::optional<double> number = literal_float(literal);
  if (!number) return cannot_be("FLOAT", literal, "Give a number.");
  return make_value(*number);
}

bool has_text(const heddle_widget& widget) {
  return widget.text != nullptr && *widget.text != '\0';
}

// "cat.png [output]": ComfyUI's way to load a file from another folder than "input".
struct NamedFile {
  std::string name, source;
};
NamedFile named_file(const heddle_widget& widget, const std::string& text) {
  const std::string_view source = widget.source == nullptr ? "" : widget.source;
  if (widget.kind == HEDDLE_WIDGET_FILE && source == "input")
    for (const std::string_view folder : {"input", "output", "temp"})
      if (const std::string tag = cat(" [", folder, "]"); text.ends_with(tag))
        return {text.substr(0, text.size() - tag.size()), std::string(folder)};
  return {text, std::string(source)};
}

}  // namespace

bool takes_literals(const heddle_port& port) {
  if (port.widget != nullptr) return true;
  for (const std::string_view type : {"INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"})
    if (types_match(port.type, type)) return true;
  return false;
}

Literal LiteralReader::read(const heddle_port& port, const PortCheck& check, const Json& literal) {
  if (chooses(port) && !(check.is_judged() && literal.is_string()))
    return choose(*port.widget, literal);
  const std::string_view type = port.type;
  Literal result = type == "INT"       ? to_int(literal)
                   : type == "FLOAT"   ? to_float(literal)
                   : type == "STRING"  ? Literal(make_value(python_text(literal)))
                   : type == "BOOLEAN" ? Literal(make_value(python_truth(literal)))
                                       : Literal(from_json(literal));
  if (const Value* value = std::get_if<Value>(&result))
    if (std::optional<std::string> fault = check.fault_of(**value, &catalog_))
      return LiteralFault{std::move(*fault)};
  return result;
}

const std::optional<Literal>& LiteralReader::default_of(const heddle_port& port,
                                                        const PortCheck& check) {
  const auto [at, is_new] = defaults_.try_emplace(&port);
  if (is_new) at->second = make_default(port, check);
  return at->second;
}

std::optional<Literal> LiteralReader::make_default(const heddle_port& port,
                                                   const PortCheck& check) {
  if (port.widget == nullptr) return std::nullopt;
  const heddle_widget& widget = *port.widget;
  switch (widget.kind) {
    case HEDDLE_WIDGET_INT:
    case HEDDLE_WIDGET_SEED:
    case HEDDLE_WIDGET_FLOAT: {
      const std::optional<WholeNumber> whole = truncated(widget.number);
      if (widget.kind == HEDDLE_WIDGET_FLOAT || !whole)
        return read(port, check, Json(widget.number));
      return read(port, check, std::visit([](auto number) { return Json(number); }, *whole));
    }
    case HEDDLE_WIDGET_TOGGLE:
      return read(port, check, Json(widget.number != 0));
    case HEDDLE_WIDGET_TEXT:
      return read(port, check, Json(has_text(widget) ? widget.text : ""));
    default:
      break;
  }
  if (has_text(widget)) return read(port, check, Json(widget.text));
  if (widget.kind == HEDDLE_WIDGET_CHOICE && !choices(widget).empty())
    return make_value(choices(widget).front());
  return std::nullopt;
}

const std::vector<std::string>& LiteralReader::choices(const heddle_widget& widget) {
  const auto found = choices_.find(&widget);
  return found != choices_.end()
             ? found->second
             : choices_.emplace(&widget, catalog_.choices(widget)).first->second;
}

Literal LiteralReader::choose(const heddle_widget& widget, const Json& literal) {
  const bool is_scalar = literal.is_string() || literal.is_number() || literal.is_bool();
  if (!is_scalar) return cannot_be("a name", literal, "Give one of the names as text.");
  const std::string name = python_text(literal);
  if (widget.kind != HEDDLE_WIDGET_CHOICE) return choose_file(widget, name);
  const std::vector<std::string>& names = choices(widget);
  if (std::find(names.begin(), names.end(), name) != names.end()) return make_value(name);
  return LiteralFault{not_a_choice(name, names)};
}

Literal LiteralReader::choose_file(const heddle_widget& widget, const std::string& text) {
  // Without a lister nobody knows the folders; whoever opens the file will say so.
  if (!catalog_.lists_files()) return make_value(text);
  const auto [name, folder] = named_file(widget, text);
  heddle_widget there = widget;
  there.source = folder.c_str();
  const bool is_elsewhere = widget.source != nullptr && folder != widget.source;
  const std::vector<std::string> elsewhere =
      is_elsewhere ? catalog_.choices(there) : std::vector<std::string>();
  const std::vector<std::string>& names = is_elsewhere ? elsewhere : choices(widget);
  if (std::find(names.begin(), names.end(), name) != names.end()) return make_value(text);
  const std::string guess = did_you_mean(name, names);
  const std::string kind = widget.kind == HEDDLE_WIDGET_FOLDER ? "folder" : "file";
  const std::string source = quote(folder);
  std::vector<std::string> places = catalog_.places(there);
  for (std::string& place : places) place = quote(place);
  std::string fault = cat("there is no ", kind, " ", quote(name), " in ", source, ".", guess);
  if (!places.empty()) fault += cat(" Looked in ", join(places, ", "), ".");
  fault += names.empty()   ? cat(" There is nothing in ", source, ": put the ", kind, " there.")
           : guess.empty() ? cat(" There: ", listed(names), ".")
                           : "";
  return LiteralFault{std::move(fault), lacking_file(folder, name)};
}

std::optional<LiteralFault> LiteralReader::fault_of_file(const heddle_port& port,
                                                         const heddle_value& value) {
  const auto* name = std::get_if<std::string>(&value.content);
  const std::int32_t kind = port.widget == nullptr ? 0 : port.widget->kind;
  if (name == nullptr || (kind != HEDDLE_WIDGET_FILE && kind != HEDDLE_WIDGET_FOLDER)) return {};
  const Literal found = choose_file(*port.widget, *name);
  const auto* fault = std::get_if<LiteralFault>(&found);
  return fault == nullptr ? std::nullopt : std::optional(*fault);
}

bool LiteralReader::has_file(const char* folder, const std::string& name) {
  heddle_widget widget{};
  widget.kind = HEDDLE_WIDGET_FILE;
  widget.source = folder;
  if (!catalog_.lists_files()) return true;
  const auto [file, place] = named_file(widget, name);
  widget.source = place.c_str();
  const std::vector<std::string> there = catalog_.choices(widget);
  return std::find(there.begin(), there.end(), file) != there.end();
}

std::optional<WholeNumber> literal_int(const Json& literal) {
  switch (literal.kind()) {
    case Json::Kind::boolean:
      return std::int64_t{literal.as_bool()};
    case Json::Kind::integer:
      return literal.as_int64();
    case Json::Kind::unsigned_integer:
      return literal.as_uint64();
    case Json::Kind::real:
      if (literal.wide_digits() == nullptr) return truncated(literal.as_double());
      return std::nullopt;
    case Json::Kind::string:
      return python_integer(literal.as_string());
    default:
      return std::nullopt;
  }
}

std::optional<double> literal_float(const Json& literal) {
  if (literal.is_bool()) return literal.as_bool() ? 1.0 : 0.0;
  if (literal.is_number()) return literal.as_double();
  if (literal.is_string()) return python_float(literal.as_string());
  return std::nullopt;
}

std::string shown_literal(const Json& literal) {
  if (literal.is_string())
    return cat("the string ", quote(clip(literal.as_string(), kLongestLiteral)));
  if (literal.is_null()) return "null";
  return literal.is_array() || literal.is_object() ? literal.describe()
                                                   : clip(literal.describe(), kLongestLiteral);
}

}  // namespace heddle::engine
