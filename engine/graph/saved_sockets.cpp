#include "engine/graph/saved_sockets.h"

#include <algorithm>
#include <set>

namespace heddle::engine {
namespace {

const SavedSlot* find_slot(const std::vector<SavedSlot>& slots, std::string_view name) {
  const auto found = std::ranges::find(slots, name, &SavedSlot::name);
  return found == slots.end() ? nullptr : &*found;
}

bool is_open_type(std::string_view type) { return type.empty() || type == "*"; }

bool same_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view next_type(std::string_view& list) {
  const std::size_t comma = list.find(',');
  const std::string_view first = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return first;
}

}  // namespace

std::vector<SavedSlot> sockets_of(const SavedNode& node, const Json& definition,
                                  const SavedWidgets& widgets) {
  std::vector<SavedSlot> sockets;
  std::set<std::string_view> taken;
  const auto add = [&](const std::string& name, const std::string& type, const SavedSlot* saved) {
    if (!taken.insert(name).second) return;
    SavedSlot& socket =
        sockets.emplace_back(saved != nullptr ? *saved : SavedSlot{name, "", "", {}, false});
    if (!type.empty()) socket.type = type;
  };
  for (const Json::Member* input : inputs_of(definition)) {
    const std::string type = input_type(input->value);
    const std::string group = input->key + ".";
    if (type == "COMFY_AUTOGROW_V3") {
      for (const SavedSlot& saved : node.inputs)
        if (saved.name.starts_with(group)) add(saved.name, "", &saved);
    } else if (widgets.find(input->key) == nullptr && type != "COMFY_DYNAMICGROUP_V3") {
      const SavedSlot* saved = find_slot(node.inputs, input->key);
      add(input->key, type == "COMFY_MATCHTYPE_V3" ? (saved != nullptr ? "" : "*") : type, saved);
    }
  }
  for (const SavedWidget& widget : widgets.all)
    if (widget.has_socket) add(widget.name, widget.type, find_slot(node.inputs, widget.name));
  for (const SavedSlot& saved : node.inputs) add(saved.name, "", &saved);
  return sockets;
}

std::vector<SavedSlot> sockets_of(const SavedNode& node, const SavedGraph& definition) {
  std::vector<SavedSlot> sockets;
  std::vector<bool> taken(node.inputs.size());
  for (const SavedSlot& input : definition.inputs) {
    SavedSlot& socket = sockets.emplace_back(SavedSlot{input.name, input.type, "", {}, false});
    std::optional<std::size_t> match;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (taken[i] || node.inputs[i].name != input.name) continue;
      const bool is_better =
          !match || (node.inputs[*match].type != input.type && node.inputs[i].type == input.type);
      if (is_better) match = i;
    }
    if (!match) continue;
    taken[*match] = true;
    socket.link = node.inputs[*match].link;
  }
  return sockets;
}

bool sockets_fit(std::string_view from, std::string_view to) {
  if (is_open_type(from) || is_open_type(to)) return true;
  for (std::string_view froms = from; !froms.empty();) {
    const std::string_view type = next_type(froms);
    for (std::string_view tos = to; !tos.empty();) {
      const std::string_view other = next_type(tos);
      if (is_open_type(type) || is_open_type(other) || same_without_case(type, other)) return true;
    }
  }
  return false;
}

std::optional<std::size_t> bypass_input(const SavedNode& node, std::string_view output_type,
                                        std::size_t output, std::string_view wanted) {
  const std::vector<SavedSlot>& inputs = node.inputs;
  if (inputs.empty()) return std::nullopt;
  if (is_open_type(wanted)) return output < inputs.size() ? output : 0;
  const auto fits = [&](const SavedSlot& input) {
    return sockets_fit(input.type, output_type) && sockets_fit(input.type, wanted);
  };
  if (output < inputs.size() && fits(inputs[output])) return output;
  auto found = std::ranges::find(inputs, wanted, &SavedSlot::type);
  if (found == inputs.end()) found = std::ranges::find_if(inputs, fits);
  if (found == inputs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - inputs.begin());
}

}  // namespace heddle::engine
