// Where files are, for programs that offer them to people.
#include <set>

#include "engine/base/folder.h"
#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "heddle/abi/node.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

bool is_of_models(std::string_view folder) {
  return folder != "input" && folder != "output" && folder != "temp" && !folder.empty();
}

}  // namespace

std::vector<std::string> Engine::folder_names() const {
  return translate_errors([&] {
    std::set<std::string> names;
    const engine::Catalog& catalog = *data_->plugins.catalog;
    for (const std::string_view type : catalog.type_names()) {
      const engine::NodeTypeRef node = catalog.find(type);
      for (std::uint32_t i = 0; i < node->input_count(); ++i) {
        const heddle_widget* widget = node->input(i).widget;
        if (widget == nullptr || widget->source == nullptr) continue;
        if (widget->kind != HEDDLE_WIDGET_FILE && widget->kind != HEDDLE_WIDGET_FOLDER) continue;
        if (is_of_models(widget->source)) names.emplace(widget->source);
      }
    }
    for (const std::string& place : data_->folders->places("")) {
      std::error_code error;
      for (const engine::FolderEntry& entry : engine::entries_of(place, error))
        if (entry.is_folder()) names.insert(entry.name());
    }
    return std::vector<std::string>(names.begin(), names.end());
  });
}

std::vector<fs::path> Engine::folder_places(std::string_view folder) const {
  return translate_errors([&] {
    std::vector<fs::path> places;
    for (const std::string& place : data_->folders->places(folder)) places.emplace_back(place);
    return places;
  });
}

std::vector<std::string> Engine::folder_files(std::string_view folder) const {
  return translate_errors([&] { return data_->folders->list(folder, HEDDLE_WIDGET_FILE); });
}

}  // namespace heddle
