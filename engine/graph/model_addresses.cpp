#include "engine/graph/model_addresses.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::string text_at(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

bool stays_in_its_folder(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
         path.has_filename() &&
         std::ranges::none_of(path, [](const auto& part) { return part == ".." || part == "."; });
}

class Collector {
 public:
  void of_workflow(const Json& workflow) {
    of_list(workflow.find("models"), false);
    of_nodes(workflow.find("nodes"));
    const Json* definitions = workflow.find("definitions");
    const Json* subgraphs = definitions != nullptr && definitions->is_object()
                                ? definitions->find("subgraphs")
                                : nullptr;
    if (subgraphs == nullptr || !subgraphs->is_array()) return;
    for (const Json& subgraph : subgraphs->as_array())
      if (subgraph.is_object()) of_nodes(subgraph.find("nodes"));
  }

  std::vector<ModelAddress> take() { return std::move(found_); }

 private:
  void of_nodes(const Json* nodes) {
    if (nodes == nullptr || !nodes->is_array()) return;
    for (const Json& node : nodes->as_array()) {
      const Json* properties = node.is_object() ? node.find("properties") : nullptr;
      if (properties != nullptr && properties->is_object())
        of_list(properties->find("models"), true);
    }
  }

  void of_list(const Json* models, bool is_of_node) {
    if (models == nullptr || !models->is_array()) return;
    for (const Json& model : models->as_array()) {
      if (!model.is_object()) continue;
      ModelAddress address{text_at(model, "name"),      text_at(model, "directory"),
                           text_at(model, "url"),       text_at(model, "hash"),
                           text_at(model, "hash_type"), is_of_node};
      std::ranges::replace(address.name, '\\', '/');
      const bool is_known = std::ranges::any_of(found_, [&](const ModelAddress& other) {
        return other.name == address.name && other.directory == address.directory;
      });
      if (!is_known && stays_in_its_folder(address.name) && stays_in_its_folder(address.directory))
        found_.push_back(std::move(address));
    }
  }

  std::vector<ModelAddress> found_;
};

}  // namespace

std::string ModelAddress::text() const {
  return cat(directory, "/", name, ": ", url.empty() ? "no address is given" : url,
             hash.empty() ? "" : cat(" (", hash_type.empty() ? "hash" : hash_type, " ", hash, ")"));
}

std::vector<ModelAddress> model_addresses(const Json& workflow) {
  Collector collector;
  if (workflow.is_object()) collector.of_workflow(workflow);
  return collector.take();
}

}  // namespace heddle::engine
