#include "plugins/video/video_edit.h"

#include <heddle/checked.hpp>

#include "plugins/video/components.h"

namespace heddle::video {

Value edited_in_time(Context& ctx, const Value& video, const Value& trim, bool strict) {
  const double start = trim.get("start_time", 0.0), duration = trim.get("duration", 0.0);
  if (start == 0 && duration == 0) return video;
  return trimmed(ctx, video, start, duration, strict);
}

Value edited_in_space(Context& ctx, const Value& video, const Value& crop) {
  const auto number = [&](const char* name) {
    return checked_cast<std::int64_t>(crop.get(name, 0.0), name);
  };
  return cropped(ctx, video, {number("x"), number("y"), number("width"), number("height")});
}

Value edited(Context& ctx, const Value& video, const Value& edit) {
  return edited_in_space(ctx, edited_in_time(ctx, video, edit.field("trim"), false),
                         edit.field("crop"));
}

}  // namespace heddle::video
