#include "engine/graph/type_match.h"

#include <algorithm>

namespace heddle::engine {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes the first name off `list`.
std::string_view next_name(std::string_view& list) {
  const std::size_t end = std::min(list.find(','), list.size());
  const std::string_view name = trim(list.substr(0, end));
  list.remove_prefix(std::min(end + 1, list.size()));
  return name;
}

bool contains(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    if (next_name(list) == wanted) return true;
  }
  return false;
}

// ComfyUI's name for a type that several ports of a node share stands for any.
bool is_wildcard(std::string_view list) {
  return contains(list, "*") || list == "COMFY_MATCHTYPE_V3";
}

}  // namespace

bool types_match(std::string_view received, std::string_view wanted) {
  if (received == wanted || is_wildcard(received) || is_wildcard(wanted)) return true;
  while (!received.empty()) {
    const std::string_view name = next_name(received);
    if (!name.empty() && contains(wanted, name)) return true;
  }
  return false;
}

bool chooses(const heddle_port& input) {
  const heddle_widget* widget = input.widget;
  return widget != nullptr &&
         (widget->kind == HEDDLE_WIDGET_CHOICE || widget->kind == HEDDLE_WIDGET_FILE ||
          widget->kind == HEDDLE_WIDGET_FOLDER);
}

bool accepts(const heddle_port& input, std::string_view received) {
  // What may be linked to it stands in its options (dynamic_inputs.h).
  if (input.type == std::string_view("COMFY_DYNAMICSLOT_V3")) return true;
  return types_match(received, chooses(input) ? "COMBO" : input.type);
}

}  // namespace heddle::engine
