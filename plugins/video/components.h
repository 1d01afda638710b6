// What a VIDEO of any kind is made of, and parts of it: in time and of its pictures.
#pragma once

#include "plugins/video/values.h"

namespace heddle::video {

// Everything in host memory, or where the pictures were made. Of several videos, one after
// another: they have one rate and one size, and all of them have the same kind of sound or none.
Pictures components(Context& ctx, const Value& video, const char* port);

// From `start` on, below 0 counted from the end, `duration` long, 0 for all of it. Files are cut
// when they are decoded. Throws where nothing is left, and with `strict` where less than `duration`
// is.
Value trimmed(Context& ctx, const Value& video, double start, double duration, bool strict);

// A part of its pictures; sizes of 0 leave them as they are.
Value cropped(Context& ctx, const Value& video, const Crop& crop);

// How long it is, in seconds; 0 where a file does not say.
double seconds_of(Context& ctx, const Value& video);

}  // namespace heddle::video
