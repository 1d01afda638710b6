#include "engine/graph/node_definitions.h"

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

const Json* CatalogDefinitions::find(std::string_view class_type) const {
  if (const auto found = described_.find(class_type); found != described_.end())
    return found->second.find(class_type);
  const NodeTypeRef type = catalog_.find(class_type);
  if (type == nullptr) return nullptr;
  const auto made = described_.emplace(class_type, object_info(*type, catalog_)).first;
  return made->second.find(class_type);
}

void ObjectInfo::add(Json definitions) {
  const auto refuse = [](const Json& json) {
    throw Error(Code::invalid_argument,
                cat(json.where(), json.line() == 0 ? "" : ": ",
                    "node definitions are an object {class: {\"input\": ...}}, as ComfyUI's "
                    "/object_info serves them; got ",
                    json.describe(), "."));
  };
  if (!definitions.is_object()) refuse(definitions);
  for (const Json::Member& member : definitions.members())
    if (!member.value.is_object()) refuse(member.value);
  files_.push_back(std::move(definitions));
}

const Json* ObjectInfo::find(std::string_view class_type) const {
  for (auto file = files_.rbegin(); file != files_.rend(); ++file)
    if (const Json* found = file->find(class_type)) return found;
  return nullptr;
}

}  // namespace heddle::engine
