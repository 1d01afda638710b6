// Files of video as files of another kind: their streams as they are, or decoded and encoded anew.
#pragma once

#include "plugins/video/write_video.h"

namespace heddle::video {

class MediaFile;

// Whether a file's streams can stand in such a file as they are, with nothing cut from them.
bool can_copy(const MediaFile& file, const FileVideo& video, const VideoFormat& format);
std::string copy_streams(Context& ctx, MediaFile& file, const VideoFormat& format,
                         const Tags& tags);

// Pictures keep their times.
std::string transcode(Context& ctx, const FileVideo& video, const VideoFormat& format,
                      const Tags& tags);

}  // namespace heddle::video
