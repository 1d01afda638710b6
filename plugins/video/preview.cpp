#include "plugins/video/preview.h"

#include <filesystem>

#include "plugins/blocks/input_file.h"
#include "plugins/blocks/json_text.h"
#include "plugins/blocks/saved_files.h"
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
  blocks::SavedFiles files(ctx, "temp", "ComfyUI_temp_video", {}, "");
  files.write(write_video(ctx, video, {.preset = "ultrafast"}, {}), ".mp4", 0,
              {.animated = "true"});
}

}  // namespace heddle::video
