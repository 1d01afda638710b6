#include "engine/graph/missing_models.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/graph/lacking.h"

namespace heddle::engine {

namespace {

bool names_it(const WorkflowNode& node, const ModelAddress& model) {
  return std::ranges::any_of(node.inputs, [&](const WorkflowInput& input) {
    const Json* literal = std::get_if<Json>(&input.value);
    if (literal == nullptr || !literal->is_string()) return false;
    std::string name = literal->as_string();
    std::ranges::replace(name, '\\', '/');
    return name == model.name;
  });
}

}  // namespace

void add_missing_models(const Workflow& workflow, const Catalog& catalog,
                        std::vector<Problem>& problems) {
  const bool can_run = std::ranges::none_of(
      problems, [](const Problem& p) { return p.severity == Problem::Severity::error; });
  if (can_run || !catalog.lists_files()) return;
  for (const ModelAddress& model : workflow.models) {
    const auto names = [&](const WorkflowNode& node) { return names_it(node, model); };
    if (model.is_of_node && std::ranges::none_of(workflow.nodes, names)) continue;
    heddle_widget widget{};
    widget.kind = HEDDLE_WIDGET_FILE;
    widget.source = model.directory.c_str();
    if (std::ranges::count(catalog.choices(widget), model.name) == 0)
      problems.push_back(
          {Problem::Severity::error,
           cat(workflow.name,
               ": a model file is missing, which `heddle fetch` downloads: ", model.text()),
           "", lacking_file(model.directory, model.name)});
  }
}

}  // namespace heddle::engine
