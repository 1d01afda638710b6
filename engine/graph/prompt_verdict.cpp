#include "engine/graph/prompt_verdict.h"

#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/graph/lacking.h"

namespace heddle::engine {
namespace {

using Severity = Problem::Severity;
constexpr std::size_t kMostSearched = 256;  // failing outputs whose nodes are looked for

bool is_error(const Fault& fault) { return fault.severity == Severity::error; }

// What is wrong with a node that no sink needs is only worth a warning. Without any sink nobody can
// say what is needed.
void excuse_unneeded(std::vector<Fault>& faults, const Dag& dag,
                     const std::vector<NodeIndex>& sinks) {
  if (sinks.empty()) return;
  const std::vector<bool> needed = ancestors(dag, sinks);
  for (Fault& fault : faults)
    if (fault.node != kGraphInputs && fault.reach == Fault::Reach::node && !needed[fault.node])
      fault.severity = Severity::warning;
}

std::vector<NodeIndex> faulty_nodes(const std::vector<Fault>& faults) {
  std::vector<NodeIndex> nodes;
  for (const Fault& fault : faults)
    if (is_error(fault) && fault.node != kGraphInputs) nodes.push_back(fault.node);
  return nodes;
}

// Marks what needs any of these.
std::vector<bool> descendants(const Dag& dag, const std::vector<NodeIndex>& of) {
  Dag reversed{dag.node_count, {}};
  reversed.edges.reserve(dag.edges.size());
  for (const auto& [from, to] : dag.edges) reversed.edges.emplace_back(to, from);
  return ancestors(reversed, of);
}

Json error_of_all(std::string_view type, std::string_view message, std::string_view details,
                  Json extra) {
  Json error = Json::object();
  error.set("type", type).set("message", message).set("details", details);
  return std::move(error.set("extra_info", std::move(extra)));
}

// Every faulty node with its errors and the outputs that wait for it.
Json node_errors(const std::vector<Fault>& faults, const Workflow& workflow, const Dag& dag,
                 const std::vector<NodeIndex>& failing) {
  std::map<NodeIndex, Json> errors, outputs;
  std::vector<NodeIndex> order;
  const auto blame = [&](NodeIndex node, const Json& error) {
    const auto [at, is_new] = errors.try_emplace(node, Json::array());
    if (is_new) order.push_back(node);
    at->second.push(error);
    outputs.try_emplace(node, Json::array());
  };
  for (const Fault& fault : faults) {
    if (!is_error(fault) || fault.node == kGraphInputs || fault.error.is_null()) continue;
    blame(fault.node, fault.error);
    for (const NodeIndex node : fault.also) blame(node, fault.error);
  }
  for (std::size_t i = 0; i < std::min(failing.size(), kMostSearched); ++i) {
    const std::vector<bool> needed = ancestors(dag, {failing[i]});
    for (auto& [node, waiting] : outputs)
      if (needed[node]) waiting.push(workflow.nodes[failing[i]].id);
  }
  Json all = Json::object();
  for (const NodeIndex node : order) {
    Json entry = Json::object();
    entry.set("errors", std::move(errors.at(node)));
    entry.set("dependent_outputs", std::move(outputs.at(node)));
    entry.set("class_type", workflow.nodes[node].class_type);
    all.set(workflow.nodes[node].id, std::move(entry));
  }
  return all;
}

// "message: details" of what is wrong with the failing outputs themselves.
std::string own_details(const std::vector<Fault>& faults, const std::vector<NodeIndex>& failing) {
  std::vector<std::string> lines;
  for (const Fault& fault : faults)
    if (is_error(fault) && fault.error.is_object() &&
        std::ranges::find(failing, fault.node) != failing.end())
      lines.push_back(
          cat(fault.error.at("message").as_string(), ": ", fault.error.at("details").as_string()));
  return join(lines, "\n");
}

}  // namespace

Verdict judge(std::vector<Fault> faults, const Workflow& workflow, const Dag& dag,
              const std::vector<NodeIndex>& sinks) {
  Verdict verdict;
  if (!faults.empty()) excuse_unneeded(faults, dag, sinks);
  const auto of_all = std::ranges::find_if(
      faults, [](const Fault& f) { return is_error(f) && f.reach == Fault::Reach::workflow; });
  const std::vector<NodeIndex> faulty = faulty_nodes(faults);
  std::vector<NodeIndex> failing;
  if (faulty.empty() && of_all == faults.end()) {
    verdict.sinks = sinks;
  } else {
    const std::vector<bool> fails = descendants(dag, faulty);
    for (const NodeIndex sink : sinks)
      (fails[sink] || of_all != faults.end() ? failing : verdict.sinks).push_back(sink);
  }
  verdict.answer = Json::object();
  if (of_all != faults.end() && of_all->error.is_object())
    verdict.answer.set("error", of_all->error);
  else if (sinks.empty())
    verdict.answer.set(
        "error", error_of_all("prompt_no_outputs", "Prompt has no outputs", "", Json::object()));
  else if (verdict.sinks.empty())
    verdict.answer.set("error", error_of_all("prompt_outputs_failed_validation",
                                             "Prompt outputs failed validation",
                                             own_details(faults, failing), Json::object()));
  const bool is_refused_whole = of_all != faults.end() || sinks.empty();
  verdict.answer.set("node_errors", is_refused_whole ? Json::object()
                                                     : node_errors(faults, workflow, dag, failing));
  verdict.problems = tell_once(std::move(faults), workflow);
  return verdict;
}

}  // namespace heddle::engine
