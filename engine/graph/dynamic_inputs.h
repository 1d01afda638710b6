// The inputs that ComfyUI calls dynamic, as a prompt has them: under dotted names beside those that
// the class declares ("images.image0", "resize_type.width", "loras.0.strength"). What there may be
// of them stands in the options of the declared port (Widget::extra, as in /object_info). Pure; any
// thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/catalog.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

struct DynamicFault {
  std::string input;                     // its whole name
  const WorkflowInput* given = nullptr;  // of the node; nullptr: it is missing
  std::string text;                      // for people, behind "input 'x': "
  Json error;                            // prompt_errors.h
};

// The type of the output that a link means; nothing: nobody knows.
using ReceivedType = std::function<std::optional<std::string_view>(const Link&)>;

// What is wrong with them: a required one that is missing and has no default, a literal that is no
// number, out of range or none of the choices, a link from another type; in a group rows with
// other numbers than there are, or too few. Inputs of variants that are not chosen and of slots
// that are not given, sockets that do not exist and an unknown variant are left to the node, as
// ComfyUI does.
std::vector<DynamicFault> dynamic_faults(const NodeType& type, const WorkflowNode& node,
                                         const ReceivedType& received, const Catalog& catalog);

}  // namespace heddle::engine
