#include "engine/graph/missing_models.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {

void add_missing_models(const Workflow& workflow, const Catalog& catalog,
                        std::vector<Problem>& problems) {
  const bool can_run = std::ranges::none_of(
      problems, [](const Problem& p) { return p.severity == Problem::Severity::error; });
  if (can_run || !catalog.lists_files()) return;
  for (const ModelAddress& model : workflow.models) {
    heddle_widget widget{};
    widget.kind = HEDDLE_WIDGET_FILE;
    widget.source = model.directory.c_str();
    if (std::ranges::count(catalog.choices(widget), model.name) == 0)
      problems.push_back(
          {Problem::Severity::error,
           cat(workflow.name,
               ": a model file is missing, which `heddle fetch` downloads: ", model.text()),
           ""});
  }
}

}  // namespace heddle::engine
