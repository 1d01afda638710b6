#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/cli/commands.h"

namespace heddle::cli {

using engine::cat;

int tune_devices(const Request& request, Output& output) {
  const std::filesystem::path& file = request.settings.costs_file;
  if (file.empty())
    throw engine::Error(
        engine::Code::invalid_argument,
        "tune: neither XDG_CACHE_HOME nor HOME is set: say where to write with --costs FILE.");
  // Before the devices are measured: that takes a while, and would be lost.
  std::error_code failure;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), failure);
  if (failure) throw engine::system_error(file.parent_path().string(), failure.value());
  Engine engine(request.settings.engine);
  const std::string costs = engine.tune([&](const std::string& what) {
    if (!request.settings.quiet) to_stderr(cat("heddle: ", what));
  });
  engine::write_file(file, costs, engine::Lasting::yes);
  output.write(costs);
  if (!request.settings.json) output.write(cat("wrote ", engine::printable(file.string()), "\n"));
  return kExitDone;
}

}  // namespace heddle::cli
