// The workflow that a picture carries: ComfyUI and heddle write it into the text chunks of PNG
// files (tEXt, zTXt, iTXt, comf of animated ones) and into the EXIF block of WebP files. Only
// chunks are read, no pixels. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::engine {

// JSON text in UTF-8: what was run ("prompt") or else what the interface saved ("workflow").
// Nothing when `content` is neither PNG nor WebP. Throws Error(invalid_argument), beginning with
// `name`, for a picture without a workflow and for one whose chunks are damaged.
std::optional<std::string> workflow_in_picture(std::string_view content, std::string_view name);

}  // namespace heddle::engine
