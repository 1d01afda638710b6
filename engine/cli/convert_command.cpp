// convert: a workflow in the form that ComfyUI's interface saves becomes one for its API.
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"

namespace heddle::cli {

int convert_workflow(const Request& request, Output& output) {
  constexpr engine::FileKind kObjectInfoFile{"a file of node definitions", 256 << 20};
  std::vector<std::string> object_info;
  for (const std::filesystem::path& file : request.settings.object_info)
    object_info.push_back(engine::read_file(file, kObjectInfoFile));
  const Engine engine(request.settings.engine);
  output.write(engine::cat(engine.convert(request.flow, object_info), "\n"));
  return kExitDone;
}

}  // namespace heddle::cli
