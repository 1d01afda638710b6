// The workflow that a video carries: ComfyUI and heddle write it into the tags of MP4 files (keys
// and ilst of moov) and of Matroska and WebM files (Tags of the segment). Only boxes and elements
// are read, no pictures, so this needs none of FFmpeg's libraries. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::engine {

// Whether a file begins as those do. The first 12 bytes are enough.
bool is_video(std::string_view content);

// JSON text in UTF-8: what was run ("prompt") or else what the interface saved ("workflow").
// Nothing when `content` is no such video. Throws Error(invalid_argument), beginning with `name`,
// for a video without a workflow and for one that is damaged before one is found.
std::optional<std::string> workflow_in_video(std::string_view content, std::string_view name);

}  // namespace heddle::engine
