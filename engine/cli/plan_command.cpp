#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/draw.h"
#include "engine/cli/variants.h"

namespace heddle::cli {

using engine::cat;

int plan_workflow(const Request& request, Output& output) {
  const auto warn = [&](const std::string& text) {
    if (!request.settings.quiet) engine::log(engine::Level::warning, text);
  };
  const Engine engine(request.settings.engine);
  const Variants variants(engine, engine.adopt(request.flow), request.settings, warn);
  for (std::size_t run = 0; run < variants.count(); ++run) {
    const Workflow flow = variants.workflow(run);
    const Engine::Problems problems = engine.check(flow);
    const auto shown = [&](const std::vector<std::string>& all, std::size_t whole = 0) {
      return request.settings.json ? all : engine::clip_lines(all, whole);
    };
    if (variants.count() == 1 || !problems.errors.empty())
      for (const std::string& warning : shown(problems.warnings)) warn(warning);
    for (const std::string& error : shown(problems.errors, problems.lacking))
      to_stderr(cat("heddle: ", error));
    if (!problems.errors.empty()) return kExitUsage;
    if (!request.settings.svg.empty())
      draw(engine.plan_dot(flow), numbered(request.settings.svg, run + 1, variants.count()));
    if (request.settings.min_memory) {
      output.write(cat(engine.plan_min_memory(flow, request.settings.json),
                       request.settings.json ? "\n" : ""));
      continue;
    }
    if (request.settings.json) {
      output.write(cat(engine.plan_json(flow), "\n"));
      continue;
    }
    if (variants.count() > 1)
      output.write(cat(run == 0 ? "" : "\n", "run ", run + 1, " of ", variants.count(), ": ",
                       engine::printable(variants.label(run)), "\n"));
    output.write(engine.plan(flow));
  }
  return kExitDone;
}

}  // namespace heddle::cli
