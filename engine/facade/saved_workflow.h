// Workflows in the form that ComfyUI's interface saves: read at once, converted when the classes of
// an engine are known. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/facade/data.h"

namespace heddle {

// What a file or a text holds: JSON in either form, or a picture or a video with a workflow inside.
// `catalog` converts; without one, what the interface saved stays as it is. Throws engine::Error.
std::shared_ptr<const Workflow::Data> read_workflow(std::string_view content, std::string_view name,
                                                    std::shared_ptr<const engine::Catalog> catalog);

// Of a file; of a video, which may be larger than a workflow is let be, only the tags are read.
std::shared_ptr<const Workflow::Data> load_workflow(const std::filesystem::path& path,
                                                    std::shared_ptr<const engine::Catalog> catalog);

// The same workflow for an engine with these classes. Nodes of classes that it lacks are kept:
// whoever binds the workflow names them, with all else that is missing.
std::shared_ptr<const Workflow::Data> adopt_workflow(
    const Workflow::Data& flow, std::shared_ptr<const engine::Catalog> catalog);

// The nodes in the API form, as JSON. `object_info`: texts of definitions for classes that the
// catalogue lacks.
std::string api_form(const Workflow::Data& flow, const engine::Catalog& catalog,
                     const std::vector<std::string>& object_info);

// Throws unless the workflow is in the API form, or was converted.
void require_converted(const Workflow::Data& flow);

}  // namespace heddle
