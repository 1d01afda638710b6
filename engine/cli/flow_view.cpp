#include "engine/cli/flow_view.h"

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using core::cat;
using core::Json;

std::string text_at(const Json* json) {
  return json != nullptr && json->is_string() ? json->as_string() : std::string();
}

// The sections of "input" (required, optional, hidden) of the one class in an object_info.
std::vector<const Json*> sections_of(const Json& object_info) {
  std::vector<const Json*> sections;
  if (object_info.size() == 0) return sections;
  const Json* inputs = object_info.members().front().value.find("input");
  if (inputs == nullptr || !inputs->is_object()) return sections;
  for (const Json::Member& section : inputs->members()) sections.push_back(&section.value);
  return sections;
}

// A declaration is [TYPE, options], or of hidden inputs TYPE alone. TYPE may name several:
// "INT,FLOAT".
InputKind kind_of(const Json& declaration) {
  const bool wrapped = declaration.is_array() && declaration.size() > 0;
  const Json& type = wrapped ? declaration.at(std::size_t{0}) : declaration;
  if (!type.is_string()) return InputKind::other;
  const std::string types = cat(",", type.as_string(), ",");
  if (types.find(",FLOAT,") != std::string::npos) return InputKind::real;
  return types.find(",INT,") != std::string::npos ? InputKind::integer : InputKind::other;
}

}  // namespace

FlowView::FlowView(std::string_view workflow_text) {
  const Json json = core::parse_json(workflow_text, "workflow");
  // In the bare form a node may be called "prompt": it has a class, the wrapper has not.
  const Json* wrapped = json.find("prompt");
  const bool is_wrapper = wrapped != nullptr && wrapped->find("class_type") == nullptr;
  const Json& nodes = is_wrapper ? *wrapped : json;
  if (!nodes.is_object()) return;
  for (const Json::Member& member : nodes.members()) {
    const Json* meta = member.value.find("_meta");
    nodes_.push_back({member.key, meta == nullptr ? "" : text_at(meta->find("title")),
                      text_at(member.value.find("class_type")), member.value});
  }
}

bool FlowView::Node::gives_input(std::string_view input) const {
  const Json* inputs = json.find("inputs");
  return inputs != nullptr && inputs->find(input) != nullptr;
}

const FlowView::Node* FlowView::find(std::string_view name) const {
  for (const auto member : {&Node::id, &Node::title, &Node::class_type}) {
    const Node* found = nullptr;
    std::size_t count = 0;
    for (const Node& node : nodes_) {
      if (node.*member != name || name.empty()) continue;
      found = &node;
      ++count;
    }
    if (count > 0) return count == 1 ? found : nullptr;
  }
  return nullptr;
}

InputName split_input_name(std::string_view name) {
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos || point == 0 || point + 1 == name.size())
    throw core::Error(
        core::Code::invalid_argument,
        cat("expected NODE.INPUT=VALUE, got no NODE.INPUT in ", core::quote(name), "."));
  return {std::string(name.substr(0, point)), std::string(name.substr(point + 1))};
}

std::optional<InputKind> declared_kind(const Json& object_info, std::string_view input) {
  for (const Json* section : sections_of(object_info))
    if (const Json* declaration = section->find(input)) return kind_of(*declaration);
  return std::nullopt;
}

}  // namespace heddle::cli
