#include "plugins/image/avif.h"

#include <avif/avif.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "plugins/image/orientation.h"

namespace heddle::image {
namespace {

struct AvifDestroy {
  void operator()(avifDecoder* decoder) const { avifDecoderDestroy(decoder); }
  void operator()(avifEncoder* encoder) const { avifEncoderDestroy(encoder); }
  void operator()(avifImage* image) const { avifImageDestroy(image); }
};

void require_written(avifResult result) {
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result != AVIF_RESULT_OK)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string("the picture cannot be written as AVIF: ") +
                                             avifResultToString(result));
}

void require_avif(const EncodedPicture& file, avifResult result) {
  if (result == AVIF_RESULT_TRUNCATED_DATA) refuse_picture(file, "AVIF", "the file ends early");
  if (result != AVIF_RESULT_OK) refuse_picture(file, "AVIF", avifResultToString(result));
}

// The EXIF orientation that equals turning by irot (quarters, anticlockwise), then mirroring by
// imir (0: top to bottom, 1: left to right).
int avif_orientation(const avifImage& image) {
  const bool is_mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int quarters = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3 : 0;
  if (!is_mirrored) return std::array{1, 8, 3, 6}[std::size_t(quarters)];
#if AVIF_VERSION_MAJOR < 1
  const bool is_left_right = image.imir.mode == 1;
#else
  const bool is_left_right = image.imir.axis == 1;
#endif
  return (is_left_right ? std::array{2, 7, 4, 5} : std::array{4, 5, 2, 7})[std::size_t(quarters)];
}

Frame frame_of(const EncodedPicture& file, const avifDecoder& decoder) {
  const avifImage& image = *decoder.image;
  const bool has_alpha = decoder.alphaPresent != 0;
  avifRGBImage rgb{};
  avifRGBImageSetDefaults(&rgb, &image);
  rgb.depth = 8;
  rgb.format = has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  Picture picture{image.width, image.height, has_alpha ? 4u : 3u, Bytes(file.memory)};
  picture.pixels.resize(std::size_t{image.width} * image.height * picture.channels);
  rgb.pixels = picture.pixels.data();
  rgb.rowBytes = image.width * picture.channels;
  require_avif(file, avifImageYUVToRGB(&image, &rgb));
  return {upright(std::move(picture), avif_orientation(image)),
          has_alpha ? Alpha::channel : Alpha::none};
}

std::unique_ptr<avifImage, AvifDestroy> encoded(const WidePicture& picture,
                                                const AvifSettings& settings) {
  std::unique_ptr<avifImage, AvifDestroy> image(avifImageCreate(
      picture.width, picture.height, std::uint32_t(settings.depth), AVIF_PIXEL_FORMAT_YUV420));
  if (image == nullptr) throw std::bad_alloc();
  const bool is_wide = settings.light != AvifLight::srgb;
  image->yuvRange = AVIF_RANGE_LIMITED;
  image->colorPrimaries = is_wide ? AVIF_COLOR_PRIMARIES_BT2020 : AVIF_COLOR_PRIMARIES_BT709;
  image->matrixCoefficients =
      is_wide ? AVIF_MATRIX_COEFFICIENTS_BT2020_NCL : AVIF_MATRIX_COEFFICIENTS_BT709;
  image->transferCharacteristics =
      settings.light == AvifLight::srgb  ? AVIF_TRANSFER_CHARACTERISTICS_SRGB
      : settings.light == AvifLight::hlg ? AVIF_TRANSFER_CHARACTERISTICS_HLG
                                         : AVIF_TRANSFER_CHARACTERISTICS_SMPTE2084;
  avifRGBImage rgb{};
  avifRGBImageSetDefaults(&rgb, image.get());
  rgb.depth = 16;
  rgb.format = AVIF_RGB_FORMAT_RGB;
  rgb.pixels = reinterpret_cast<std::uint8_t*>(const_cast<std::uint16_t*>(picture.rgb.data()));
  rgb.rowBytes = picture.width * 3 * 2;
  require_written(avifImageRGBToYUV(image.get(), &rgb));
  if (!settings.exif.empty())
    avifImageSetMetadataExif(image.get(),
                             reinterpret_cast<const std::uint8_t*>(settings.exif.data()),
                             settings.exif.size());
  return image;
}

}  // namespace

std::string write_avif(std::size_t count, const std::function<WidePicture(std::size_t)>& frame,
                       const AvifSettings& settings, const std::function<bool()>& cancelled) {
  constexpr int kSpeed = 8, kMilliseconds = 1000;
  const std::unique_ptr<avifEncoder, AvifDestroy> encoder(avifEncoderCreate());
  if (encoder == nullptr) throw std::bad_alloc();
  encoder->speed = kSpeed;
  encoder->minQuantizer = encoder->maxQuantizer = settings.quality;
  encoder->timescale = settings.rate;
  for (std::size_t i = 0; i < count; ++i) {
    if (cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled while a picture was being written");
    const auto image = encoded(frame(i), settings);
    require_written(
        avifEncoderAddImage(encoder.get(), image.get(), count > 1 ? kMilliseconds : 1,
                            count > 1 ? AVIF_ADD_IMAGE_FLAG_NONE : AVIF_ADD_IMAGE_FLAG_SINGLE));
  }
  avifRWData data = AVIF_DATA_EMPTY;
  const avifResult finished = avifEncoderFinish(encoder.get(), &data);
  std::string file(reinterpret_cast<const char*>(data.data), data.size);
  avifRWDataFree(&data);
  require_written(finished);
  return file;
}

std::vector<Frame> read_avif(const EncodedPicture& file) {
  const std::unique_ptr<avifDecoder, AvifDestroy> decoder(avifDecoderCreate());
  if (decoder == nullptr) throw std::bad_alloc();
  decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
  decoder->strictFlags &= ~avifStrictFlags(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  require_avif(file, avifDecoderSetIOMemory(decoder.get(), file.bytes.data(), file.bytes.size()));
  const avifResult parsed = avifDecoderParse(decoder.get());
  if (decoder->image != nullptr && decoder->image->width > 0)
    check_pixels(file, decoder->image->width, decoder->image->height);
  require_avif(file, parsed);
  check_pixels(file, decoder->image->width, decoder->image->height,
               std::uint64_t(std::max(decoder->imageCount, 1)));
  std::vector<Frame> frames;
  for (int i = 0; i < decoder->imageCount; ++i) {
    require_avif(file, avifDecoderNextImage(decoder.get()));
    frames.push_back(frame_of(file, *decoder));
  }
  if (frames.empty()) refuse_picture(file, "AVIF", "it has no picture");
  return frames;
}

}  // namespace heddle::image
