#include "plugins/video/write_video.h"

#include "plugins/video/components.h"
#include "plugins/video/encode_pictures.h"
#include "plugins/video/read_video.h"
#include "plugins/video/transcode.h"

namespace heddle::video {

void check_format(const VideoFormat& format) {
  const auto& [container, codec, crf, preset] = format;
  if (container != "mp4" && container != "mkv" && container != "webm")
    throw Error(HEDDLE_INVALID_ARGUMENT, "format: '" + container +
                                             "' is none that is written. Choose auto, mp4, mkv or "
                                             "webm.");
  if (codec != "auto" && codec != "h264" && codec != "av1")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "codec: '" + codec + "' is none that is written. Choose auto, h264 or av1.");
  if (container == "webm" && codec == "h264")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "codec: WebM holds no H.264. Choose av1, or another format.");
  const double most = codec == "av1" ? 63 : 51;
  if (crf && !(*crf >= 0 && *crf <= most))
    throw Error(HEDDLE_INVALID_ARGUMENT, "crf: " + std::to_string(*crf) +
                                             " is none. Give a number from 0 to " +
                                             std::to_string(static_cast<int>(most)) + ".");
}

std::string write_video(Context& ctx, const Value& value, const VideoFormat& format,
                        const Tags& tags) {
  const Video video = video_of(value, "video");
  const auto* const file = std::get_if<FileVideo>(&video);
  if (file == nullptr) return encode_pictures(ctx, components(ctx, value, "video"), format, tags);
  const std::unique_ptr<MediaFile> opened = open_video(*file);
  if (can_copy(*opened, *file, format)) return copy_streams(ctx, *opened, format, tags);
  return transcode(ctx, *file, format, tags);
}

std::pair<std::int64_t, std::int64_t> dimensions(const Value& value) {
  const Video video = video_of(value, "video");
  if (const auto* const file = std::get_if<FileVideo>(&video)) {
    const VideoFacts facts = facts_of(*open_video(*file), file->crop);
    return {facts.width, facts.height};
  }
  if (const auto* const pictures = std::get_if<Pictures>(&video))
    return {pictures->images.size(2), pictures->images.size(1)};
  return dimensions(std::get<VideoList>(video).videos.front());
}

}  // namespace heddle::video
