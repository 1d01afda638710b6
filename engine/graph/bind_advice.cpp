#include "engine/graph/bind_advice.h"

#include <algorithm>

#include "engine/graph/type_match.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kMostAdvised = 3;
constexpr std::size_t kMostOfCycle = 16;  // nodes

bool is_any(std::string_view type) { return type == "*"; }

bool takes(const NodeType& type, std::string_view received) {
  for (std::uint32_t i = 0; i < type.input_count(); ++i) {
    const heddle_port& port = type.input(i);
    const bool hidden = (port.flags & HEDDLE_PORT_HIDDEN) != 0;
    if (!hidden && !is_any(port.type) && types_match(received, port.type)) return true;
  }
  return false;
}

bool gives(const NodeType& type, std::string_view wanted) {
  for (std::uint32_t i = 0; i < type.output_count(); ++i)
    if (!is_any(type.output(i).type) && types_match(type.output(i).type, wanted)) return true;
  return false;
}

}  // namespace

const BindAdvice::Origins& BindAdvice::origins(std::string_view wanted) {
  const auto [entry, is_new] = origins_.try_emplace(std::string(wanted));
  Origins& origins = entry->second;
  if (!is_new) return origins;
  // One more than is shown, because the reader itself is left out.
  for (std::size_t i = 0; i < types_.size() && origins.nodes.size() <= kMostAdvised; ++i) {
    for (std::uint32_t o = 0; types_[i] != nullptr && o < types_[i]->output_count(); ++o) {
      const heddle_port& port = types_[i]->output(o);
      if (is_any(port.type) || !types_match(port.type, wanted)) continue;
      origins.nodes.emplace_back(
          static_cast<NodeIndex>(i),
          cat(quote(workflow_.nodes[i].id), " output ", o, " (", port.name, ")"));
      break;
    }
  }
  std::vector<std::string> classes;
  for (const std::string_view name : catalog_.type_names()) {
    const NodeTypeRef type = catalog_.find(name);
    if (classes.size() == kMostAdvised) break;
    if (!type->has(HEDDLE_NODE_BLOCK) && gives(*type, wanted)) classes.push_back(quote(name));
  }
  origins.classes =
      classes.empty()
          ? cat("Link it to an output of type ", wanted, "; no loaded plugin has a node with one.")
          : cat("Add a node that gives ", wanted, ": ", join(classes, " or "), ".");
  return origins;
}

std::string BindAdvice::for_missing(NodeIndex reader, std::string_view wanted) {
  if (is_any(wanted)) return "Link it to any output.";
  const Origins& from = origins(wanted);
  std::vector<std::string_view> shown;
  for (const auto& [node, text] : from.nodes)
    if (node != reader && shown.size() < kMostAdvised) shown.push_back(text);
  return shown.empty() ? from.classes : cat("Link it to ", join(shown, " or "), ".");
}

std::string BindAdvice::for_no_sink() const {
  std::vector<std::string> classes;
  for (const std::string_view name : catalog_.type_names())
    if (catalog_.find(name)->has(HEDDLE_NODE_SINK) && classes.size() < kMostAdvised)
      classes.push_back(quote(name));
  return cat("there is nothing to do: no node saves or shows anything. Add one that does",
             classes.empty() ? "." : cat(": ", join(classes, " or "), "."));
}

std::string BindAdvice::for_cycle(const std::vector<NodeIndex>& cycle) const {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostOfCycle); ++i)
    ids.push_back(quote(workflow_.nodes[cycle[i]].id));
  if (cycle.size() > kMostOfCycle) ids.push_back(cat("(", cycle.size() - kMostOfCycle, " more)"));
  ids.push_back(quote(workflow_.nodes[cycle.front()].id));
  return cat("waits for itself: ", join(ids, " -> "), ". Remove one of these links.");
}

std::string BindAdvice::for_unknown_class(std::string_view name) {
  const std::string guess = this->guess(name, [&] { return catalog_.type_names(); });
  std::vector<std::string> folders;
  for (const std::string& folder : catalog_.plugin_folders()) folders.push_back(quote(folder));
  return cat(
      "no loaded plugin brings the class ", quote(name), ".", guess,
      guess.empty() ? " Put" : " If not, put", " the plugin that has it into ",
      folders.empty() ? "a plugin folder" : cat("a plugin folder (", join(folders, ", "), ")"),
      ".");
}

const std::string& BindAdvice::converters(std::string_view received, std::string_view wanted) {
  const auto [entry, is_new] =
      converters_.try_emplace({std::string(received), std::string(wanted)});
  if (!is_new) return entry->second;
  std::vector<std::string> classes;
  for (const std::string_view name : catalog_.type_names()) {
    const NodeTypeRef type = catalog_.find(name);
    if (classes.size() == kMostAdvised) break;
    if (!type->has(HEDDLE_NODE_BLOCK) && takes(*type, received) && gives(*type, wanted))
      classes.push_back(quote(name));
  }
  if (!classes.empty())
    entry->second = cat("Put a node between that makes ", wanted, " of ", received, ": ",
                        join(classes, " or "), ".");
  return entry->second;
}

std::string BindAdvice::for_mismatch(NodeIndex reader, const Source& source,
                                     const heddle_port& input) {
  const NodeType& type = *types_[source.node];
  for (std::uint32_t o = 0; o < type.output_count(); ++o)
    if (o != source.port && accepts(input, type.output(o).type))
      return cat("Output ", o, " (", type.output(o).name, ") of ",
                 quote(workflow_.nodes[source.node].id), " is ", type.output(o).type, ".");
  if (chooses(input)) return "Give the name itself, or link it to an output of type COMBO.";
  const std::string& between = converters(type.output(source.port).type, input.type);
  return between.empty() ? for_missing(reader, input.type) : between;
}

std::vector<std::string_view> input_names(const NodeType& type) {
  std::vector<std::string_view> names;
  for (std::uint32_t p = 0; p < type.input_count(); ++p)
    if ((type.input(p).flags & HEDDLE_PORT_HIDDEN) == 0) names.emplace_back(type.input(p).name);
  return names;
}

std::vector<std::string_view> output_names(const NodeType& type) {
  std::vector<std::string_view> names;
  for (std::uint32_t o = 0; o < type.output_count(); ++o) names.emplace_back(type.output(o).name);
  return names;
}

std::string advice_for_choosing(const heddle_widget& widget) {
  if (widget.kind == HEDDLE_WIDGET_CHOICE) return "No loaded plugin brings a choice.";
  return cat("Give the name of a ", widget.kind == HEDDLE_WIDGET_FOLDER ? "folder" : "file", " in ",
             quote(widget.source == nullptr ? "" : widget.source), ".");
}

std::string outputs_of(const NodeType& type) {
  std::vector<std::string> names;
  for (std::uint32_t o = 0; o < type.output_count(); ++o)
    names.push_back(cat(o, " ", type.output(o).name));
  return names.empty() ? "none" : clip(join(names, ", "), 300);
}

}  // namespace heddle::engine
