// EXIF as ComfyUI writes it into WebP files. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "plugins/blocks/saved_files.h"

namespace heddle::image {

// A TIFF block of texts "key:json": the prompt under the tag Model (0x0110), the other parts under
// Make (0x010f) and the tags below it. Empty without any.
std::string exif_of(const std::vector<blocks::WorkflowPart>& parts);

}  // namespace heddle::image
