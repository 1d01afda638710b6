#include "heddle/model_files.hpp"

#include "engine/facade/data.h"
#include "engine/facade/layout.h"
#include "engine/graph/model_addresses.h"

namespace heddle {

std::vector<ModelFile> model_files(std::string_view workflow, std::string_view file,
                                   const EngineOptions& options) {
  return translate_errors([&] {
    const engine::Folders folders(layout_of(options)), own(own_layout_of(options));
    std::vector<ModelFile> files;
    for (engine::ModelAddress& model :
         engine::model_addresses(engine::parse_json(workflow, file))) {
      ModelFile found{model.directory, model.name,
                      model.url,       model.hash,
                      model.hash_type, own.place_for_new(model.directory) / model.name};
      for (const std::string& place : folders.places(model.directory)) {
        const std::filesystem::path path = std::filesystem::path(place) / model.name;
        std::error_code ignored;
        if (found.is_there || !std::filesystem::exists(path, ignored)) continue;
        found.path = path;
        found.is_there = true;
      }
      files.push_back(std::move(found));
    }
    return files;
  });
}

}  // namespace heddle
