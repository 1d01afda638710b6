#include "engine/graph/bind_faults.h"

#include "engine/base/text.h"
#include "engine/graph/prompt_errors.h"

namespace heddle::engine {

std::string bad_link_text(const Json& array) {
  constexpr std::string_view kAdvice = ". Write a list as {\"__value__\": [...]}.";
  if (array.size() != 2)
    return cat("an array is a link [node, output], got ", array.describe(), kAdvice);
  const Json& node = array.at(std::size_t{0});
  if (!node.is_string() && !node.is_integer())
    return cat("a link begins with a node's id, got ", node.describe(), kAdvice);
  return cat("a link ends with an output's number (from 0) or name, got ",
             array.at(std::size_t{1}).describe(), ".");
}

std::string BindFaults::at(std::uint32_t line, std::uint32_t column) const {
  return line == 0 ? cat(workflow_.name, ": ") : cat(workflow_.name, ":", line, ":", column, ": ");
}

std::string BindFaults::shown(NodeIndex i) const {
  return cat(quote(workflow_.nodes[i].id), " (", workflow_.nodes[i].class_type, ")");
}

void BindFaults::report(NodeIndex i, std::string_view what, Json error, Fault::Reach reach) {
  const WorkflowNode& node = workflow_.nodes[i];
  faults_.push_back({i, Problem::Severity::error, reach,
                     cat(at(node.line, node.column), "node ", what), std::move(error)});
}

void BindFaults::report(const Place& place, std::string_view what, Json error,
                        Problem::Severity severity) {
  const WorkflowNode& node = workflow_.nodes[place.node];
  const bool given = place.input != nullptr;
  faults_.push_back({place.node, severity, Fault::Reach::node,
                     cat(!given                      ? at(node.line, node.column)
                         : place.input->from.empty() ? at(place.input->line, place.input->column)
                                                     : cat(place.input->from, ": "),
                         "node ", shown(place.node), ", input ", quote(place.name), ": ", what),
                     std::move(error)});
}

void BindFaults::report_other(const Place& place, std::string_view what) {
  report(place, what, other_error(place.name, cat(place.name, " - ", what)));
}

void BindFaults::report_whole(std::string_view what) {
  faults_.push_back(
      {kGraphInputs, Problem::Severity::error, Fault::Reach::workflow, cat(at(0, 0), what), {}});
}

}  // namespace heddle::engine
