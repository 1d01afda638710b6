#include "plugins/video/preview.h"

#include <filesystem>

#include "plugins/blocks/input_file.h"
#include "plugins/blocks/json_text.h"
#include "plugins/blocks/saved_files.h"
#include "plugins/video/components.h"
#include "plugins/video/write_video.h"

namespace heddle::video {

void show_input(Context& ctx, const std::string& name) {
  const blocks::FileName file = blocks::annotated(name);
  const std::filesystem::path path(file.name);
  const std::string ui =
      "{\"images\": [{\"filename\": " + blocks::json_string(path.filename().string()) +
      ", \"subfolder\": " + blocks::json_string(path.parent_path().generic_string()) +
      ", \"type\": " + blocks::json_string(file.folder) + "}], \"animated\": [true]}";
  service<heddle_report_service>().wrote(ctx.raw(), nullptr, ui.c_str());
}

void show_preview(Context& ctx, const Value& video) {
  // H.264 has even sizes: the preview may lack the last row or column.
  const auto [width, height] = dimensions(video);
  if (width < 2 || height < 2) return;
  const Value shown = cropped(ctx, video, {0, 0, width - width % 2, height - height % 2});
  blocks::SavedFiles files(ctx, "temp", "ComfyUI_temp_video", {}, "");
  files.write(
      write_video(ctx, width % 2 + height % 2 > 0 ? shown : video, {.preset = "ultrafast"}, {}),
      ".mp4", 0, {.animated = "true"});
}

}  // namespace heddle::video
