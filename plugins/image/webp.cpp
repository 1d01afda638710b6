#include "plugins/image/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <cstring>
#include <memory>

#include "plugins/image/orientation.h"

namespace heddle::image {
namespace {

template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Decoder = std::unique_ptr<WebPAnimDecoder, FreedBy<&WebPAnimDecoderDelete>>;
using Encoder = std::unique_ptr<WebPAnimEncoder, FreedBy<&WebPAnimEncoderDelete>>;
using Mux = std::unique_ptr<WebPMux, FreedBy<&WebPMuxDelete>>;

int orientation_of(const WebPAnimDecoder* decoder) {
  WebPChunkIterator chunk{};
  int orientation = 1;
  if (WebPDemuxGetChunk(WebPAnimDecoderGetDemuxer(decoder), "EXIF", 1, &chunk) != 0)
    orientation = exif_orientation({chunk.chunk.bytes, chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

Picture picture_of_rgba(const std::uint8_t* rgba, std::uint32_t width, std::uint32_t height,
                        bool has_alpha, std::pmr::memory_resource* memory) {
  Picture picture{width, height, has_alpha ? 4u : 3u, Bytes(memory)};
  const std::size_t count = std::size_t{width} * height;
  picture.pixels.resize(count * picture.channels);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(picture.pixels.data() + i * picture.channels, rgba + 4 * i, picture.channels);
  return picture;
}

void require_webp(bool fine, const char* what) {
  if (!fine)
    throw Error(HEDDLE_INTERNAL, std::string("the pictures cannot be written as WebP: ") + what);
}

// Frees what a WebPPicture holds.
struct WebpCanvas {
  WebPPicture picture{};
  WebpCanvas() { require_webp(WebPPictureInit(&picture) != 0, "another version of libwebp"); }
  ~WebpCanvas() { WebPPictureFree(&picture); }
  WebpCanvas(const WebpCanvas&) = delete;
  WebpCanvas& operator=(const WebpCanvas&) = delete;
};

WebPConfig config_of(const WebpSettings& settings) {
  WebPConfig config{};
  require_webp(WebPConfigInit(&config) != 0, "another version of libwebp");
  config.lossless = settings.lossless ? 1 : 0;
  config.quality = float(settings.quality);
  config.method = settings.method;
  require_webp(WebPValidateConfig(&config) != 0, "these settings make no sense");
  return config;
}

void add_frame(WebPAnimEncoder* encoder, const Picture& picture, const WebPConfig& config,
               int timestamp_ms) {
  WebpCanvas canvas;
  canvas.picture.width = int(picture.width);
  canvas.picture.height = int(picture.height);
  canvas.picture.use_argb = 1;
  const int stride = int(picture.width * picture.channels);
  const int taken = picture.channels == 4
                        ? WebPPictureImportRGBA(&canvas.picture, picture.pixels.data(), stride)
                        : WebPPictureImportRGB(&canvas.picture, picture.pixels.data(), stride);
  if (taken == 0) throw std::bad_alloc();
  if (WebPAnimEncoderAdd(encoder, &canvas.picture, timestamp_ms, &config) == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string("the pictures cannot be written as WebP: ") +
                                             WebPAnimEncoderGetError(encoder) +
                                             ". Its sides are at most 16383 pixels.");
}

std::string with_exif(const WebPData& file, const std::string& exif) {
  if (exif.empty()) return {reinterpret_cast<const char*>(file.bytes), file.size};
  const Mux mux(WebPMuxCreate(&file, 0));
  const WebPData chunk{reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()};
  require_webp(mux != nullptr && WebPMuxSetChunk(mux.get(), "EXIF", &chunk, 0) == WEBP_MUX_OK,
               "no place for the workflow");
  WebPData whole{};
  require_webp(WebPMuxAssemble(mux.get(), &whole) == WEBP_MUX_OK, "no place for the workflow");
  std::string bytes(reinterpret_cast<const char*>(whole.bytes), whole.size);
  WebPDataClear(&whole);
  return bytes;
}

}  // namespace

std::vector<Frame> read_webp(const EncodedPicture& file) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.bytes.data(), file.bytes.size(), &features) != VP8_STATUS_OK)
    refuse_picture(file, "WebP", "its header makes no sense or the file ends early");
  check_pixels(file, std::uint64_t(features.width), std::uint64_t(features.height));
  WebPAnimDecoderOptions options{};
  if (WebPAnimDecoderOptionsInit(&options) == 0)
    refuse_picture(file, "WebP", "libwebp is of another version");
  options.color_mode = MODE_RGBA;
  const WebPData data{file.bytes.data(), file.bytes.size()};
  const Decoder decoder(WebPAnimDecoderNew(&data, &options));
  WebPAnimInfo info{};
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0)
    refuse_picture(file, "WebP", "a chunk makes no sense or the file ends early");
  check_pixels(file, info.canvas_width, info.canvas_height, info.frame_count);
  const bool has_alpha = features.has_alpha != 0;
  const int orientation = orientation_of(decoder.get());
  std::vector<Frame> frames;
  while (WebPAnimDecoderHasMoreFrames(decoder.get()) != 0) {
    std::uint8_t* rgba = nullptr;
    int timestamp = 0;
    if (WebPAnimDecoderGetNext(decoder.get(), &rgba, &timestamp) == 0)
      refuse_picture(file, "WebP", "picture " + std::to_string(frames.size()) + " is damaged");
    frames.push_back({upright(picture_of_rgba(rgba, info.canvas_width, info.canvas_height,
                                              has_alpha, file.memory),
                              orientation),
                      has_alpha ? Alpha::channel : Alpha::none});
  }
  if (frames.empty()) refuse_picture(file, "WebP", "it has no picture");
  return frames;
}

std::string write_webp(std::size_t count, const std::function<Picture(std::size_t)>& frame,
                       const WebpSettings& settings, const std::function<bool()>& cancelled) {
  const WebPConfig config = config_of(settings);
  Encoder encoder;
  std::int64_t timestamp = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled while pictures were being written");
    const Picture picture = frame(i);
    if (encoder == nullptr) {
      WebPAnimEncoderOptions options{};
      require_webp(WebPAnimEncoderOptionsInit(&options) != 0, "another version of libwebp");
      options.anim_params = {0, 0};  // transparent, without end
      // A whole picture every so often, as Pillow's defaults.
      options.kmin = settings.lossless ? 9 : 3;
      options.kmax = settings.lossless ? 17 : 5;
      encoder.reset(WebPAnimEncoderNew(int(picture.width), int(picture.height), &options));
      if (encoder == nullptr)
        throw Error(HEDDLE_INVALID_ARGUMENT, "WebP has no pictures of " +
                                                 std::to_string(picture.width) + " x " +
                                                 std::to_string(picture.height) +
                                                 " pixels. Its sides are at most 16383 pixels.");
    }
    add_frame(encoder.get(), picture, config, int(timestamp));
    timestamp = std::min<std::int64_t>(timestamp + settings.duration_ms, 0x7fffffff);
  }
  require_webp(encoder != nullptr, "there is none");
  WebPData file{};
  if (WebPAnimEncoderAdd(encoder.get(), nullptr, int(timestamp), nullptr) == 0 ||
      WebPAnimEncoderAssemble(encoder.get(), &file) == 0)
    throw Error(HEDDLE_INTERNAL, std::string("the pictures cannot be written as WebP: ") +
                                     WebPAnimEncoderGetError(encoder.get()));
  const std::unique_ptr<WebPData, FreedBy<&WebPDataClear>> freed(&file);
  return with_exif(file, settings.exif);
}

}  // namespace heddle::image
