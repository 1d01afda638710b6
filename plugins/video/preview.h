// What front ends show of a video that a node makes.
#pragma once

#include "plugins/video/values.h"

namespace heddle::video {

// A file of the input folders, by the name that the node was given.
void show_input(Context& ctx, const std::string& name);

// Writes an MP4 file into the folder of previews, and tells of it.
void show_preview(Context& ctx, const Value& video);

}  // namespace heddle::video
