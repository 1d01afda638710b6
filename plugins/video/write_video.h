// Video as the bytes of a file.
#pragma once

#include "plugins/video/media_writer.h"
#include "plugins/video/values.h"

namespace heddle::video {

struct VideoFormat {
  std::string container = "mp4";   // "mp4", "mkv", "webm"
  std::string codec = "auto";      // "h264", "av1"; "auto": H.264, AV1 in WebM
  std::optional<double> crf = {};  // else the encoder's own; asks for encoding anew
  std::string preset = {};         // of H.264, "" is the encoder's own
};

// Throws HEDDLE_INVALID_ARGUMENT for a container or codec that is none, and for two that do not go
// together.
void check_format(const VideoFormat& format);

// Any VIDEO. A file's streams are taken as they are where they fit the format and nothing is cut
// from them; else they are decoded and encoded. Pictures of H.264 have even sizes: those of files
// lose the last row or column, others are refused.
std::string write_video(Context& ctx, const Value& video, const VideoFormat& format,
                        const Tags& tags);

// WebM of pictures without sound: codec "vp9" (with alpha where pictures have it) or "av1".
std::string write_webm(Context& ctx, const Tensor& images, const Rate& rate,
                       const std::string& codec, double crf, const Tags& tags);

// Width and height of a VIDEO's pictures.
std::pair<std::int64_t, std::int64_t> dimensions(const Value& video);

}  // namespace heddle::video
