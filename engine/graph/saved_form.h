// Workflows as ComfyUI's interface saves them, turned into the API form, the way its export does
// it. ComfyUI 0.4x with front end 1.58 is what results are compared with.
#pragma once

#include <optional>

#include "engine/graph/node_definitions.h"
#include "engine/graph/saved_graph.h"

namespace heddle::engine {

// The workflow in a text, if it is one that the interface saves: at the top, or where the others
// stand ("prompt", "workflow" of a wrapped one that has no "prompt"). Nothing for other texts, and
// cheap for them. Throws as parse_json().
std::optional<Json> read_saved_form(std::string_view text, std::string_view name);

// What becomes of nodes of classes that nobody knows: they make the conversion fail, or they are
// kept with their links, for who binds the workflow and names what it lacks.
enum class UnknownClasses { refuse, keep };

// The API form, {id: {"inputs": ..., "class_type": ..., "_meta": ...}}, each node with its place in
// the text. Nodes inside of subgraphs have ids joined by ':', bypassed, muted and virtual ones are
// gone. Throws Error(invalid_argument) with all that cannot be converted, a line each: node, title
// and reason; `name` begins each line.
Json convert_saved_form(const Json& saved, const NodeDefinitions& definitions,
                        std::string_view name, UnknownClasses unknown);

}  // namespace heddle::engine
