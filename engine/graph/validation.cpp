#include "engine/graph/validation.h"

#include "engine/base/text.h"
#include "engine/graph/prompt_errors.h"

namespace heddle::engine {
namespace {

// Nothing: the node takes what it was given.
std::optional<std::string> refusal_of(const heddle_validator& validator, heddle_validation question,
                                      const heddle_host& host) {
  heddle_status* status = validator.validate(&host, &question);
  if (status == nullptr) return std::nullopt;
  std::string message = host.status_message(status);
  host.status_free(status);
  return message;
}

bool is_given(const Binding& binding) { return !std::holds_alternative<std::monostate>(binding); }

}  // namespace

std::vector<JudgedFault> faults_of_validator(const Node& node,
                                             const std::vector<NodeTypeRef>& types,
                                             const Catalog& catalog, LiteralReader& literals) {
  std::vector<JudgedFault> faults;
  const heddle_validator* validator = node.type->validator();
  if (validator == nullptr || catalog.host() == nullptr) return faults;
  const auto refusal = refusal_of(*validator, {node, types, literals}, *catalog.host());
  if (!refusal) return faults;
  const std::string said = refusal->empty() ? "the node does not take this." : *refusal;
  for (std::uint32_t p = 0; p < node.type->input_count(); ++p) {
    const heddle_port& port = node.type->input(p);
    if (!node.type->check(p).is_judged() || !is_given(node.inputs[p])) continue;
    const Value* value = std::get_if<Value>(&node.inputs[p]);
    const auto file = value == nullptr ? std::nullopt : literals.fault_of_file(port, **value);
    const std::string details = refusal->empty() ? port.name : cat(port.name, " - ", *refusal);
    faults.push_back({port.name, file ? file->text : said, other_error(port.name, details),
                      file ? file->lacks : std::string()});
  }
  return faults;
}

}  // namespace heddle::engine
