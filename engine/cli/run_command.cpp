#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/reporter.h"
#include "engine/cli/runs.h"
#include "engine/cli/server_run.h"

namespace heddle::cli {
namespace {

using engine::cat;

std::unique_ptr<Reporter> make_reporter(const Settings& settings, Output& output) {
  if (settings.json) return make_json(output);
  if (settings.quiet) return make_quiet();
  if (::isatty(STDERR_FILENO) == 0) return make_lines(output);
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return make_bars(output, known ? size.ws_col : 80);
}

// Log messages and bars share the terminal, so that messages go through the reporter while it
// lives.
class LogThrough {
 public:
  explicit LogThrough(Reporter& reporter) {
    engine::set_log_sink([&reporter](engine::Level level, std::string_view message) {
      reporter.message(cat(engine::level_name(level), ": ", engine::printable(message)));
    });
  }
  ~LogThrough() { engine::set_log_sink({}); }
  LogThrough(const LogThrough&) = delete;
};

}  // namespace

int run_workflow(const Request& request, Output& output) {
  const std::unique_ptr<Reporter> reporter = make_reporter(request.settings, output);
  const LogThrough log(*reporter);
  return request.settings.server.is_given ? run_on_server(request, output, *reporter)
                                          : run_all(request, output, *reporter);
}

}  // namespace heddle::cli
