// What ComfyUI's widget of video edits says: {trim: {start_time, duration}, crop: {x, y, width,
// height}}, every part of which may be missing.
#pragma once

#include "plugins/video/values.h"

namespace heddle::video {

// Both cuts; the same value where neither cuts anything.
Value edited(Context& ctx, const Value& video, const Value& edit);
Value edited_in_time(Context& ctx, const Value& video, const Value& trim, bool strict);
Value edited_in_space(Context& ctx, const Value& video, const Value& crop);

}  // namespace heddle::video
