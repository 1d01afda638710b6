// What a class of nodes looks like to whoever reads workflows that name widget values by position
// only: its inputs in order, in the shape of ComfyUI's /object_info. Two sources: the catalogue of
// the loaded plugins, and a file for classes that it lacks. Values; one thread at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/catalog.h"

namespace heddle::engine {

class NodeDefinitions {
 public:
  NodeDefinitions() = default;
  virtual ~NodeDefinitions() = default;
  NodeDefinitions(const NodeDefinitions&) = delete;
  NodeDefinitions& operator=(const NodeDefinitions&) = delete;

  // {"input": {"required": {name: [type, options]}, "optional": ...}, "display_name": ...}, or
  // nullptr for a class that is not known. Lives as long as this object.
  virtual const Json* find(std::string_view class_type) const = 0;
};

// The classes of a catalogue. Each is described when it is first asked for, which may list folders.
class CatalogDefinitions : public NodeDefinitions {
 public:
  explicit CatalogDefinitions(const Catalog& catalog) : catalog_(catalog) {}
  const Json* find(std::string_view class_type) const override;

 private:
  const Catalog& catalog_;
  mutable std::map<std::string, Json, std::less<>> described_;
};

// Definitions as /object_info serves them, {class: definition}; of a class that is in several, the
// last one holds.
class ObjectInfo : public NodeDefinitions {
 public:
  // Throws Error(invalid_argument) for what is no object of objects.
  void add(Json definitions);
  const Json* find(std::string_view class_type) const override;

 private:
  std::vector<Json> files_;
};

// The first one's classes, and of the second one those that the first lacks.
class FirstOf : public NodeDefinitions {
 public:
  FirstOf(const NodeDefinitions& first, const NodeDefinitions& second)
      : first_(first), second_(second) {}
  const Json* find(std::string_view class_type) const override {
    const Json* found = first_.find(class_type);
    return found != nullptr ? found : second_.find(class_type);
  }

 private:
  const NodeDefinitions& first_;
  const NodeDefinitions& second_;
};

}  // namespace heddle::engine
