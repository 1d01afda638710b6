// A workflow as its JSON says it: names, literals, links, hints; nothing resolved. Both forms are
// read: ComfyUI's API format (a map of node ids at the top) and the wrapped form ("prompt" beside
// our own keys). A value: copy it, change it, write it back; what the engine does not know is kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_addresses.h"

namespace heddle::engine {

// [node, slot] or [node, "NAME"].
struct Link {
  std::string node;
  std::variant<std::uint32_t, std::string> output;
  friend bool operator==(const Link&, const Link&) = default;
};

// The link that JSON is, if it is one. 0 and 0.0: ComfyUI takes both for a slot.
std::optional<Link> link_of(const Json& json);

struct WorkflowInput {
  std::string name;
  std::variant<Json, Link> value;  // a literal ({"__value__": [...]} is unwrapped), or a link
  std::uint32_t line = 0, column = 0;
  std::string from = {};     // who gave it after the text was read, for messages; empty: unknown
  bool is_bad_link = false;  // the value is an array that is no link: bind() refuses it
};

struct WorkflowNode {
  std::string id;
  std::string class_type;
  std::string title;  // _meta.title
  std::vector<WorkflowInput> inputs;
  Hints hints;  // device, prefer, parallel, blocks
  Json rest;    // the other keys, kept (_meta among them)
  std::uint32_t line = 0, column = 0;
};

struct DeviceHint {
  std::string device;
  std::optional<std::uint64_t> budget_bytes;
};

struct Workflow {
  std::string name;                 // for messages: the file's name
  std::vector<WorkflowNode> nodes;  // in the order of the text
  std::vector<DeviceHint> devices;
  Json rest;                         // top-level keys we do not know (extra_data, ...), kept
  std::vector<ModelAddress> models;  // where its files can be had

  const WorkflowNode* find(std::string_view id) const;
};

// A problem with its place in the text. Warnings do not stop a run.
struct Problem {
  enum class Severity { warning, error } severity = Severity::error;
  std::string message;  // complete, "scene.json:31:20: node 'save', input 'images': ..."
  std::string node;     // id, or empty
  std::string lacks;    // the class or file that is not there (lacking.h), or empty
};

// Throws Error(invalid_argument) with every problem found, a line each; `name` begins each line.
Workflow parse_workflow(std::string_view text, std::string_view name);

// Canonical JSON: the bare form when there is nothing but nodes, else the wrapped one.
std::string write_workflow(const Workflow& workflow);

// The nodes alone, as ComfyUI knows them: without our placement keys. What a picture's metadata
// carry.
Json nodes_to_json(const Workflow& workflow);

// The node that NODE on a command line means: an id, a title, or a class used once. Throws with the
// nearest names, or with the candidates when several match.
std::size_t find_node(const Workflow& workflow, std::string_view name);

// --set NODE.INPUT=VALUE: VALUE is JSON where it parses as JSON of the input's present kind or
// declared type, else text. The input need not be given in the workflow, but the class must have
// it: `declared_type` is the port's type ("INT"), or empty when the class is not known.
void set_input(Workflow& workflow, std::size_t node, std::string_view input, std::string_view value,
               std::string_view declared_type);

}  // namespace heddle::engine
