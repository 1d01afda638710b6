// Engine::convert_picture: the plugin that knows picture files does it.
#include <heddle/abi/picture_files.h>

#include "engine/device/status.h"
#include "engine/facade/data.h"

namespace heddle {
namespace {

heddle_picture_channels channels_of(PictureConversion::Channels channels) {
  switch (channels) {
    case PictureConversion::Channels::rgb:
      return HEDDLE_PICTURE_RGB;
    case PictureConversion::Channels::alpha:
      return HEDDLE_PICTURE_ALPHA;
    default:
      return HEDDLE_PICTURE_RGBA;
  }
}

}  // namespace

std::string Engine::convert_picture(std::string_view file,
                                    const PictureConversion& conversion) const {
  return translate_errors([&] {
    const heddle_picture_files* files = nullptr;
    for (const auto& plugin : data_->plugins.plugins)
      for (const void* desc : plugin->provide(HEDDLE_PICTURE_FILES))
        files = static_cast<const heddle_picture_files*>(desc);  // the last one replaces others
    if (files == nullptr)
      throw engine::Error(engine::Code::unsupported,
                          "no plugin that is loaded reads picture files: load the image plugin");
    std::string made;
    heddle_picture_file call{};
    call.size = sizeof call;
    call.channels = channels_of(conversion.channels);
    call.file = file.data();
    call.bytes = file.size();
    call.alpha_file = conversion.alpha_from.empty() ? nullptr : conversion.alpha_from.data();
    call.alpha_bytes = conversion.alpha_from.size();
    call.format = conversion.format.c_str();
    call.quality = conversion.quality;
    call.write = [](void* user, const void* bytes, std::uint64_t count) {
      static_cast<std::string*>(user)->assign(static_cast<const char*>(bytes), count);
    };
    call.user = &made;
    if (heddle_status* status = files->convert(&call)) throw engine::take_status(status);
    return made;
  });
}

}  // namespace heddle
