#include "engine/facade/saved_workflow.h"

#include <fstream>
#include <utility>

#include "engine/base/mapped_file.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/files/picture_text.h"
#include "engine/files/video_text.h"
#include "engine/graph/saved_form.h"
#include "engine/graph/workflow_json.h"

namespace heddle {
namespace {

using engine::Json;

// Savers put the interface's form into pictures, too.
void keep_for_pictures(const Json& saved, engine::Workflow& workflow) {
  Json info = Json::object();
  info.set("workflow", saved);
  workflow.rest.set("extra_data", std::move(Json::object().set("extra_pnginfo", std::move(info))));
}

// Pipes are left alone: what is read of one is gone.
bool begins_as_video(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  char begin[12] = "";
  std::ifstream(path, std::ios::binary).read(begin, sizeof begin);
  return engine::is_video({begin, sizeof begin});
}

}  // namespace

std::shared_ptr<const Workflow::Data> load_workflow(
    const std::filesystem::path& path, std::shared_ptr<const engine::Catalog> catalog) {
  const std::string name = path.filename().string();
  if (!begins_as_video(path))
    return read_workflow(engine::read_file(path, engine::kWorkflowFile), name, std::move(catalog));
  const engine::MappedFile file(path);
  const std::string_view content(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  auto flow = read_workflow(content, name, std::move(catalog));
  file.check();
  return flow;
}

std::shared_ptr<const Workflow::Data> read_workflow(
    std::string_view content, std::string_view name,
    std::shared_ptr<const engine::Catalog> catalog) {
  std::optional<std::string> inside = engine::workflow_in_picture(content, name);
  if (!inside) inside = engine::workflow_in_video(content, name);
  const std::string_view text = inside ? std::string_view(*inside) : content;
  std::optional<Json> saved = engine::read_saved_form(text, name);
  if (!saved)
    return std::make_shared<const Workflow::Data>(
        Workflow::Data{engine::parse_workflow(text, name), std::move(catalog), nullptr});
  Workflow::Data flow{{}, nullptr, std::make_shared<const Json>(*std::move(saved))};
  flow.workflow.name = name;
  if (catalog != nullptr) return adopt_workflow(flow, std::move(catalog));
  return std::make_shared<const Workflow::Data>(std::move(flow));
}

std::shared_ptr<const Workflow::Data> adopt_workflow(
    const Workflow::Data& flow, std::shared_ptr<const engine::Catalog> catalog) {
  auto adopted = std::make_shared<Workflow::Data>(flow);
  adopted->catalog = std::move(catalog);
  if (flow.saved == nullptr) return adopted;
  const engine::CatalogDefinitions classes(*adopted->catalog);
  const std::string& name = flow.workflow.name;
  adopted->workflow = engine::workflow_of(
      engine::convert_saved_form(*flow.saved, classes, name, engine::UnknownClasses::keep), name);
  adopted->workflow.models = engine::model_addresses(*flow.saved);
  keep_for_pictures(*flow.saved, adopted->workflow);
  adopted->saved = nullptr;
  return adopted;
}

std::string api_form(const Workflow::Data& flow, const engine::Catalog& catalog,
                     const std::vector<std::string>& object_info) {
  if (flow.saved == nullptr) return engine::write_json(engine::nodes_to_json(flow.workflow), 2);
  engine::ObjectInfo given;
  for (const std::string& text : object_info) given.add(engine::parse_json(text, "object_info"));
  const engine::CatalogDefinitions own(catalog);
  const engine::FirstOf classes(given, own);
  return engine::write_json(engine::convert_saved_form(*flow.saved, classes, flow.workflow.name,
                                                       engine::UnknownClasses::refuse),
                            2);
}

void require_converted(const Workflow::Data& flow) {
  if (flow.saved != nullptr)
    throw engine::Error(
        engine::Code::invalid_argument,
        engine::cat(flow.workflow.name,
                    ": this workflow is in the form that ComfyUI's interface saves, and was read "
                    "without an engine, which knows the classes of its nodes. Give it to "
                    "Engine::adopt first."));
}

}  // namespace heddle
