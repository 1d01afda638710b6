#include "plugins/video/join_nodes.h"

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/video/values.h"
#include "plugins/video/write_video.h"

namespace heddle::video {

void ConcatenateVideo::execute(Context& ctx) {
  VideoList list;
  for (const blocks::GrownInput& socket : blocks::grown_inputs(ctx, videos.port))
    for (std::uint32_t i = 0; i < socket.value.count(); ++i)
      list.videos.push_back(socket.value.item(i));
  if (list.videos.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT, "videos: there are none. Link at least one.");
  for (const Value& video : list.videos) video_of(video, "videos");
  if (ctx.has(complete_audio))
    list.sound = sound_or_none(ctx[complete_audio], complete_audio.port.name);
  const bool is_changed = list.videos.size() > 1 || list.sound;
  const Value joined = is_changed ? to_value(list) : list.videos[0];
  const std::string coding = ctx[codec];
  if (coding == "auto") {
    ctx[out] = joined;
    return;
  }
  const std::string bytes = write_video(ctx, joined, {"mp4", coding}, {});
  ctx[out] = to_value(FileVideo{"", value_of(bytes), 0, 0, {}});
}

}  // namespace heddle::video
