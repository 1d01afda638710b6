#include "plugins/image/picture_files.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "plugins/image/png.h"
#include "plugins/image/read_picture.h"
#ifdef HEDDLE_WITH_JPEG
#include "plugins/image/jpeg.h"
#endif
#ifdef HEDDLE_WITH_WEBP
#include "plugins/image/webp.h"
#endif

namespace heddle::image {
namespace {

constexpr int kLevel = 4;          // of PNG's compression, as ComfyUI's
constexpr unsigned kOpaque = 255;  // where there is no alpha

EncodedPicture encoded(const void* bytes, std::uint64_t count, const char* name) {
  return {
      {static_cast<const std::uint8_t*>(bytes), std::size_t(count)}, name, blocks::most_pixels()};
}

Picture first_picture(const EncodedPicture& file) {
  return std::move(read_pictures(file).front().picture);
}

std::uint8_t alpha_of(const Picture& picture, std::size_t pixel) {
  return picture.channels == 4 ? picture.pixels[4 * pixel + 3] : std::uint8_t{kOpaque};
}

Picture with_alpha(const Picture& colours, const Picture& alpha, bool is_black) {
  Picture made{colours.width, colours.height, 4, {}};
  const std::size_t count = std::size_t(made.width) * made.height;
  made.pixels.resize(4 * count);
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t c = 0; c < 3 && !is_black; ++c)
      made.pixels[4 * p + c] = colours.pixels[colours.channels * p + c];
    made.pixels[4 * p + 3] = alpha_of(alpha, p);
  }
  return made;
}

Picture without_alpha(Picture picture) {
  if (picture.channels == 3) return picture;
  const std::size_t count = std::size_t(picture.width) * picture.height;
  for (std::size_t p = 0; p < count; ++p)
    std::memmove(&picture.pixels[3 * p], &picture.pixels[4 * p], 3);
  picture.pixels.resize(3 * count);
  picture.channels = 3;
  return picture;
}

Picture wanted_picture(const heddle_picture_file& call) {
  Picture picture = first_picture(encoded(call.file, call.bytes, "the picture"));
  if (call.alpha_file != nullptr) {
    const Picture alpha = first_picture(encoded(call.alpha_file, call.alpha_bytes, "the mask"));
    if (alpha.width != picture.width || alpha.height != picture.height)
      throw Error(HEDDLE_INVALID_ARGUMENT, "The mask is " + std::to_string(alpha.width) + " x " +
                                               std::to_string(alpha.height) + ", the picture " +
                                               std::to_string(picture.width) + " x " +
                                               std::to_string(picture.height) +
                                               ". Make them of one size.");
    picture = with_alpha(picture, alpha, false);
  }
  if (call.channels == HEDDLE_PICTURE_RGB) return without_alpha(std::move(picture));
  if (call.channels == HEDDLE_PICTURE_ALPHA) return with_alpha(picture, picture, true);
  return picture;
}

// The tEXt chunks of a PNG file that has been read, so that its parts are where they say.
std::vector<TextChunk> texts_of(const void* file, std::uint64_t bytes) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  std::vector<TextChunk> texts;
  std::string_view left(static_cast<const char*>(file), std::size_t(bytes));
  if (!left.starts_with(kSignature)) return texts;
  left.remove_prefix(kSignature.size());
  while (left.size() >= 12) {
    std::uint64_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(left[i]);
    if (length > left.size() - 12) break;
    const std::string_view content = left.substr(8, std::size_t(length));
    const std::size_t end = content.find('\0');
    if (left.substr(4, 4) == "tEXt" && end != content.npos) {
      TextChunk text{std::string(content.substr(0, end)), std::string(content.substr(end + 1))};
      if (is_png_key(text.key) && text.text.find('\0') == std::string::npos)
        texts.push_back(std::move(text));
    }
    left.remove_prefix(12 + std::size_t(length));
  }
  return texts;
}

void give(const heddle_picture_file& call, const auto& bytes) {
  call.write(call.user, bytes.data(), bytes.size());
}

void convert(const heddle_picture_file& call) {
  const std::string_view format(call.format);
  const bool is_jpeg = format == "jpeg";
  Picture picture = wanted_picture(call);
  if (is_jpeg) picture = without_alpha(std::move(picture));
  const auto never = [] { return false; };
  if (format == "png") {
    const bool keeps_texts = call.channels == HEDDLE_PICTURE_RGBA;
    return give(
        call,
        write_png(picture, keeps_texts ? texts_of(call.file, call.bytes) : std::vector<TextChunk>(),
                  kLevel, never));
  }
#ifdef HEDDLE_WITH_WEBP
  if (format == "webp") {
    WebpSettings settings;
    settings.lossless = false;
    settings.quality = std::clamp(call.quality, 1, 100);
    return give(call, write_webp(
                          1, [&](std::size_t) { return std::move(picture); }, settings, never));
  }
#endif
#ifdef HEDDLE_WITH_JPEG
  if (is_jpeg) return give(call, write_jpeg(picture, std::clamp(call.quality, 1, 100)));
#endif
  throw Error(HEDDLE_UNSUPPORTED, "This build of heddle writes no pictures of the format '" +
                                      std::string(format) + "'.");
}

heddle_status* convert_picture(const heddle_picture_file* call) {
  return guard([&] { convert(*call); });
}

constexpr heddle_picture_files kFiles{sizeof(heddle_picture_files), &convert_picture};

}  // namespace

const heddle_list* PictureFiles::list() { return descs<kFiles>(); }

}  // namespace heddle::image
