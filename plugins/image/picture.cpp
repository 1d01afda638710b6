#include "plugins/image/picture.h"

namespace heddle::image {

void refuse_picture(const EncodedPicture& file, const char* format, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT, file.name + ": this " + format + " cannot be read: " + why +
                                           ". Save the picture anew.");
}

void check_pixels(const EncodedPicture& file, std::uint64_t width, std::uint64_t height,
                  std::uint64_t frames) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  constexpr std::uint64_t kMostSide = 0x7fffffff;
  const std::uint64_t pixels = width * height;  // sides have 32 bits at most
  if (width == 0 || height == 0 || width > kMostSide || height > kMostSide)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.name + ": a picture of " + size + " cannot be read. Save it anew.");
  if (pixels > file.most_pixels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.name + ": " + size + " are more than the " + std::to_string(file.most_pixels) +
                    " that are read. Give a smaller picture, or set HEDDLE_MOST_PIXELS to more.");
  if (frames > kMostWhole * file.most_pixels / pixels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.name + ": " + std::to_string(frames) + " pictures of " + size +
                    " are more than the " + std::to_string(kMostWhole * file.most_pixels) +
                    " pixels that are read of one file. Give fewer or smaller ones, or set "
                    "HEDDLE_MOST_PIXELS to more.");
}

}  // namespace heddle::image
