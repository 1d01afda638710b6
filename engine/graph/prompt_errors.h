// What is wrong with an input, as ComfyUI's server says it: {type, message, details, extra_info}.
// Programs that talk to ComfyUI go by these types and texts; people are told by bind(). Pure; any
// thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/catalog.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// A class that is not there: about the whole prompt.
Json unknown_class_error(const WorkflowNode& node);

// Required, and not given. `shown`: what it is called there, where not by its whole name.
Json missing_error(std::string_view input, std::string_view shown = {});

// A link from an output of the type `received`.
Json type_error(const heddle_port& input, std::string_view received, const Link& link,
                const Catalog& catalog);

// A link to a node that is not there (`has_node` false), or to an output that its node has not.
// `is_sink`: the node that holds the link is one.
Json dangling_error(const heddle_port* input, std::string_view name, const Link& link,
                    bool has_node, bool is_sink, const Catalog& catalog);

// An array that is no link, [node, output]; the rest as above.
Json bad_link_error(const heddle_port* input, std::string_view name, const Json& array,
                    bool is_sink, const Catalog& catalog);

// What is wrong with an input of dynamic ones as a whole; `text` says it.
Json dynamic_error(std::string_view input, std::string_view text);

// A literal that bind() refuses.
Json literal_error(const heddle_port& input, const Json& literal, const Catalog& catalog);

// Nodes that wait for one another, each with its class, in the order of their links.
Json cycle_error(const std::vector<const WorkflowNode*>& nodes);

// A loop that is not one: `type` says how; ids of the nodes that make it so, and of the ends.
Json loop_error(std::string_view type, std::string_view text, const std::vector<std::string>& nodes,
                const std::vector<std::string>& ends);

// Anything else that is wrong with a node or an input; `text` says it.
Json other_error(std::string_view input, std::string_view text);

}  // namespace heddle::engine
