#include "engine/graph/lacking.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

using Severity = Problem::Severity;
constexpr std::size_t kMostOthers = 16;  // nodes that lack the same

// ComfyUI's, and gguf.
constexpr std::string_view kModelEndings[] = {".ckpt",        ".pt",  ".pt2", ".bin", ".pth",
                                              ".safetensors", ".pkl", ".sft", ".gguf"};

// The fault that stands for all that lack the same: the first error, or else the first.
struct Reported {
  std::size_t at;
  std::vector<std::string_view> others;  // ids of nodes
  std::size_t more = 0;                  // of them, that are not shown
  NodeIndex last = kGraphInputs;
};

void add_other(Reported& reported, NodeIndex node, NodeIndex first, const Workflow& workflow) {
  if (node == kGraphInputs || node == first || node == reported.last) return;
  reported.last = node;
  if (reported.others.size() < kMostOthers)
    reported.others.push_back(workflow.nodes[node].id);
  else
    ++reported.more;
}

std::string others_of(const Reported& reported) {
  if (reported.others.empty()) return "";
  std::vector<std::string> names;
  for (const std::string_view id : reported.others) names.push_back(quote(id));
  if (reported.more > 0) names.push_back(cat("(", reported.more, " more)"));
  return cat(" Other nodes that need it: ", join(names, ", "), ".");
}

}  // namespace

std::string lacking_class(std::string_view name) { return cat("class ", name); }

std::string lacking_file(std::string_view folder, std::string_view name) {
  return cat("file ", folder, "/", name);
}

bool names_missing_model(const WorkflowInput& input, const Workflow& workflow,
                         const Catalog& catalog) {
  const Json* literal = std::get_if<Json>(&input.value);
  if (literal == nullptr || !literal->is_string() || !catalog.lists_files()) return false;
  const std::string& name = literal->as_string();
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (std::ranges::none_of(kModelEndings, ends)) return false;
  if (std::ranges::find(workflow.models, name, &ModelAddress::name) != workflow.models.end())
    return false;
  heddle_widget any_folder{};
  any_folder.kind = HEDDLE_WIDGET_FILE;
  any_folder.source = "";
  return std::ranges::none_of(catalog.choices(any_folder), [&](const std::string& path) {
    return path == name || path.ends_with("/" + name);
  });
}

std::vector<Problem> tell_once(std::vector<Fault> faults, const Workflow& workflow) {
  boost::unordered_flat_map<std::string_view, Reported> by_lack;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].lacks.empty()) continue;
    const auto [at, is_new] = by_lack.try_emplace(faults[i].lacks, Reported{.at = i, .others = {}});
    const Fault& before = faults[at->second.at];
    if (!is_new && before.severity == Severity::warning && faults[i].severity == Severity::error)
      at->second.at = i;
  }
  for (const Fault& fault : faults) {
    if (fault.lacks.empty()) continue;
    Reported& reported = by_lack.at(fault.lacks);
    add_other(reported, fault.node, faults[reported.at].node, workflow);
  }
  std::vector<Problem> problems;
  problems.reserve(faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Fault& fault = faults[i];
    const std::string id = fault.node == kGraphInputs ? "" : workflow.nodes[fault.node].id;
    if (fault.lacks.empty()) {
      problems.push_back({fault.severity, std::move(fault.message), id, ""});
    } else if (const Reported& reported = by_lack.at(fault.lacks); reported.at == i) {
      problems.push_back({fault.severity, fault.message + others_of(reported), id, fault.lacks});
    }
  }
  return problems;
}

void put_lacking_first(std::vector<Problem>& problems) {
  std::stable_partition(problems.begin(), problems.end(), [](const Problem& p) {
    return p.severity == Severity::error && !p.lacks.empty();
  });
}

}  // namespace heddle::engine
